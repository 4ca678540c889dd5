"""`run`: receipts, analyses, and exit codes, against a registry in process and over HTTP."""

import json
from typing import Any

import pytest

from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline_tests.cli.conftest import CommandLine, registry


def test_sample_scan_ends_accepted_with_its_analysis(scan_pipeline: CommandLine) -> None:
    result = scan_pipeline("run", "customers")

    assert result.exit_code == 0, result.output
    assert "8,742 of 8,742 (source count)" in result.stdout
    assert "all records in snapshot, verified" in result.stdout
    assert "4,785 of 8,742 customers still need schema version 3" in result.stdout
    assert "complete_aggregate, evaluated by engine" in result.stdout


def test_progress_goes_to_stderr_and_json_alone_to_stdout(scan_pipeline: CommandLine) -> None:
    result = scan_pipeline("run", "customers", "--json")

    answer = json.loads(result.stdout)
    assert answer["accepted"] is True
    assert answer["receipt"]["unique_ids_observed"] == 8_742
    (analysis,) = answer["analyses"]
    assert analysis["claim"]["receipt_id"] == answer["receipt_id"]
    last = result.stderr.splitlines()[-1]
    assert last.startswith("88 pages, 8,742 records, 100% of 8,742, ")


def test_less_than_the_contract_accepts_is_one(scan_pipeline: CommandLine) -> None:
    """The end comes early, and the count says otherwise; the receipt is filed all the same."""
    with registry(EndEarly(page=2)) as url:
        result = scan_pipeline("run", scan_pipeline.scan_file(url))

    assert result.exit_code == 1, result.output
    assert "count_missed" in result.stdout
    assert len(list((scan_pipeline.lake / "receipts" / "shop").glob("*.dsse.json"))) == 1


def test_scan_of_a_shipped_name_and_another_schema_gets_no_analysis(
    scan_pipeline: CommandLine,
) -> None:
    def other_schema(facts: dict[str, Any]) -> None:
        facts.pop("record_schema")

    with registry() as url:
        file = scan_pipeline.scan_file(url, name="customers", change=other_schema)
        answer = scan_pipeline.json("run", file)

    assert answer["accepted"] is True
    assert answer["analyses"] == []


def test_refused_analysis_says_why(scan_pipeline: CommandLine) -> None:
    with registry(EndEarly(page=2)) as url:
        result = scan_pipeline("run", scan_pipeline.scan_file(url, name="customers"))

    assert "migration audit was refused: customers" in result.stdout
    assert "expected verified over the whole collection" in result.stdout


def test_expired_generation_is_begun_again_and_told(scan_pipeline: CommandLine) -> None:
    from scan_pipeline.simulator.faults import SnapshotExpired

    with registry(SnapshotExpired(page=2, last_attempt=1)) as url:
        result = scan_pipeline("run", scan_pipeline.scan_file(url))

    assert result.exit_code == 0, result.output
    assert "began again after snapshot_expired" in result.stderr
    assert "restart of" in result.stdout


@pytest.mark.parametrize("named", ["nobody", "nobody.yaml", "Not-A-Name"])
def test_scan_that_is_not_there_is_two(scan_pipeline: CommandLine, named: str) -> None:
    result = scan_pipeline("run", named)

    assert (result.exit_code, result.stdout) == (2, "")


def test_broken_scan_file_is_two_and_says_the_line(scan_pipeline: CommandLine) -> None:
    def misspell(facts: dict[str, Any]) -> None:
        facts["contract"]["consistency"] = "snapshoot"

    file = scan_pipeline.scan_file("http://127.0.0.1:9", change=misspell)
    result = scan_pipeline("run", file)

    assert result.exit_code == 2
    assert f"{file}:" in result.stderr
    assert "contract.consistency" in result.stderr


def test_without_a_lake_it_could_not_run(scan_pipeline: CommandLine) -> None:
    (scan_pipeline.folder / "pyproject.toml").unlink()

    result = scan_pipeline("run", "customers")

    assert result.exit_code == 3
    assert "SCAN_PIPELINE_LAKE" in result.stderr


def test_lake_option_comes_before_the_project(scan_pipeline: CommandLine) -> None:
    elsewhere = scan_pipeline.folder / "elsewhere"
    with registry(size=100) as url:
        result = scan_pipeline("--lake", str(elsewhere), "run", scan_pipeline.scan_file(url))

    assert result.exit_code == 0, result.output
    assert (elsewhere / "receipts" / "shop").is_dir()
    assert not scan_pipeline.lake.exists()


def test_missing_secret_could_not_run_and_wrong_one_is_not_printed(
    scan_pipeline: CommandLine,
) -> None:
    with registry() as url:
        file = scan_pipeline.scan_file(url)
        missing = scan_pipeline("run", file, env={"REGISTRY_TOKEN": None})
        refused = scan_pipeline("run", file, env={"REGISTRY_TOKEN": "sk-secret"})

    assert (missing.exit_code, refused.exit_code) == (3, 1)
    assert "REGISTRY_TOKEN" in missing.stderr
    assert "access refused" in refused.stdout
    assert "sk-secret" not in refused.output
