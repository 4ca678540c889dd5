"""Generations that were certified outside their run become visible by a run of the stages."""

from collections.abc import Callable
from typing import Any

from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan

NIGHT = "20261130T020000Z"


def test_generation_of_the_command_line_is_shown(station: Callable[..., Any]) -> None:
    """The lake has a receipt that Dagster does not know: a run shows it and writes nothing."""
    opened = station(persistent=True)
    stored = run_scan(opened.scan, workspace=opened.workspace).stored
    generation = stored.receipt.scan_generation
    asked = opened.tick("customers_lake")

    assert [each.partition_key for each in asked.run_requests] == [generation]
    assert asked.dynamic_partitions_requests[0].partition_keys == [generation]
    ran = opened.stages(generation)
    assert ran.success
    assert set(ran.verdicts.values()) == {True}
    assert opened.receipt(generation) == stored
    assert ran.told("customers/receipt")["scan_pipeline/receipt_id"] == stored.receipt_id


def test_what_is_known_is_not_shown_again(station: Callable[..., Any]) -> None:
    """A generation that its own run told of asks for nothing."""
    opened = station(persistent=True)
    opened.stages()
    asked = opened.tick("customers_lake")

    assert not asked.run_requests
    assert asked.skip_message == "every receipt of the lake is known"


def test_expired_attempts_of_the_command_line_are_shown_and_not_begun_again(
    station: Callable[..., Any],
) -> None:
    """The command line made both attempts; the restart sensor leaves them alone."""
    opened = station(scenario("snapshot_expires"), persistent=True)
    night = run_scan(opened.scan, workspace=opened.workspace)
    names = [each.receipt.scan_generation for each in (*night.earlier, night.stored)]
    asked = opened.tick("customers_lake")

    assert [each.partition_key for each in asked.run_requests] == list(reversed(names))
    first = opened.stages(names[0])
    assert not first.success
    assert not opened.tick("customers_restart").run_requests


def test_restaged_generation_is_shown_with_the_pages_it_rests_on(
    station: Callable[..., Any],
) -> None:
    """Its evidence is another generation's; its receipt is its own."""
    opened = station()
    opened.stages()
    again = restage(opened.scan, NIGHT, workspace=opened.workspace)
    generation = again.receipt.scan_generation
    ran = opened.stages(generation)

    assert ran.success
    assert ran.told("customers/pages")["pages"] == 10
    assert ran.told("customers/receipt")["scan_pipeline/receipt_id"] == again.receipt_id
