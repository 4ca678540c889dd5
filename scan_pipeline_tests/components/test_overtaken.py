"""A generation that a newer one overtook before it began: nobody's night fails for it."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.components.overtaken import GENERATION_TAG
from scan_pipeline.simulator.scenarios import scenario

pytestmark = pytest.mark.long

NIGHT, BY_HAND = "20261130T020000Z", "20261130T020003Z"
PARTITIONS = "customers_generations"
SCHEDULED = {"dagster/schedule_name": "customers_schedule"}


def followed(opened: Any, ran: Any) -> Any:
    """Evaluate the sensor that looks at a run that was canceled."""
    sensor = opened.definitions.get_repository_def().get_sensor_def("customers_follow")
    events = ran.result.all_events
    context = dg.build_run_status_sensor_context(
        sensor_name="customers_follow",
        dagster_event=next(e for e in events if e.event_type_value == "PIPELINE_CANCELED"),
        dagster_instance=opened.instance,
        dagster_run=opened.instance.get_run_by_id(ran.result.run_id),
    )
    return sensor(context)


def not_accepted(station: Callable[..., Any]) -> Any:
    """Open a station whose nights are never accepted; one was begun by hand after the tick."""
    opened = station(scenario("page_skipped"), {"contract.limits": {"pages": 20}}, persistent=True)
    opened.stages(BY_HAND)
    assert not opened.receipt(BY_HAND).receipt.accepted
    return opened


def test_tick_after_a_newer_generation_is_named_after_it(station: Callable[..., Any]) -> None:
    """The clock of another host runs ahead: the night's name sorts last, its run is the tick's."""
    opened = not_accepted(station)
    first, again = opened.due(), opened.due()
    ran = opened.stages(f"{BY_HAND}.2", tags=SCHEDULED)

    request = first.run_requests[0]
    assert (request.run_key, request.partition_key) == (NIGHT, f"{BY_HAND}.2")
    assert again.run_requests == first.run_requests
    assert f"{BY_HAND}.2" in opened.instance.get_dynamic_partitions(PARTITIONS)
    assert ran.made[-1] == "customers/receipt"


def test_tick_that_a_newer_generation_serves_is_skipped(station: Callable[..., Any]) -> None:
    """Somebody began one after the tick's time, and it is accepted."""
    opened = station(persistent=True)
    opened.stages(BY_HAND)
    asked = opened.due()

    assert not asked.run_requests
    assert f"{BY_HAND} was begun after {NIGHT} and is accepted" in asked.skip_message
    assert NIGHT not in opened.instance.get_dynamic_partitions(PARTITIONS)


def test_scheduled_run_that_was_overtaken_is_followed_by_a_newer_one(
    station: Callable[..., Any],
) -> None:
    """It waited in the queue: it ends canceled, not failed, and another takes its place."""
    opened = not_accepted(station)
    ran = opened.stages(NIGHT, tags=SCHEDULED)
    asked = followed(opened, ran)
    following = f"{BY_HAND}.2"

    run = opened.instance.get_run_by_id(ran.result.run_id)
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert run.tags[GENERATION_TAG] == following
    assert ran.made == []
    assert f"{following} takes its place" in ran.failures["customers__pages"]
    assert (asked.run_key, asked.partition_key) == (following, following)
    assert opened.stages(following, tags=SCHEDULED).made[-1] == "customers/receipt"


def test_scheduled_run_that_a_newer_one_serves_is_followed_by_none(
    station: Callable[..., Any],
) -> None:
    """The night has its accepted generation: nothing is walked twice."""
    opened = station(persistent=True)
    opened.stages(BY_HAND)
    ran = opened.stages(NIGHT, tags=SCHEDULED)
    asked = followed(opened, ran)

    assert f"{BY_HAND} was begun meanwhile and is accepted" in ran.failures["customers__pages"]
    assert isinstance(asked, dg.SkipReason)
    assert opened.workspace.receipts("customers").generations() == [BY_HAND]


def test_old_partition_chosen_by_hand_is_refused(station: Callable[..., Any]) -> None:
    """Whoever asks for a name is told that it is too old; nothing else is begun for it."""
    opened = station()
    opened.stages(BY_HAND)
    ran = opened.stages(NIGHT)

    assert f"found {BY_HAND}, which sorts after it" in ran.failures["customers__pages"]
    assert opened.instance.get_run_by_id(ran.result.run_id).status is dg.DagsterRunStatus.FAILURE


def test_expired_generation_that_was_overtaken_is_not_begun_again(
    station: Callable[..., Any],
) -> None:
    """The command line began a newer one: another attempt of the old one could only hide."""
    opened = station(scenario("snapshot_expires"), persistent=True)
    opened.stages()
    opened.opened.pipeline(BY_HAND).pages()
    asked = opened.tick("customers_restart")

    assert not asked.run_requests
    assert f"{BY_HAND} was begun since" in asked.skip_message


def test_tick_over_a_lake_that_cannot_be_read_is_left_to_its_run(
    station: Callable[..., Any],
) -> None:
    """The run fails where people look, and says why; the tick goes through."""
    opened = station(persistent=True)
    log = opened.workspace.lake.table_uri("evidence", "customers", "pages") + "/_delta_log"
    opened.workspace.lake.write_once(f"{log}/00000000000000000000.json", b"not a table")

    assert opened.due().run_requests[0].partition_key == NIGHT
