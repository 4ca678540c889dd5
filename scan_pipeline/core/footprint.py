"""What a generation takes of the lake, and what a year of them would."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from scan_pipeline.core.calendar import MOST_COUNTED, ticks_between
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.retention import Keep, Retention
from scan_pipeline.core.value import record

NIGHTS: Final = 365
"""Generations of a year where no schedule says how many."""

_YEAR, _WEEK = timedelta(days=365), timedelta(days=7)


@record
class Footprint:
    """Bytes of one generation.

    Attributes:
        sent: bytes of page bodies as sent.
        evidence: bytes of its files of events and bodies.
        staged: bytes of its files of records, findings and summaries.
        nights: generations a year.
        scheduled: whether a schedule says so.
    """

    sent: int
    evidence: int
    staged: int
    nights: int
    scheduled: bool

    @property
    def stored(self) -> int:
        """Bytes of all its files; the published copy comes once, not once a night."""
        return self.evidence + self.staged

    def words(self, retention: Retention | None) -> Iterator[tuple[str, str]]:
        """Yield what a night and a year take, and what is kept of it, in words."""
        yield "a night", f"{told_bytes(self.stored)} stored, {told_bytes(self.sent)} as sent"
        nights = f"{self.nights:,} nights" + ("" if self.scheduled else ", if it ran daily")
        yield "a year", f"about {told_bytes(self.stored * self.nights)} stored, {nights}"
        if retention is not None:
            bodies = self._nights(retention.bodies or retention.records)
            kept = self.evidence * bodies + self.staged * self._nights(retention.records)
            yield "kept of it", f"about {told_bytes(kept)} under its retention, and the ledgers"

    def _nights(self, keep: Keep | None) -> int:
        """Return how many nights of a year a span keeps."""
        if keep is None:
            return self.nights
        days = keep.days
        kept = keep.generations if days is None else -(-self.nights * days // NIGHTS)
        return min(self.nights, kept or 0)


def footprint(receipt: Receipt, schedule: Schedule | None, *, now: datetime) -> Footprint:
    """Return what a generation takes, by the files that its receipt pins.

    Args:
        receipt: of the generation; of a table of very many files it lists none, and none count.
        schedule: of its scan, None where there is none.
        now: when the year begins, with a time zone.
    """
    sizes = {name: sum(f.size for f in held.files) for name, held in receipt.evidence.items()}
    evidence = sizes.pop("pages", 0)
    return Footprint(
        sent=receipt.bytes_observed,
        evidence=evidence,
        staged=sum(sizes.values()),
        nights=NIGHTS if schedule is None else _ticks_a_year(schedule, now),
        scheduled=schedule is not None,
    )


def told_bytes(number: int) -> str:
    """Return a number of bytes as people read it: `1.2 MB`."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if number >= 10**power:
            return f"{number / 10**power:,.1f} {unit}"
    return f"{number:,} bytes"


def _ticks_a_year(schedule: Schedule, now: datetime) -> int:
    """Return how often a schedule ticks in a year; of one that ticks very often, by its week."""
    ticks = ticks_between(schedule, now, now + _YEAR)
    if ticks < MOST_COUNTED:
        return ticks
    return ticks_between(schedule, now, now + _WEEK) * _YEAR // _WEEK
