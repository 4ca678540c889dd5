"""Assets that may read scans: each is handed a collection that its receipt opened, or refuses.

A blocking check gates its own run only. These assets therefore read the receipt themselves, in
every run: with the scan's stages or without, by UI, command line or automation.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.metadata import (
    Metadata,
    age_facts,
    inventory_facts,
    opened_facts,
)
from scan_pipeline.components.posing import only_parameter, parameters_of, pose_as
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.sources.face_settings import FaceSettings
from scan_pipeline.stages.inventory import Inventory, VerifiedInventory
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection, Wish

Decorator: TypeAlias = Callable[[Callable[..., Any]], dg.AssetsDefinition]
Opened: TypeAlias = tuple[dict[str, Any], Metadata, Sequence[Receipt]]
"""What is handed to an analysis by name of the parameter, what its output tells of it, and the
receipts, in order of the scans."""

Opener: TypeAlias = Callable[[Sequence[ScanResource], str], Opened]

INVENTORY_TAG = "scan_pipeline/inventory"
"""On an analysis of several scans: the inventory whose sensor asks for it."""


def when_accepted() -> dg.AutomationCondition:
    """Return the condition of an analysis: its scan moved, and no blocking verdict stands."""
    return (
        dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()
    ).with_label("accepted generation")


def verified_asset(
    *,
    scan: str | None = None,
    scans: Mapping[str, str] | None = None,
    inventory: str | None = None,
    at_least: Wish = "verified",
    max_age: timedelta | None = None,
    max_skew: timedelta | None = None,
    scan_key_prefix: Sequence[str] = (),
    **options: Any,
) -> Decorator:
    """Declare an asset over the whole collection of one generation, its partition; or of several.

    Of one `scan`, the function takes one parameter annotated `VerifiedCollection`; of several, one
    for each name in `scans`, or one annotated `VerifiedInventory`. It takes a `context` if it wants
    one, and resources or a config as any asset. What it returns is an asset's result; the receipts'
    ids and sentences are added to the output's metadata, and of several scans the time skew and the
    weakest scope.

    Of several scans the partition names a night: of each the newest attempt of it is opened that
    opens as asked for, and where one does not, none is read. They are asked for by the inventory's
    sensor, once all are accepted, since a night may end under several attempts.

    Args:
        scan: name of the scan that is read.
        scans: names of the scans that are read together, by the function's parameters.
        inventory: the inventory that the scan, or all scans, belong to.
        at_least: least status of the receipt; `corroborated` must be asked for by name.
        max_age: how long before the run each generation may have been read; None for any age.
        max_skew: longest time between the readings of any two records; of several scans only.
        scan_key_prefix: prefix of the scans' asset keys, where their project gave them one.
        options: those of `dagster.asset`, partitions apart. `deps` are added to the receipts, and
            `automation_condition` is `when_accepted()` for one scan unless given.

    Raises:
        ContractError: at once, where the function takes no such parameters, or several scans are
            of no inventory.
        dagster.Failure: in a run whose generation has no receipt that says as much, or is too old.
    """
    settings = FaceSettings(key_prefix=tuple(scan_key_prefix), inventory=inventory)
    if scans is not None and scan is None and inventory is not None:
        return _joined(
            dict(scans),
            settings=settings,
            inventory=inventory,
            max_age=max_age,
            opened=lambda members, night: members.night(
                night, at_least=at_least, max_skew=max_skew
            ),
            options=options,
        )
    if scan is None or scans is not None or max_skew is not None:
        raise ContractError(
            f"found scan={scan!r}, scans={scans!r}, inventory={inventory!r}, "
            f"max_skew={max_skew!r}; expected `scan` alone, or `scans` and the `inventory` that "
            "their scan files name"
        )
    face = Face(scan=scan, settings=settings)

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        parameter = only_parameter(function, VerifiedCollection)

        def opened(resources: Sequence[ScanResource], generation: str) -> Opened:
            (resource,) = resources
            collection = resource.collection(max_age=max_age)
            found = collection.generation(generation, at_least=at_least)
            told = opened_facts(found)
            return {parameter: found}, told, [found.receipt]

        return _asset(function, faces=[face], filled=[parameter], opened=opened, options=options)

    return decorate


def partial_asset(
    *,
    scan: str,
    accept: ConclusionScope,
    inventory: str | None = None,
    max_age: timedelta | None = None,
    scan_key_prefix: Sequence[str] = (),
    **options: Any,
) -> Decorator:
    """Declare an asset over what one generation has shown, labelled as no more than that.

    As `verified_asset` of one scan, with a parameter annotated `PartialCollection`. A failed
    generation opens to it no more than to anyone. Automation waits for an accepted receipt here
    too; where less is to be read by the clock, lower the scan's own `accept`.

    Args:
        scan: name of the scan that is read.
        accept: the least scope that the analysis is content with, by name.
        inventory: the inventory that the scan belongs to, None for none.
        max_age: as for `verified_asset`.
        scan_key_prefix: prefix of the scan's asset keys, where its project gave it one.
        options: as for `verified_asset`.

    Raises:
        ContractError: as for `verified_asset`.
        dagster.Failure: as for `verified_asset`.
    """
    settings = FaceSettings(key_prefix=tuple(scan_key_prefix), inventory=inventory)
    face = Face(scan=scan, settings=settings)

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        parameter = only_parameter(function, PartialCollection)

        def opened(resources: Sequence[ScanResource], generation: str) -> Opened:
            (resource,) = resources
            found = resource.collection(max_age=max_age).partial(generation, accept=accept)
            told = opened_facts(found)
            return {parameter: found}, told, [found.receipt]

        return _asset(function, faces=[face], filled=[parameter], opened=opened, options=options)

    return decorate


def _joined(
    scans: dict[str, str],
    *,
    settings: FaceSettings,
    inventory: str,
    max_age: timedelta | None,
    opened: Callable[[Inventory, str], VerifiedInventory],
    options: dict[str, Any],
) -> Decorator:
    if len({*scans.values()}) < len(scans):
        raise ContractError(f"found the scans {scans}; expected each once")
    faces = [Face(scan=each, settings=settings) for each in scans.values()]

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        single = parameters_of(function, VerifiedCollection)
        whole = parameters_of(function, VerifiedInventory)
        if len(whole) > 1 or {*single} - {*scans} or not (whole or {*single} == {*scans}):
            raise ContractError(
                f"{function.__name__}: found the parameters {single} annotated VerifiedCollection "
                f"and {whole} annotated VerifiedInventory; expected {list(scans)} of the former, "
                "or one of the latter: the annotation itself and not its name in quotes"
            )

        def open_them(resources: Sequence[ScanResource], night: str) -> Opened:
            members = {
                name: each.collection(max_age=max_age)
                for name, each in zip(scans, resources, strict=True)
            }
            found = opened(Inventory(members), night)
            filled = dict.fromkeys(whole, found) | {name: found[name] for name in single}
            return filled, inventory_facts(found), [found[name].receipt for name in scans]

        mine = {
            "automation_condition": None,  # the inventory's sensor asks for it
            **options,
            "tags": {INVENTORY_TAG: inventory, **options.get("tags", {})},
        }
        return _asset(
            function, faces=faces, filled=[*whole, *single], opened=open_them, options=mine
        )

    return decorate


def _asset(
    function: Callable[..., Any],
    *,
    faces: Sequence[Face],
    filled: Sequence[str],
    opened: Opener,
    options: dict[str, Any],
) -> dg.AssetsDefinition:
    """Wrap a function into an asset that opens its scans first.

    Args:
        function: what is declared.
        faces: the scans it reads.
        filled: parameters that are filled with what was opened.
        opened: opens it, given the scans' resources in that order and the partition.
        options: of `dagster.asset`.
    """
    signature = inspect.signature(function)
    wants_context = "context" in signature.parameters
    keys = [face.resource for face in faces]

    def body(context: dg.AssetExecutionContext, **others: Any) -> Any:
        with refusals():
            resources = [_resource(context, face) for face in faces]
            collections, told, receipts = opened(resources, context.partition_key)
        ages = [one.standing_of(each) for one, each in zip(resources, receipts, strict=True)]
        oldest = max(ages, key=lambda each: (each.is_late, each.age))
        context.add_output_metadata({**told, **age_facts(oldest)})
        for late in filter(None, (each.late_word() for each in ages)):
            context.log.warning(late)
        for key in keys:
            if key not in signature.parameters:
                others.pop(key, None)
        if wants_context:
            others["context"] = context
        return function(**collections, **others)

    # Dagster takes resources by keys or as parameters, never both: as the function has it.
    by_keys = "required_resource_keys" in options
    pose_as(body, function, without={*filled, "context"}, resources=[] if by_keys else keys)
    partitions = faces[0].partitions
    if "partitions_def" in options:
        raise ContractError(
            f"{function.__name__}: found partitions_def; expected none: an analysis has the "
            f"partitions of its scan, {partitions.name}"
        )
    settled = {
        "automation_condition": when_accepted(),
        **options,
        "partitions_def": partitions,
        "deps": [*(face.key("receipt") for face in faces), *options.get("deps", ())],
    }
    if by_keys:
        settled["required_resource_keys"] = {*keys, *options["required_resource_keys"]}
    return dg.asset(**settled)(body)


def _resource(context: dg.AssetExecutionContext, face: Face) -> ScanResource:
    """Return a scan's resource, whose scan file must say the same of its partitions.

    Raises:
        ContractError: it belongs to another inventory than the analysis says, or to none.
    """
    opened: ScanResource = getattr(context.resources, face.resource)
    said, expected = face.settings.inventory, opened.face.settings.inventory
    if said != expected:
        raise ContractError(
            f"{context.asset_key.to_user_string()}: found inventory={said!r}; expected "
            f"{expected!r}, as `dagster.inventory` of {face.scan} says: they share its partitions"
        )
    return opened
