"""Assets that may read a scan: each is handed a collection that its receipt opened, or refuses.

A blocking check gates its own run only. These assets therefore read the receipt themselves, in
every run: with the scan's stages or without, by UI, command line or automation.
"""

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import dagster as dg

from scan_pipeline.components.face import Face, FaceSettings
from scan_pipeline.components.metadata import age_facts, receipt_facts
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection, Wish

Collected: TypeAlias = VerifiedCollection | PartialCollection
Decorator: TypeAlias = Callable[[Callable[..., Any]], dg.AssetsDefinition]
Opener: TypeAlias = Callable[[ScanResource, str], Collected]


def when_accepted() -> dg.AutomationCondition:
    """Return the condition of an analysis: its scans moved, and no blocking verdict stands."""
    return (
        dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()
    ).with_label("accepted generation")


def verified_asset(
    *,
    scan: str,
    at_least: Wish = "verified",
    max_age: timedelta | None = None,
    scan_key_prefix: Sequence[str] = (),
    **options: Any,
) -> Decorator:
    """Declare an asset over the whole collection of one generation, its partition.

    The function takes one parameter annotated `VerifiedCollection`, a `context` if it wants one,
    and resources or a config as any asset. What it returns is an asset's result; the receipt's id
    and its sentence are added to the output's metadata.

    Args:
        scan: name of the scan that is read.
        at_least: least status of the receipt; `corroborated` must be asked for by name.
        max_age: how long before the run the generation may have been read; None for any age.
        scan_key_prefix: prefix of the scan's asset keys, where its project gave it one.
        options: those of `dagster.asset`, partitions apart. `deps` are added to the receipt, and
            `automation_condition` is `when_accepted()` unless given.

    Raises:
        ContractError: at once, where the function takes no such parameter.
        dagster.Failure: in a run whose generation has no receipt that says as much, or is too old.
    """

    def opened(resource: ScanResource, generation: str) -> Collected:
        collection = resource.collection(max_age=max_age)
        return collection.generation(generation, at_least=at_least)

    face = Face(scan=scan, settings=FaceSettings(key_prefix=tuple(scan_key_prefix)))
    return lambda function: _asset(
        function, face=face, kind=VerifiedCollection, opened=opened, options=options
    )


def partial_asset(
    *,
    scan: str,
    accept: ConclusionScope,
    max_age: timedelta | None = None,
    scan_key_prefix: Sequence[str] = (),
    **options: Any,
) -> Decorator:
    """Declare an asset over what one generation has shown, labelled as no more than that.

    As `verified_asset`, with a parameter annotated `PartialCollection`. A failed generation opens
    to it no more than to anyone. Automation waits for an accepted receipt here too; where less is
    to be read by the clock, lower the scan's own `accept`.

    Args:
        scan: name of the scan that is read.
        accept: the least scope that the analysis is content with, by name.
        max_age: as for `verified_asset`.
        scan_key_prefix: prefix of the scan's asset keys, where its project gave it one.
        options: as for `verified_asset`.

    Raises:
        ContractError: as for `verified_asset`.
        dagster.Failure: as for `verified_asset`.
    """

    def opened(resource: ScanResource, generation: str) -> Collected:
        return resource.collection(max_age=max_age).partial(generation, accept=accept)

    face = Face(scan=scan, settings=FaceSettings(key_prefix=tuple(scan_key_prefix)))
    return lambda function: _asset(
        function, face=face, kind=PartialCollection, opened=opened, options=options
    )


def _asset(
    function: Callable[..., Any],
    *,
    face: Face,
    kind: type[Collected],
    opened: Opener,
    options: dict[str, Any],
) -> dg.AssetsDefinition:
    parameter = _parameter_of(function, kind)
    signature = inspect.signature(function)
    wants_context = "context" in signature.parameters

    def body(context: dg.AssetExecutionContext, **others: Any) -> Any:
        with refusals():
            collection = opened(getattr(context.resources, face.resource), context.partition_key)
        standing = getattr(context.resources, face.resource).standing_of(collection.receipt)
        context.add_output_metadata(
            {
                **receipt_facts(collection.receipt, collection.receipt_id),
                **age_facts(standing),
            }
        )
        if (late := standing.late_word()) is not None:
            context.log.warning(late)
        if face.resource not in signature.parameters:
            others.pop(face.resource, None)
        if wants_context:
            others["context"] = context
        return function(**{parameter: collection}, **others)

    # Dagster takes resources by keys or as parameters, never both: as the function has it.
    by_keys = "required_resource_keys" in options
    _pose_as(
        body,
        function,
        without=(parameter, "context"),
        resource=None if by_keys else face.resource,
    )
    if "partitions_def" in options:
        raise ContractError(
            f"{function.__name__}: found partitions_def; expected none: an analysis has the "
            f"partitions of its scan, {face.partitions.name}"
        )
    settled = {
        "automation_condition": when_accepted(),
        **options,
        "partitions_def": face.partitions,
        "deps": [face.key("receipt"), *options.get("deps", ())],
    }
    if by_keys:
        settled["required_resource_keys"] = {face.resource, *options["required_resource_keys"]}
    return dg.asset(**settled)(body)


def _parameter_of(function: Callable[..., Any], kind: type[Collected]) -> str:
    """Return the name of the parameter that takes the collection."""
    parameters = inspect.signature(function).parameters
    taken = [name for name, each in parameters.items() if each.annotation is kind]
    if len(taken) != 1:
        raise ContractError(
            f"{function.__name__}: found {len(taken)} parameters annotated {kind.__name__}; "
            "expected one, the annotation itself and not its name in quotes"
        )
    return taken[0]


def _pose_as(
    body: Callable[..., Any],
    function: Callable[..., Any],
    *,
    without: Sequence[str],
    resource: str | None,
) -> None:
    """Give a wrapper the name, the text and the remaining parameters of what it wraps.

    Dagster reads inputs, resources and config from the signature.

    Args:
        body: the wrapper.
        function: what it wraps.
        without: parameters that the wrapper fills itself.
        resource: name of a parameter to add, for the scan's resource.
    """
    signature = inspect.signature(function)
    kept = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in signature.parameters.items()
        if name not in without
    ]
    if resource is not None and resource not in signature.parameters:
        taken = dg.ResourceParam[ScanResource]
        kept.append(inspect.Parameter(resource, inspect.Parameter.KEYWORD_ONLY, annotation=taken))
    context = inspect.Parameter(
        "context",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=dg.AssetExecutionContext,
    )
    # Of a generator Dagster reads what it yields, and it does not know that the wrapper is one.
    returned = (
        inspect.Signature.empty
        if inspect.isgeneratorfunction(function)
        else signature.return_annotation
    )
    posed = signature.replace(parameters=[context, *kept], return_annotation=returned)
    body.__name__, body.__qualname__ = function.__name__, function.__qualname__
    body.__doc__, body.__module__ = function.__doc__, function.__module__
    body.__signature__ = posed  # type: ignore[attr-defined]  # inspect's own hook
    body.__annotations__ = {
        each.name: each.annotation
        for each in posed.parameters.values()
        if each.annotation is not inspect.Parameter.empty
    }
    if returned is not inspect.Signature.empty:
        body.__annotations__["return"] = returned
