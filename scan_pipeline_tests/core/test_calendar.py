"""Ticks of a schedule, what a period is called, and when data is late."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from scan_pipeline.core.calendar import (
    MOST_COUNTED,
    last_tick,
    late_after,
    schedule_problems,
    ticks_after,
    ticks_between,
    timeliness,
    unit_of,
)
from scan_pipeline.core.operation import Schedule

NIGHTLY = Schedule(cron="0 2 * * *")
READ = datetime(2026, 11, 27, 2, 0, 3, tzinfo=UTC)  # a Friday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "ago", "late"),
    [
        ("2026-11-28T01:59", "last night", False),
        ("2026-11-28T02:00", "2 nights ago", False),
        ("2026-11-28T14:00", "2 nights ago", False),
        ("2026-11-28T14:01", "2 nights ago", True),
        ("2026-11-29T12:00", "3 nights ago", True),
    ],
)
def test_a_nightly_scan_is_late_after_a_period_and_a_half(now: str, ago: str, late: bool) -> None:
    held = timeliness(NIGHTLY, read_at=READ, now=at(now))

    assert (held.ago(), held.late) == (ago, late)
    assert held.word() == "no generation since 2026-11-27, one is due every night"


@pytest.mark.parametrize(
    ("cron", "zone", "unit", "late_at"),
    [
        ("* * * * *", "UTC", "minute", "2026-11-27T02:01:30"),
        ("0 * * * *", "UTC", "hour", "2026-11-27T03:30"),
        ("0 12 * * *", "UTC", "day", "2026-11-28T00:00"),
        ("0 2 * * *", "Asia/Tokyo", "night", "2026-11-28T05:00"),
        ("0 9 * * 1", "UTC", "week", "2026-12-03T21:00"),
        ("0 2 1 * *", "UTC", "month", "2026-12-16T02:00"),
        ("0 2 * * 1-5", "UTC", "scheduled run", "2026-11-30T14:00"),  # Monday's noon, not Tuesday's
        ("0 2,4 * * *", "UTC", "scheduled run", "2026-11-27T05:00"),
    ],
)
def test_periods_have_their_names_and_their_grace(
    cron: str, zone: str, unit: str, late_at: str
) -> None:
    schedule = Schedule(cron=cron, timezone=zone)

    assert unit_of(schedule, at=READ) == unit
    assert late_after(schedule, READ) == at(late_at)


def test_summer_time_neither_doubles_a_night_nor_loses_one() -> None:
    """02:30 does not exist on 2026-03-29 in Berlin and comes twice on 2026-10-25."""
    berlin = Schedule(cron="30 2 * * *", timezone="Europe/Berlin")
    spring = islice(ticks_after(berlin, at("2026-03-28T12:00")), 2)
    autumn = islice(ticks_after(berlin, at("2026-10-24T12:00")), 2)

    assert list(spring) == [at("2026-03-29T01:00"), at("2026-03-30T00:30")]
    assert list(autumn) == [at("2026-10-25T00:30"), at("2026-10-26T01:30")]
    assert unit_of(berlin, at=at("2026-03-27T12:00")) == "night"


def test_a_tick_is_the_last_one_at_its_own_moment() -> None:
    tick = at("2026-11-27T02:00")

    assert last_tick(NIGHTLY, tick) == tick
    assert last_tick(NIGHTLY, tick - timedelta(microseconds=1)) == tick - timedelta(days=1)
    assert ticks_between(NIGHTLY, tick, tick) == 0
    assert ticks_between(NIGHTLY, tick, tick + timedelta(days=3)) == 3
    assert ticks_between(Schedule(cron="* * * * *"), tick, at("2036-01-01T00:00")) == MOST_COUNTED


@pytest.mark.parametrize(
    ("schedule", "field", "told"),
    [
        (Schedule(cron="@daily"), "cron", "1 fields; expected the five of cron"),
        (Schedule(cron="0 2 * * * *"), "cron", "6 fields; expected the five of cron"),
        (Schedule(cron="0 25 * * *"), "cron", "bad hour; expected the five fields of cron"),
        (Schedule(cron="0 0 30 2 *"), "cron", "bad day-of-month; expected"),
        (Schedule(cron="0 2 * * *", timezone="Mars/Base"), "timezone", "'Mars/Base'; expected a"),
        (Schedule(cron="0 2 * * *", timezone="../../etc/passwd"), "timezone", "expected a name"),
    ],
)
def test_what_is_no_schedule_is_told_with_what_was_expected(
    schedule: Schedule, field: str, told: str
) -> None:
    ((named, message),) = schedule_problems(schedule)

    assert named == field
    assert told in message


def test_a_leap_day_is_a_schedule() -> None:
    assert list(schedule_problems(Schedule(cron="0 0 29 2 *"))) == []
