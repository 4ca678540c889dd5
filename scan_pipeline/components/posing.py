"""A wrapper that Dagster takes for what it wraps: it reads inputs from names and annotations."""

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

import dagster as dg

from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.errors import ContractError


def parameters_of(function: Callable[..., Any], kind: type) -> list[str]:
    """Return the names of the parameters that are annotated with a type, in order."""
    parameters = inspect.signature(function).parameters
    return [name for name, each in parameters.items() if each.annotation is kind]


def only_parameter(function: Callable[..., Any], kind: type) -> str:
    """Return the name of the one parameter that is annotated with a type.

    Raises:
        ContractError: there is none, or several.
    """
    taken = parameters_of(function, kind)
    if len(taken) != 1:
        raise ContractError(
            f"{function.__name__}: found {len(taken)} parameters annotated {kind.__name__}; "
            "expected one, the annotation itself and not its name in quotes"
        )
    return taken[0]


def pose_as(
    body: Callable[..., Any],
    function: Callable[..., Any],
    *,
    without: Collection[str],
    resources: Iterable[str],
) -> None:
    """Give a wrapper the name, the text and the remaining parameters of what it wraps.

    Dagster reads inputs, resources and config from the signature.

    Args:
        body: the wrapper.
        function: what it wraps.
        without: parameters that the wrapper fills itself.
        resources: names of parameters to add where there are none yet, for the scans' resources.
    """
    signature = inspect.signature(function)
    kept = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in signature.parameters.items()
        if name not in without
    ]
    for name in resources:
        if name not in signature.parameters:
            taken = dg.ResourceParam[ScanResource]
            kept.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=taken))
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
