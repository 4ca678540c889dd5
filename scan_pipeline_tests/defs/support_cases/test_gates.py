"""Both analyses by a model refuse a failed generation: by UI, by automation, by command line."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner

from scan_pipeline.cli.main import cli
from scan_pipeline.components.scan import scan_definitions
from scan_pipeline.defs.support_cases.model_review import model_review
from scan_pipeline.defs.support_cases.recurring_defects import recurring_defects
from scan_pipeline.defs.support_cases.review_cases import MODEL
from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.server import running
from scan_pipeline.stages.scan_lookup import shipped_scan

# `evaluate_automation_conditions` warns of its own use of a beta parameter.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

NIGHT = "20261130T020000Z"
BOTH = {
    dg.AssetKey(["support_cases", "recurring_defects"]),
    dg.AssetKey(["support_cases", "model_review"]),
}


class House:
    """The shipped definitions of the support cases on a place of their own."""

    def __init__(self, place: Any, instance: dg.DagsterInstance) -> None:
        own = scan_definitions(place.scan, workspace=lambda: place.workspace)
        analyses = dg.Definitions(
            assets=[recurring_defects, model_review], executor=dg.in_process_executor
        )
        self.definitions, self.instance = dg.Definitions.merge(own, analyses), instance
        instance.add_dynamic_partitions("support_cases_generations", [NIGHT])

    def materialize(self, *keys: dg.AssetKey) -> dg.ExecuteInProcessResult:
        """Materialize assets of the night as the UI does; all of them where none is named."""
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            partition_key=NIGHT,
            asset_selection=list(keys) or None,
            raise_on_error=False,
        )

    def stages(self) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_job_def("support_cases_generation")
        return job.execute_in_process(
            instance=self.instance, partition_key=NIGHT, raise_on_error=False
        )

    def requested(self, cursor: Any = None) -> tuple[set[dg.AssetKey], Any]:
        result = dg.evaluate_automation_conditions(
            defs=self.definitions, instance=self.instance, cursor=cursor
        )
        return {key for key in BOTH if result.get_requested_partitions(key)}, result.cursor


@contextmanager
def house(place: Any) -> Iterator[House]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield House(place, instance)


def made(result: dg.ExecuteInProcessResult) -> dict[dg.AssetKey, Any]:
    return {
        event.asset_key: event.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key in BOTH
    }


def test_accepted_generation_is_analysed_by_both(support_cases: Callable[..., Any]) -> None:
    place = support_cases(150, environ={MODEL: "test"})
    with house(place) as dagster:
        result = dagster.materialize()

    assert result.success
    told = made(result)
    assert set(told) == BOTH
    receipts = {facts["scan_pipeline/receipt_id"].value for facts in told.values()}
    assert len(receipts) == 1
    review = told[dg.AssetKey(["support_cases", "model_review"])]
    defects = told[dg.AssetKey(["support_cases", "recurring_defects"])]
    assert review["completeness"].value == "nothing_judged"
    assert defects["claim"].value == "complete_aggregate"
    assert len(defects["themes"].records) == defects["dagster/row_count"].value > 6
    assert "coverage" not in str(defects["quality"].records)


def test_without_a_model_the_review_does_not_run_and_nothing_fails(
    support_cases: Callable[..., Any],
) -> None:
    place = support_cases(20)
    with house(place) as dagster:
        result = dagster.materialize()

    assert result.success
    assert set(made(result)) == {dg.AssetKey(["support_cases", "recurring_defects"])}


def test_failed_generation_is_refused_by_ui(support_cases: Callable[..., Any]) -> None:
    """In the stages' own run, and each analysis alone in a later one."""
    place = support_cases(300, broken=True, environ={MODEL: "test"})
    with house(place) as dagster:
        runs = [dagster.materialize(), *(dagster.materialize(key) for key in sorted(BOTH))]
        refused = [
            event.step_failure_data.user_failure_data.description
            for run in runs[1:]
            for event in run.all_events
            if event.is_step_failure and event.step_failure_data.user_failure_data
        ]

    assert not any(run.success for run in runs)
    assert [made(run) for run in runs] == [{}, {}, {}]
    assert len(refused) == 2
    assert all(f"support_cases {NIGHT}: coverage is failed" in each for each in refused)


@pytest.mark.parametrize("broken", [True, False], ids=["failed", "accepted"])
def test_automation_asks_for_accepted_generations_alone(
    support_cases: Callable[..., Any], broken: bool
) -> None:
    place = support_cases(300, broken=broken, environ={MODEL: "test"})
    with house(place) as dagster:
        before, cursor = dagster.requested()
        dagster.stages()
        after, _ = dagster.requested(cursor)

    assert before == set()
    assert after == (set() if broken else BOTH)


@pytest.mark.parametrize("broken", [True, False], ids=["failed", "accepted"])
def test_command_line_refuses_both_on_a_failed_generation(tmp_path: Path, broken: bool) -> None:
    """The shipped scan file, led to a registry on a port."""
    (tmp_path / "pyproject.toml").write_text('[tool.scan_pipeline]\nlake = "lake"\n')
    faults = (EndEarly(page=1, collection="support_cases"),) if broken else ()
    registry = Registry(size=10, cases=150, script=Script(faults=faults))
    text = shipped_scan("support_cases").path.read_text(encoding="utf-8")
    with running(registry) as url:
        file = tmp_path / "cases.yaml"
        moved = text.replace("simulator://registry", url).replace(
            "over_count: 0.1", "over_count: 1"
        )
        file.write_text(moved)
        done = CliRunner().invoke(
            cli,
            ["--project", str(tmp_path), "run", str(file), "--json"],
            env={"REGISTRY_TOKEN": AUDITOR_TOKEN, MODEL: "", "SCAN_PIPELINE_LAKE": None},
        )
    assert done.exit_code == (1 if broken else 0), done.output
    defects, review = json.loads(done.stdout)["analyses"]

    assert (defects["analysis"], review["analysis"]) == ("recurring_defects", "model_review")
    assert review["claim"] is None
    if broken:
        assert defects["claim"] is None
        assert all("coverage is failed" in each["refused"] for each in (defects, review))
        assert not list((tmp_path / "lake").glob("analyses/**/*.parquet"))
    else:
        assert defects["claim"]["name"] == "complete_aggregate"
        assert (review["refused"], MODEL in review["not_run"]) == (None, True)
        assert defects["quality"]["in_themes"] + defects["quality"]["left_out"] == 150
