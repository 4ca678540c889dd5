"""`--max-age`, and the word about how old data is: the same for every command that reads."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from scan_pipeline.core.receipt import Receipt
    from scan_pipeline.stages.reading import Collection
    from scan_pipeline.stages.unlock import Wish


def max_age_option(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add `--max-age HOURS` to a command, which takes a timedelta or None."""
    return click.option(
        "--max-age",
        type=click.FloatRange(min=0),
        metavar="HOURS",
        callback=_duration,
        help="Refuse what was read from its source longer ago.",
    )(command)


def _duration(
    context: click.Context, parameter: click.Parameter, hours: float | None
) -> timedelta | None:
    """Return hours as a duration."""
    try:
        return None if hours is None else timedelta(hours=hours)
    except (OverflowError, ValueError) as error:  # more than a timedelta holds, or no number
        raise click.BadParameter(
            f"found {hours}; expected a number of hours", ctx=context, param=parameter
        ) from error


def age_word(collection: "Collection", receipt: "Receipt", *, at_least: "Wish") -> str:
    """Say how old the data of an opened generation is, and what became of newer generations."""
    from scan_pipeline.core.errors import GateClosedError
    from scan_pipeline.stages.standing import observed_at

    try:
        standing = collection.standing(at_least=at_least)
    except GateClosedError as error:
        standing, told = None, f"; {error.reason}"
    else:
        told = f"; the newest whole one is {standing.opened}"
    if standing is not None and standing.opened == receipt.scan_generation:
        return standing.word()
    at = observed_at(receipt).isoformat(timespec="seconds")
    return f"data of generation {receipt.scan_generation}, read from its source until {at}{told}"
