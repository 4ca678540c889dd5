"""How long generations are kept: so many, or so many days; their bodies for less."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record


@record
class Keep:
    """A span that is kept: one of the two.

    Attributes:
        generations: that many accepted ones, and whatever is newer than the oldest of them.
        days: days since the receipt was completed.
    """

    generations: Annotated[int, Field(gt=0)] | None = None
    days: Annotated[int, Field(gt=0)] | None = None

    def __post_init__(self) -> None:
        if (self.generations is None) == (self.days is None):
            raise ContractError(
                f"found generations {self.generations} and days {self.days}; expected one of them"
            )

    def word(self) -> str:
        """Return it as a few words."""
        if self.days is None:
            return f"{self.generations:,} accepted generations"
        return f"{self.days:,} days"


@record
class Retention:
    """What a scan keeps; receipts and ledgers are kept for ever.

    Attributes:
        generations: keep the records of that many accepted generations.
        days: keep the records for so many days; at most one of the two.
        bodies: keep page bodies, and the tokens beside them, for less than that.
    """

    generations: Annotated[int, Field(gt=0)] | None = None
    days: Annotated[int, Field(gt=0)] | None = None
    bodies: Keep | None = None

    def __post_init__(self) -> None:
        if self.generations is not None and self.days is not None:
            raise ContractError("found generations and days; expected at most one of them")
        if self.records is None and self.bodies is None:
            raise ContractError(
                "found a retention that keeps everything; expected generations, days or bodies"
            )

    @property
    def records(self) -> Keep | None:
        """How long records are kept; None for ever."""
        if self.generations is None and self.days is None:
            return None
        return Keep(generations=self.generations, days=self.days)


@record
class Certified:
    """One generation as retention looks at it.

    Attributes:
        generation: its name.
        counts: whether it is accepted and stands, so that it is one of the `generations` kept.
        completed_at: when its receipt was completed.
    """

    generation: str
    counts: bool
    completed_at: datetime


def beyond(keep: Keep, newest_first: Sequence[Certified], *, now: datetime) -> frozenset[str]:
    """Return the generations that a span does not keep.

    Where fewer accepted ones exist than are to be kept, none is beyond: a row of failed nights
    pushes no accepted one out.
    """
    if keep.days is not None:
        least = now - timedelta(days=keep.days)
        return frozenset(each.generation for each in newest_first if each.completed_at < least)
    counted, over = 0, list[str]()
    for each in newest_first:
        if counted == keep.generations:
            over.append(each.generation)
        counted += each.counts and counted != keep.generations
    return frozenset(over)
