"""The cases of the families `gate` and `checkpoint` that concern Dagster, in one of their own.

`report` of the cases is an analysis declared with `verified_asset`; `coverage` is the verdict of
the scan's receipt.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.cases.replay import field_case

# `evaluate_automation_conditions` warns of its own use of a beta parameter.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

LAST_NIGHT = "20261129T020000Z"
NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
REPORT = [["analyses", "total"]]


def requested(opened: Any, cursor: Any = None) -> tuple[frozenset[str | None], Any]:
    """Evaluate all conditions once; return the reports asked for, and the cursor."""
    told = dg.evaluate_automation_conditions(
        defs=opened.definitions, instance=opened.instance, cursor=cursor
    )
    return frozenset(told.get_requested_partitions(dg.AssetKey(REPORT[0]))), told.cursor


def test_c116_report_runs_behind_no_failed_check(station: Callable[..., Any]) -> None:
    """In the run of the check, by automation, and chosen alone by hand."""
    told = field_case("C116")
    opened = station(scenario("page_skipped"))
    _, cursor = requested(opened)

    together = opened.run()
    automatic, _ = requested(opened, cursor)
    by_hand = opened.run(only=REPORT)

    assert together.verdicts["receipt_accepted"] is told["scenario"]["steps"][1]["passed"]
    ran = {"analyses/total"} & {*together.made, *by_hand.made} or automatic
    assert bool(ran) is told["expected"]["report_runs"]
    assert "coverage is failed" in by_hand.failures["analyses__total"]


def test_c116_report_by_hand_is_stopped_by_a_check_that_blocks_nothing(
    station: Callable[..., Any],
) -> None:
    """A count that is missed fails a check that blocks nothing; the report reads the receipt."""
    told = field_case("C116")
    opened = station(None, {"contract.limits": {"pages": 3}})
    stages = opened.stages()
    failed = {name for name, passed in stages.verdicts.items() if not passed}

    assert failed - {"receipt_accepted"}
    ran = opened.run(only=REPORT)
    assert ("analyses/total" in ran.made) is told["expected"]["report_runs"]


def test_c117_report_does_not_run_without_a_verdict(station: Callable[..., Any]) -> None:
    """The scan's records are there, its check was never evaluated, and other nights have theirs."""
    told = field_case("C117")
    opened = station()
    opened.stages(NIGHT)
    _, cursor = requested(opened)
    opened.run(NEXT_NIGHT, only=[["customers", "pages"], ["customers", "records"]])

    automatic, _ = requested(opened, cursor)
    by_hand = opened.run(NEXT_NIGHT, only=REPORT)

    assert (NEXT_NIGHT in automatic) is told["expected"]["report_runs"]
    assert ("analyses/total" in by_hand.made) is told["expected"]["report_runs"]
    assert "no receipt" in by_hand.failures["analyses__total"]


def test_c117_verdict_that_could_not_be_computed_is_none(
    station: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that gives the verdict breaks: no evaluation is left, and nothing is released."""
    told = field_case("C117")
    opened = station()
    _, cursor = requested(opened)
    opened.run(only=[["customers", "pages"], ["customers", "records"]])
    opened.workspace.project.trust.write_text("{}")

    broken = opened.run(only=[["customers", "reconciliation"], ["customers", "receipt"], *REPORT])
    automatic, _ = requested(opened, cursor)

    assert "receipt_accepted" not in broken.verdicts
    assert "customers__receipt" in broken.failures
    assert ("analyses/total" in broken.made) is told["expected"]["report_runs"]
    assert bool(automatic) is told["expected"]["report_runs"]


def test_c100_partition_whose_run_was_dropped_opens_nothing_and_runs_by_hand(
    station: Callable[..., Any], bench: Any
) -> None:
    """Partitions were added, their runs were not launched: what is missing is the receipt."""
    told = field_case("C100")
    added = told["scenario"]["steps"][0]["add_partitions"]
    nights = dict(zip(added, (NIGHT, NEXT_NIGHT), strict=True))
    opened = station()
    bench.clock.now -= timedelta(days=1)
    opened.stages(LAST_NIGHT)
    bench.clock.now += timedelta(days=1)
    opened.instance.add_dynamic_partitions(opened.face.partitions.name, list(nights.values()))

    for name, generation in nights.items():
        assert told["expected"]["partitions"][name] == "needs_run"
        refused = opened.run(generation, only=REPORT)
        assert "no receipt" in refused.failures["analyses__total"]
        assert opened.stages(generation).success
        assert "analyses/total" in opened.run(generation, only=REPORT).made


def test_c100_what_dagster_was_not_told_of_is_told_at_the_next_look(
    station: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receipts are held against what Dagster has seen; no run is asked for that could be lost."""
    told = field_case("C100")
    opened = station(persistent=True)
    generation = run_scan(opened.scan, workspace=opened.workspace).stored.receipt.scan_generation
    asked, whole = iter(range(5)), type(opened.instance).report_runless_asset_event

    def broken(self: Any, event: Any) -> None:
        if next(asked, None) is None:
            raise ConnectionError
        whole(self, event)

    monkeypatch.setattr(type(opened.instance), "report_runless_asset_event", broken)
    with pytest.raises(ConnectionError):
        opened.tick("customers_lake")
    monkeypatch.undo()
    receipt = dg.AssetKey(["customers", "receipt"])

    assert told["scenario"]["steps"][-1]["launched"] == []
    assert opened.instance.get_materialized_partitions(receipt) == set()
    assert opened.tick("customers_lake").skip_message == f"told of 1 of 1: {generation}"
    assert opened.instance.get_materialized_partitions(receipt) == {generation}
