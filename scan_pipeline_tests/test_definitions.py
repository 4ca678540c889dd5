"""Dagster's door: what ships loads, and is loaded by nobody who does not ask for it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import dagster as dg
import pytest
import yaml

from scan_pipeline.definitions import defs

ROOT = Path(__file__).parents[1]
NIGHT = "20261130T020000Z"


def test_what_ships_is_two_scans_and_their_analyses() -> None:
    """Fifteen assets, eighteen checks, a running automation sensor, steps in one process."""
    shipped = defs()
    graph = shipped.resolve_asset_graph()
    repository = shipped.get_repository_def()

    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        "customers/pages",
        "customers/records",
        "customers/reconciliation",
        "customers/receipt",
        "customers/maintenance",
        "customers/changes",
        "customers/migration_audit",
        "support_cases/pages",
        "support_cases/records",
        "support_cases/reconciliation",
        "support_cases/receipt",
        "support_cases/maintenance",
        "support_cases/changes",
        "support_cases/recurring_defects",
        "support_cases/model_review",
    }
    assert len(graph.asset_check_keys) == 18
    automation = repository.get_sensor_def("automation")
    assert automation.default_status is dg.DefaultSensorStatus.RUNNING
    assert shipped.executor is dg.in_process_executor
    assert {(key.path[0], graph.get(key).group_name) for key in graph.get_all_asset_keys()} == {
        ("customers", "customers"),
        ("support_cases", "support_cases"),
    }


def test_shipped_audit_runs_for_an_accepted_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definitions as they ship, on a lake of their own: stages and analysis in one run."""
    for variable, place in (
        ("SCAN_PIPELINE_LAKE", "lake"),
        ("SCAN_PIPELINE_KEYS", "keys"),
        ("SCAN_PIPELINE_TRUST", "trust.json"),
    ):
        monkeypatch.setenv(variable, str(tmp_path / place))
    shipped = defs()
    graph, job = shipped.resolve_asset_graph(), shipped.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("customers_generations", [NIGHT])
        result = job.execute_in_process(
            instance=instance,
            partition_key=NIGHT,
            asset_selection=[*dg.AssetSelection.groups("customers").resolve(graph)],
        )

    assert result.success
    event = next(
        each
        for each in result.get_asset_materialization_events()
        if each.asset_key == dg.AssetKey(["customers", "migration_audit"])
    )
    told = event.materialization.metadata
    assert told["needing"].value == 4_785
    assert told["claim"].value == "complete_aggregate"
    assert str(told["scan_pipeline/receipt_id"].value).startswith("sha256:")


def test_workspace_names_the_location_that_pyproject_names() -> None:
    """Partitions and sensors hang on the location's name; two names would be two homes."""
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text(encoding="utf-8"))
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    module = workspace["load_from"][0]["python_module"]

    assert module["location_name"] == tool["dg"]["project"]["code_location_name"]
    assert module["location_name"] == tool["dagster"]["code_location_name"]
    assert module["module_name"] == tool["dg"]["project"]["code_location_target_module"]


@pytest.mark.long
def test_dagster_validates_the_location(tmp_path: Path) -> None:
    """As Dagster itself loads it, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=ROOT,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "yes"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "Validation successful for code location scan_pipeline" in run.stdout + run.stderr


def imported(statement: str, *modules: str) -> set[str]:
    """Return which of some modules a statement imports, in a fresh interpreter."""
    asked = f"{statement}\nimport sys\nprint(*({{*{modules!r}}} & {{*sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


WITHOUT_DAGSTER = (
    "scan_pipeline.stages.run",
    "scan_pipeline.stages.unlock",
    "scan_pipeline.stages.reconciling.ledger_schema",
    "scan_pipeline.defs.analyses",
    "scan_pipeline.defs.customers.schema",
    "scan_pipeline.defs.support_cases.find_defects",
    "scan_pipeline.defs.support_cases.review_cases",
)


def test_what_works_without_dagster_does_not_import_it() -> None:
    """Stages and shipped analyses are a library; Dagster is one of its faces."""
    heavy = ("dagster", "scan_pipeline.components", "sklearn", "pydantic_ai", "mcp")

    assert imported(f"import {', '.join(WITHOUT_DAGSTER)}", *heavy) == set()


def test_analysis_of_one_scan_is_not_paid_for_by_another() -> None:
    """What runs the customers' audit imports nothing that reads support cases."""
    run = "from scan_pipeline.defs.analyses import ANALYSES; ANALYSES['customers'][0].load()"
    others = ("scan_pipeline.agents", "scan_pipeline.defs.support_cases", "sklearn", "pydantic_ai")

    assert imported(run, *others) == set()


def test_definitions_load_without_the_extras_of_the_models() -> None:
    """Both analyses stand in the graph; their libraries are imported by a run that needs them."""
    load = "from scan_pipeline.definitions import defs; defs().resolve_asset_graph()"

    assert imported(load, "sklearn", "pydantic_ai") == set()


def test_importing_the_door_loads_nothing_behind_it() -> None:
    """The definitions are lazy: components and scans are imported when Dagster asks."""
    behind = ("scan_pipeline.components", "scan_pipeline.stages", "polars", "pandera")

    assert imported("import scan_pipeline.definitions", *behind) == set()
