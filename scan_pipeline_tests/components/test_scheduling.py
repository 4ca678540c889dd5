"""What keeps a tick from beginning a generation: an outage, and one that is under way."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.components.test_settling import COMMIT_EACH, broken_off

TICK = datetime(2026, 11, 30, 2, tzinfo=UTC)
LAST_NIGHT, NIGHT = "20261129T020000Z", "20261130T020000Z"
QUEUE = {"schedule": {"cron": "0 2 * * *", "timezone": "UTC", "overlap": "queue"}}


def working(opened: Any, generation: str, status: dg.DagsterRunStatus, **tags: str) -> str:
    """Let an unfinished run work on a generation; return its id."""
    run = dg.DagsterRun(
        job_name="customers_generation",
        tags={"dagster/partition": generation, **tags},
        status=status,
    )
    return opened.instance.add_run(run).run_id


def test_ten_nights_of_outage_are_one_generation(station: Callable[..., Any], bench: Any) -> None:
    """The daemon catches up with every tick it missed; the last one alone begins something."""
    opened = station(persistent=True)
    bench.clock.now = TICK + timedelta(days=9, hours=7)
    missed = [TICK + timedelta(days=night) for night in (0, 8, 9)]  # as all between the first two
    told = [opened.due(at) for at in missed]

    asked = [each.partition_key for tick in told for each in tick.run_requests or ()]
    assert asked == ["20261209T020000Z"]
    assert "20261201T020000Z was due since: one generation serves all" in told[0].skip_message
    assert opened.instance.get_dynamic_partitions("customers_generations") == asked


@pytest.mark.parametrize("edits", [{}, QUEUE], ids=["refuse", "queue"])
def test_overlap_is_refused_or_queued_by_choice(station: Callable[..., Any], edits: Any) -> None:
    """Last night's run goes on still; under `queue` one waits behind it, and never two."""
    opened = station(None, edits, persistent=True)
    run = working(opened, LAST_NIGHT, dg.DagsterRunStatus.STARTED)
    tick = opened.due()

    if not edits:
        assert not tick.run_requests
        assert f"{LAST_NIGHT} is under way in run {run}" in tick.skip_message
        return
    assert [each.partition_key for each in tick.run_requests] == [NIGHT]
    working(opened, NIGHT, dg.DagsterRunStatus.NOT_STARTED, **{"dagster/run_key": NIGHT})
    assert opened.due().run_requests == tick.run_requests  # the same tick, asked again
    following = opened.due(TICK + timedelta(days=1))
    assert not following.run_requests
    assert f"{NIGHT} waits to be begun: it serves this tick" in following.skip_message


def test_walk_of_somebody_else_is_under_way_as_long_as_it_moves(
    station: Callable[..., Any], bench: Any
) -> None:
    """The command line walks on another host: the ledger says so, for half a day."""
    opened = station(None, COMMIT_EACH, persistent=True)
    bench.clock.now = TICK - timedelta(hours=6)
    evening = "20261129T200000Z"
    broken_off(opened, evening)
    bench.clock.now = TICK
    refused = opened.due()
    bench.clock.now = TICK + timedelta(hours=7)
    begun = opened.due()

    assert not refused.run_requests
    assert f"{evening} is open, and its walk moved at 2026-11-29T20:00:00+00:00" in (
        refused.skip_message
    )
    assert [each.partition_key for each in begun.run_requests] == [NIGHT]


def test_runs_over_what_is_certified_keep_no_tick_from_its_own(
    station: Callable[..., Any], bench: Any
) -> None:
    """A backfill judges past nights again, and somebody's partition is no generation."""
    opened = station(persistent=True)
    bench.clock.now = TICK - timedelta(days=1)
    run_scan(opened.scan, workspace=opened.workspace)
    bench.clock.now = TICK
    working(opened, LAST_NIGHT, dg.DagsterRunStatus.STARTED, **{"dagster/backfill": "b"})
    working(opened, "tomorrow.maybe", dg.DagsterRunStatus.STARTED)

    assert [each.partition_key for each in opened.due().run_requests] == [NIGHT]
