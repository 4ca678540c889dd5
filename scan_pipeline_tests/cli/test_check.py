"""`check`: offline, every problem with its line, exit 2 where there is one."""

from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline_tests.cli.conftest import CommandLine

NOWHERE = "http://192.0.2.1:9"  # TEST-NET-1 (RFC 5737): asked, it would not answer


def test_shipped_scan_has_no_problem(scan_pipeline: CommandLine) -> None:
    result = scan_pipeline("check", str(shipped_scan("customers").path))

    assert result.exit_code == 0, result.output
    assert "no problem found" in result.stdout


def test_source_is_not_asked(scan_pipeline: CommandLine) -> None:
    assert scan_pipeline("check", scan_pipeline.scan_file(NOWHERE)).exit_code == 0


def test_every_problem_is_told_with_its_line(scan_pipeline: CommandLine) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts["source"]["page_size"]["value"] = "100"
        facts["contract"]["accept"]["scope"] = "everything"

    file = scan_pipeline.scan_file(NOWHERE, change=spoil)
    answer = scan_pipeline.json("check", file, code=2)

    text = ["", *Path(file).read_text(encoding="utf-8").splitlines()]
    told = [(each["field"], text[each["line"]].strip()) for each in answer["problems"]]
    assert told == [
        ("source.page_size.value", "value: '100'"),
        ("contract.accept.scope", "scope: everything"),
    ]
    assert scan_pipeline("check", file).stdout.count(f"{file}:") == 2


@pytest.mark.parametrize("schema", ["nowhere.Model", "scan_pipeline.core.contract.Scan"])
def test_record_schema_that_cannot_be_resolved_is_a_problem(
    scan_pipeline: CommandLine, schema: str
) -> None:
    def other(facts: dict[str, Any]) -> None:
        facts["record_schema"] = schema

    answer = scan_pipeline.json("check", scan_pipeline.scan_file(NOWHERE, change=other), code=2)

    (problem,) = answer["problems"]
    assert problem["field"] == "record_schema"
    assert schema in problem["message"]


def test_file_that_is_not_there_is_two(scan_pipeline: CommandLine) -> None:
    assert scan_pipeline("check", "nowhere.yaml").exit_code == 2


def test_manifest_that_is_not_there_is_a_problem(scan_pipeline: CommandLine) -> None:
    def listed(facts: dict[str, Any]) -> None:
        facts["contract"].setdefault("expect", {})["manifest"] = "nowhere.jsonl"

    answer = scan_pipeline.json("check", scan_pipeline.scan_file(NOWHERE, change=listed), code=2)

    (problem,) = answer["problems"]
    assert problem["field"] == "contract"
    assert "nowhere.jsonl" in problem["message"]


def test_name_of_ours_is_a_problem_with_its_line(scan_pipeline: CommandLine) -> None:
    def ours(facts: dict[str, Any]) -> None:
        facts["contract"]["partition_by"] = "_page"
        facts.pop("record_schema", None)

    file = scan_pipeline.scan_file(NOWHERE, change=ours)
    answer = scan_pipeline.json("check", file, code=2)

    (problem,) = answer["problems"]
    text = Path(file).read_text(encoding="utf-8").splitlines()
    assert text[problem["line"] - 1].strip() == "partition_by: _page"
