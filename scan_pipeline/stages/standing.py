"""What a reader should know of the data it is given: how old it is, and what became of newer."""

from datetime import UTC, datetime, timedelta
from typing import Final

from scan_pipeline.core.calendar import (
    Timeliness,
    ago,
    schedule_problems,
    ticks_between,
    timeliness,
)
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.value import record
from scan_pipeline.stages.unlock import why_closed
from scan_pipeline.store.generations import GENERATION_FORMAT

NOT_ACCEPTED: Final = "was not accepted"

AHEAD: Final = timedelta(minutes=5)
"""By how much the clock of whoever walked may be ahead of a reader's. Data that was read later than
that is of no age that a reader could tell, and so not young enough for any bound."""


@record
class Standing:
    """Where the data of one generation stands among its scan's generations.

    Attributes:
        opened: the generation that satisfies the wish.
        read_at: when its newest page was read.
        now: when that was asked.
        newer: generations after it that do not satisfy it, oldest first, with what became of each.
        schedule: when the scan begins its generations; None where nothing says so.
    """

    opened: str
    read_at: datetime
    now: datetime
    newer: tuple[tuple[str, str], ...] = ()
    schedule: Schedule | None = None

    @property
    def age(self) -> timedelta:
        """Time since its newest page was read."""
        return self.now - self.read_at

    @property
    def is_ahead(self) -> bool:
        """Whether it was read after now, so that one of the clocks is wrong."""
        return self.age < -AHEAD

    @property
    def timeliness(self) -> Timeliness | None:
        """How its age stands to the schedule; None without one."""
        return _timeliness(self.schedule, read_at=self.read_at, now=self.now)

    @property
    def is_late(self) -> bool:
        """Whether it is older than one period of its schedule plus half, or of no certain age."""
        held = self.timeliness
        return self.is_ahead or (held is not None and held.late)

    def word(self) -> str:
        """Return it as one sentence."""
        return self._said(why=True)

    def plain_word(self) -> str:
        """Return the sentence without reasons, which may name keys and counts of records."""
        return self._said(why=False)

    def late_word(self) -> str | None:
        """Return that it is late, and since when nothing else came; None where it is not.

        Nothing here names or counts records.
        """
        if self.is_ahead:
            return f"data of generation {self.opened}, {self._old()}"
        held = self.timeliness
        if held is None or not held.late:
            return None
        return f"data of {held.ago()} is late: {held.word()}"

    def _said(self, *, why: bool) -> str:
        held = self.timeliness
        when = "" if held is None or self.is_ahead else f"{held.ago()}, "
        said = f"data of {when}generation {self.opened}, {self._old()}"
        idle = held
        if self.newer:
            generation, became = self.newer[-1]
            said += f"; {self._named(generation)} {became if why else NOT_ACCEPTED}"
            idle = _timeliness(self.schedule, read_at=begun_at(generation), now=self.now)
        if idle is not None and idle.late:
            said += f"; {idle.word()}"
        return said

    def _old(self) -> str:
        days = self.age.total_seconds() / 86_400
        if self.is_ahead:
            return f"read {-days:.2f} days after now: a clock is wrong, and its age is not known"
        return f"{days:.1f} days old"

    def _named(self, generation: str) -> str:
        """Return a newer generation by when it was due, else by its name alone."""
        held, schedule = self.timeliness, self.schedule
        if held is not None and schedule is not None:
            passed = ticks_between(schedule, begun_at(generation), self.now)
            if passed != held.passed:  # else it is of the same night as the data itself
                return f"{ago(passed, unit=held.unit)}, {generation},"
        return f"the newer generation {generation}"


def check_age(receipt: Receipt, *, max_age: timedelta | None, now: datetime) -> None:
    """Refuse a generation whose newest page was read longer ago than is allowed.

    Args:
        receipt: of the generation.
        max_age: what is allowed; None for any age.
        now: the present.

    Raises:
        GateClosedError: it is older.
    """
    age = now - observed_at(receipt)
    if max_age is None or is_young_enough(age, max_age=max_age):
        return
    told = f"{age} ago; expected at most {max_age}. Run the scan again, or accept older data"
    if age < -AHEAD:
        told = f"{-age} after now; expected at most {max_age} ago. A clock is wrong: set it right"
    raise GateClosedError(
        scan=receipt.scan,
        generation=receipt.scan_generation,
        reason=f"it was read from its source {told}",
    )


def is_young_enough(age: timedelta, *, max_age: timedelta) -> bool:
    """Say whether an age is within a bound; one that lies in the future is within none."""
    return -AHEAD <= age <= max_age


def observed_at(receipt: Receipt) -> datetime:
    """Return when the newest page of a generation was read."""
    return datetime.fromisoformat(receipt.last_page_at or receipt.observation_started_at)


def begun_at(generation: str) -> datetime:
    """Return the moment in a generation's name, UTC; of an attempt, that of the first one."""
    return datetime.strptime(generation.partition(".")[0], GENERATION_FORMAT).replace(tzinfo=UTC)


def what_became(receipt: Receipt) -> str:
    """Return in a few words what became of a generation that does not open the whole."""
    if receipt.coverage_status == "failed" and receipt.reasons:
        return f"failed: {receipt.reasons[0]}"
    became = "was accepted for less than the whole" if receipt.accepted else NOT_ACCEPTED
    return f"{became}: {why_closed(receipt)}"


def _timeliness(
    schedule: Schedule | None, *, read_at: datetime, now: datetime
) -> Timeliness | None:
    """Return how a moment stands to a schedule; a schedule of old that cannot be read says none."""
    if schedule is None or any(schedule_problems(schedule)):
        return None
    return timeliness(schedule, read_at=read_at, now=now)
