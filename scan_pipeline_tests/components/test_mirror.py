"""Generations that this Dagster does not know become visible from the lake, without a run."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan

NIGHT = "20261130T020000Z"
STAGES = ("pages", "records", "reconciliation", "receipt")
ANALYSIS = dg.AssetKey(["analyses", "total"])


def told(instance: dg.DagsterInstance, stage: str, generation: str) -> dict[str, Any]:
    """Return what Dagster knows of one stage of a generation."""
    asked = dg.AssetRecordsFilter(
        asset_key=dg.AssetKey(["customers", stage]), asset_partitions=[generation]
    )
    (found,) = instance.fetch_materializations(asked, limit=10).records
    return {name: value.value for name, value in found.asset_materialization.metadata.items()}


def verdicts(instance: dg.DagsterInstance) -> dict[str, tuple[bool, str | None]]:
    """Return each check's last verdict, and of which generation it is."""
    checks = {
        "pages": ("walk_finished", "chain_intact", "ledger_conforms"),
        "records": ("keys_readable", "records_conform"),
        "reconciliation": ("keys_unique", "expectations_met"),
        "receipt": ("receipt_accepted",),
    }
    keys = [dg.AssetCheckKey(dg.AssetKey(["customers", s]), n) for s in checks for n in checks[s]]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {
        key.name: (
            each.event.dagster_event.asset_check_evaluation_data.passed,
            each.event.dagster_event.asset_check_evaluation_data.partition,
        )
        for key, each in found.items()
    }


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_a_lost_home_hears_of_everything_again(station: Callable[..., Any]) -> None:
    """What a run told, the lake tells to a fresh home, and analyses follow; runs are not needed."""
    first = station(persistent=True)
    ran = first.stages()
    home = station(workspace=first.workspace, persistent=True)
    _, cursor = _asked(home)
    look = home.tick("customers_lake")

    assert look.run_requests == []
    assert look.skip_message == f"told of 1 of 1: {NIGHT}"
    assert home.instance.get_dynamic_partitions("customers_generations") == [NIGHT]
    for stage in STAGES:
        by_run, by_lake = ran.told(f"customers/{stage}"), told(home.instance, stage, NIGHT)
        assert by_lake.pop("scan_pipeline/told_from_lake") is True
        for name in ("scan_pipeline/certified_here", "published"):
            by_run.pop(name, None)
            by_lake.pop(name, None)
        assert by_lake == by_run
    assert verdicts(home.instance) == dict.fromkeys(ran.verdicts, (True, NIGHT))
    assert _asked(home, cursor)[0] == {NIGHT}
    assert home.run(only=[["analyses", "total"]]).success
    assert home.tick("customers_lake").skip_message == "every receipt of the lake is known"
    assert home.tick("customers_restart").run_requests == []


def test_attempts_of_the_command_line_are_told_oldest_first_and_not_begun_again(
    station: Callable[..., Any],
) -> None:
    """The refused attempt's verdict stands for its own partition; the newest is told last."""
    opened = station(scenario("snapshot_expires"), persistent=True)
    night = run_scan(opened.scan, workspace=opened.workspace)
    names = [each.receipt.scan_generation for each in (*night.earlier, night.stored)]
    restage(opened.scan, names[-1], workspace=opened.workspace)
    names.append(f"{NIGHT}.3")
    look = opened.tick("customers_lake")

    assert look.skip_message == f"told of 3 of 3: {', '.join(names)}"
    assert told(opened.instance, "receipt", names[0])["accepted"] is False
    assert told(opened.instance, "pages", names[2])["pages"] == 10  # those it was judged again from
    assert verdicts(opened.instance)["receipt_accepted"] == (True, names[-1])
    assert opened.tick("customers_restart").run_requests == []


def test_receipt_that_is_none_keeps_nobody_from_the_others(station: Callable[..., Any]) -> None:
    """It is told in the log, stays untold, and is looked at again."""
    opened = station(persistent=True)
    good, bad = (run_scan(opened.scan, workspace=opened.workspace).stored for _ in range(2))
    broken = bad.receipt.scan_generation
    path = opened.workspace.lake.receipt_path("customers", broken)
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"{}")
    look = opened.tick("customers_lake")

    assert look.skip_message == f"told of 1 of 2: {good.receipt.scan_generation}"
    assert opened.tick("customers_lake").skip_message == "told of 0 of 1: "


def _asked(opened: Any, cursor: Any = None) -> tuple[set[str | None], Any]:
    result = dg.evaluate_automation_conditions(
        defs=opened.definitions, instance=opened.instance, cursor=cursor
    )
    return set(result.get_requested_partitions(ANALYSIS)), result.cursor
