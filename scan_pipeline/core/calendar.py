"""When a schedule's generations are due, and when what was read counts as late.

Ticks follow Debian's cron through the changes of summer time, as cronsim has it (cronsim 2.8,
README and CHANGELOG, read 2026-11-30); an hour that the clock skips is served right after it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.value import record

Unit: TypeAlias = Literal["minute", "hour", "day", "night", "week", "month", "scheduled run"]
"""What one period of a schedule is called; `scheduled run` where periods differ in length."""

MOST_COUNTED: Final = 1000
"""Ticks that are counted at most: what is older than that is old enough."""

_LOOKED_AT: Final = 8
"""Ticks by which a period is told: a week of working days shows its weekend in them."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)

_UNITS: Final[tuple[tuple[timedelta, timedelta, Unit], ...]] = (
    (timedelta(minutes=1), timedelta(minutes=1), "minute"),
    (_HOUR, _HOUR, "hour"),
    (23 * _HOUR, 25 * _HOUR, "day"),
    (7 * _DAY - _HOUR, 7 * _DAY + _HOUR, "week"),
    (28 * _DAY - _HOUR, 31 * _DAY + _HOUR, "month"),
)
"""The shortest and longest period of each unit; a change of summer time moves one by an hour."""

_NIGHT: Final = (18, 7)
"""A daily tick is of the night from this hour on, and before that one, in the schedule's zone."""


@record
class Timeliness:
    """How data stands to the schedule of its scan.

    Attributes:
        unit: what one period is called.
        passed: ticks since the data was read, at most `MOST_COUNTED`.
        read_on: the day on which it was read, in the schedule's time zone, ISO 8601.
        late_at: when it counts as late, UTC.
        late: whether it does now.
    """

    unit: Unit
    passed: int
    read_on: str
    late_at: datetime
    late: bool

    def ago(self) -> str:
        """Return how many periods old the data is: `last night`, `3 nights ago`."""
        return ago(self.passed, unit=self.unit)

    def word(self) -> str:
        """Return that nothing came since the data was read, and how often something is due."""
        return f"no generation since {self.read_on}, one is due every {self.unit}"


def schedule_problems(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a schedule: the field, and what was found and expected."""
    try:
        _zone(schedule)
    except ContractError as error:
        yield "timezone", str(error)
        return
    try:
        next(ticks_after(schedule, datetime(2026, 1, 1, tzinfo=UTC)), None)
    except ContractError as error:
        yield "cron", str(error)


def ticks_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """Yield the ticks after a moment, in UTC, in order and without end.

    Args:
        schedule: of a scan.
        moment: any time with a zone.

    Raises:
        ContractError: the schedule cannot be read, or ticks less than once in fifty years.
    """
    for tick in _walk(schedule, moment, backwards=False):
        if tick > moment:
            yield tick


def last_tick(schedule: Schedule, moment: datetime) -> datetime:
    """Return the last tick at a moment or before it, in UTC; raises as `ticks_after`."""
    found = _walk(schedule, moment.replace(microsecond=0) + timedelta(minutes=1), backwards=True)
    return next(tick for tick in found if tick <= moment)


def ticks_between(schedule: Schedule, after: datetime, until: datetime) -> int:
    """Return how many ticks lie after one moment and not after another, at most `MOST_COUNTED`."""
    counted = 0
    for tick in islice(ticks_after(schedule, after), MOST_COUNTED):
        if tick > until:
            break
        counted += 1
    return counted


def late_after(schedule: Schedule, read_at: datetime) -> datetime:
    """Return when data counts as late that was read at a moment: after one period plus half."""
    return next(ticks_after(schedule, read_at)) + grace(schedule, read_at)


def grace(schedule: Schedule, moment: datetime) -> timedelta:
    """Return how long the generation of the next tick may take to come: half a period.

    Of a weekend beside working days, it is half of the shorter one.
    """
    due, following = islice(ticks_after(schedule, moment), 2)
    return min(due - last_tick(schedule, moment), following - due) / 2


def longest_silence(schedule: Schedule, *, at: datetime) -> timedelta:
    """Return how long nothing may come, whatever the day: the longest period plus a grace."""
    gaps = _periods(schedule, at=at)
    return max(gaps) + min(gaps) / 2


def timeliness(schedule: Schedule, *, read_at: datetime, now: datetime) -> Timeliness:
    """Say how data that was read at a moment stands to its schedule."""
    late_at = late_after(schedule, read_at)
    return Timeliness(
        unit=unit_of(schedule, at=read_at),
        passed=ticks_between(schedule, read_at, now),
        read_on=read_at.astimezone(_zone(schedule)).date().isoformat(),
        late_at=late_at,
        late=now > late_at,
    )


def ago(passed: int, *, unit: Unit) -> str:
    """Return in words how many ticks ago something was; none for the period that runs.

    Last night is one night ago to everyone; other periods are counted as they pass.
    """
    if unit == "night":
        return "last night" if passed == 0 else f"{passed + 1} nights ago"
    if passed == 0:
        return f"the last {unit}"
    more = "more than " if passed >= MOST_COUNTED else ""
    return f"{more}{passed} {unit}{'' if passed == 1 else 's'} ago"


def unit_of(schedule: Schedule, *, at: datetime) -> Unit:
    """Return what one period of a schedule is called."""
    last, gaps = last_tick(schedule, at), _periods(schedule, at=at)
    for shortest, longest, unit in _UNITS:
        if shortest <= min(gaps) and max(gaps) <= longest:
            hour = last.astimezone(_zone(schedule)).hour
            by_night = unit == "day" and (hour >= _NIGHT[0] or hour < _NIGHT[1])
            return "night" if by_night else unit
    return "scheduled run"


def _periods(schedule: Schedule, *, at: datetime) -> list[timedelta]:
    """Return the lengths of the periods around a moment and after it."""
    last = last_tick(schedule, at)
    ticks = [last, *islice(ticks_after(schedule, last), _LOOKED_AT)]
    return [later - earlier for earlier, later in pairwise(ticks)]


def _walk(schedule: Schedule, moment: datetime, *, backwards: bool) -> Iterator[datetime]:
    fields = schedule.cron.split()
    if len(fields) != 5:
        raise ContractError(
            f"found {schedule.cron!r}, {len(fields)} fields; expected the five of cron: minute, "
            'hour, day of month, month, day of week, as in "0 2 * * *"'
        )
    try:
        found = CronSim(schedule.cron, moment.astimezone(_zone(schedule)), reverse=backwards)
    except CronSimError as error:
        raise ContractError(
            f"found {schedule.cron!r}, {str(error).lower()}; expected the five fields of cron: "
            'minute, hour, day of month, month, day of week, as in "0 2 * * *"'
        ) from error
    empty = True
    for tick in found:
        empty = False
        yield tick.astimezone(UTC)
    if empty:
        raise ContractError(
            f"found {schedule.cron!r}, a day that never comes; expected one that does"
        )


def _zone(schedule: Schedule) -> ZoneInfo:
    try:
        return ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ContractError(
            f"found the time zone {schedule.timezone!r}; expected a name of the IANA time zone "
            "database, as in Europe/Berlin or UTC"
        ) from error
