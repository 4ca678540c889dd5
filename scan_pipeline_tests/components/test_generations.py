"""How generations begin: by one click, by the clock, and again after an expiry."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.components.overtaken import GENERATION_TAG
from scan_pipeline.simulator.faults import SnapshotExpired
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import Script

NIGHT = "20261130T020000Z"
PARTITIONS = "customers_generations"


def clicked(opened: Any) -> dg.ExecuteInProcessResult:
    job = opened.definitions.resolve_job_def("customers_new_generation")
    return job.execute_in_process(instance=opened.instance)


def test_click_names_a_generation_and_no_more(station: Callable[..., Any]) -> None:
    """The job makes the partition after the present second, tags its run, and walks nothing."""
    opened = station()
    result = clicked(opened)

    assert result.success
    assert opened.instance.get_dynamic_partitions(PARTITIONS) == [NIGHT]
    run = opened.instance.get_run_by_id(result.run_id)
    assert run.tags[GENERATION_TAG] == NIGHT
    assert opened.workspace.receipts("customers").generations() == []


def test_two_clicks_in_one_second_are_two_generations(
    station: Callable[..., Any], bench: Any
) -> None:
    """A name that Dagster holds is taken, also where nothing was walked yet."""
    still = datetime(2026, 11, 30, 2, tzinfo=UTC)
    opened = station(workspace=bench.workspace(bench.registry(), clock=lambda: still))
    clicked(opened)
    clicked(opened)

    assert opened.instance.get_dynamic_partitions(PARTITIONS) == [NIGHT, f"{NIGHT}.2"]


def test_sensor_begins_the_generation_that_a_click_named(station: Callable[..., Any]) -> None:
    """Once, in a run of the generation's job, with the generation as its partition."""
    opened = station()
    result = clicked(opened)
    repository = opened.definitions.get_repository_def()
    launch = repository.get_sensor_def("customers_launch")
    event = next(e for e in result.all_events if e.event_type_value == "PIPELINE_SUCCESS")
    context = dg.build_run_status_sensor_context(
        sensor_name="customers_launch",
        dagster_event=event,
        dagster_instance=opened.instance,
        dagster_run=opened.instance.get_run_by_id(result.run_id),
    )
    request = launch(context)

    assert (request.run_key, request.partition_key) == (NIGHT, NIGHT)
    assert launch.job_name == "customers_generation"
    assert launch.default_status is dg.DefaultSensorStatus.RUNNING


def test_schedule_names_its_generation_after_the_tick(station: Callable[..., Any]) -> None:
    """One generation a tick; evaluating a tick again changes nothing."""
    opened = station(persistent=True)
    repository = opened.definitions.get_repository_def()
    schedule = repository.get_schedule_def("customers_schedule")

    def tick(hour: int) -> Any:
        return schedule.evaluate_tick(
            dg.build_schedule_context(
                instance=opened.instance,
                repository_def=repository,
                resources={opened.face.resource: opened.opened},
                scheduled_execution_time=datetime(2026, 11, 30, hour, tzinfo=UTC),
            )
        )

    first, again, second = tick(2), tick(2), tick(3)

    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 2 * * *", "UTC")
    assert schedule.job_name == "customers_generation"
    request = first.run_requests[0]
    assert (request.run_key, request.partition_key) == (NIGHT, NIGHT)
    assert request.tags["dagster/partition"] == NIGHT
    assert again.run_requests == first.run_requests
    assert second.run_requests[0].partition_key == "20261130T030000Z"
    assert opened.instance.get_dynamic_partitions(PARTITIONS) == [NIGHT, "20261130T030000Z"]


@pytest.mark.long
def test_tick_in_another_timezone_is_named_in_utc(station: Callable[..., Any]) -> None:
    """02:00 in Berlin is 01:00 in UTC in winter."""
    opened = station(
        None, {"schedule": {"cron": "0 2 * * *", "timezone": "Europe/Berlin"}}, persistent=True
    )
    repository = opened.definitions.get_repository_def()
    schedule = repository.get_schedule_def("customers_schedule")
    moment = datetime.fromisoformat("2026-11-30T02:00:00+01:00")
    ticked_at = schedule.evaluate_tick(
        dg.build_schedule_context(
            instance=opened.instance,
            repository_def=repository,
            resources={opened.face.resource: opened.opened},
            scheduled_execution_time=moment,
        )
    )

    assert ticked_at.run_requests[0].partition_key == "20261130T010000Z"


def test_scan_without_schedule_has_none(station: Callable[..., Any]) -> None:
    """Nothing runs by the clock that does not say so."""
    opened = station(None, {"schedule": ...})

    assert list(opened.definitions.get_repository_def().schedule_defs) == []


def test_expired_generation_is_followed_by_another_attempt(station: Callable[..., Any]) -> None:
    """The snapshot is gone at page five, once: the second attempt goes through and says so."""
    opened = station(scenario("snapshot_expires"), persistent=True)
    first = opened.stages()
    asked = opened.tick("customers_restart")
    second = opened.stages(f"{NIGHT}.2")

    assert first.told("customers/receipt")["scan_pipeline/stop_reason"] == "snapshot_expired"
    assert not first.success
    assert [each.partition_key for each in asked.run_requests] == [f"{NIGHT}.2"]
    assert asked.dynamic_partitions_requests[0].partition_keys == [f"{NIGHT}.2"]
    assert second.success
    assert second.told("customers/receipt")["restart_of"] == NIGHT


@pytest.mark.long
def test_attempts_are_bounded(station: Callable[..., Any], bench: Any) -> None:
    """Two restarts are allowed: the third attempt is the last."""
    registry = bench.registry(script=Script(faults=(SnapshotExpired(page=5),)))
    opened = station(registry, {"operation.restarts": 2}, persistent=True)
    names = [NIGHT]
    while True:
        opened.stages(names[-1])
        asked = opened.tick("customers_restart")
        if not asked.run_requests:
            break
        names.append(asked.run_requests[0].partition_key)

    assert names == [NIGHT, f"{NIGHT}.2", f"{NIGHT}.3"]
    assert "no attempt follows" in asked.skip_message
    assert opened.receipt(f"{NIGHT}.3").receipt.restart_of == f"{NIGHT}.2"


@pytest.mark.long
@pytest.mark.parametrize("name", ["clean", "page_skipped"])
def test_what_did_not_expire_is_not_begun_again(station: Callable[..., Any], name: str) -> None:
    """Neither an accepted night nor broken evidence is a reason for another attempt."""
    opened = station(scenario(name), {"contract.limits": {"pages": 20}}, persistent=True)
    opened.stages()
    asked = opened.tick("customers_restart")

    assert not asked.run_requests
    assert "no attempt follows" in asked.skip_message


@pytest.mark.long
def test_restart_waits_for_the_newest_generation(station: Callable[..., Any]) -> None:
    """An expired night is history once another generation was named."""
    opened = station(scenario("snapshot_expires"), persistent=True)
    opened.stages()
    clicked(opened)
    asked = opened.tick("customers_restart")

    assert not asked.run_requests
    assert "has no receipt yet" in asked.skip_message


def test_partition_of_any_other_name_is_no_generation(station: Callable[..., Any]) -> None:
    """Someone added one by hand: its run refuses in words, and the sensors pass over it."""
    opened = station(persistent=True)
    ran = opened.stages("tomorrow.maybe")
    asked = opened.tick("customers_restart")

    assert "found the generation 'tomorrow.maybe'" in ran.failures["customers__pages"]
    assert not asked.run_requests
