"""`check`: offline, every problem with its line, exit 2 where there is one."""

import json
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline_tests.cli.conftest import CommandLine, registry

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


@pytest.mark.parametrize("schema", ["nowhere.Model", "scan_pipeline.core.scan.Scan"])
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


def test_schedule_that_is_none_is_a_problem_with_its_line(scan_pipeline: CommandLine) -> None:
    def scheduled(facts: dict[str, Any]) -> None:
        facts["schedule"] = {"cron": "0 25 * * *"}

    file = scan_pipeline.scan_file(NOWHERE, change=scheduled)
    answer = scan_pipeline.json("check", file, code=2)

    (problem,) = answer["problems"]
    text = Path(file).read_text(encoding="utf-8").splitlines()
    assert "0 25 * * *" in text[problem["line"] - 1]
    assert (problem["field"], "bad hour; expected" in problem["message"]) == ("schedule.cron", True)


def test_source_that_is_as_declared_is_zero_and_recorded(scan_pipeline: CommandLine) -> None:
    with registry() as url:
        answer = scan_pipeline.json("check", scan_pipeline.scan_file(url), "--connect")

    connection = answer["connection"]
    assert connection["passed"]
    assert connection["pages"] == 2
    assert connection["recorded"]
    assert list((scan_pipeline.lake / "receipts" / "shop" / "checks").iterdir())
    assert not (scan_pipeline.lake / "evidence").exists()
    assert not (scan_pipeline.lake / "staging").exists()


def test_source_that_is_not_as_declared_is_one_and_not_recorded(scan_pipeline: CommandLine) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts["source"]["next"]["send_as"] = "after"

    with registry() as url:
        result = scan_pipeline("check", scan_pipeline.scan_file(url, change=spoil), "--connect")

    assert result.exit_code == 1, result.output
    assert "NOT AS DECLARED: second page" in result.stdout
    assert not (scan_pipeline.lake / "receipts").exists()


def test_file_with_a_problem_is_two_and_its_source_is_not_asked(scan_pipeline: CommandLine) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts["contract"]["key"] = []

    file = scan_pipeline.scan_file(NOWHERE, change=spoil)

    assert scan_pipeline("check", file, "--connect").exit_code == 2


def test_source_that_cannot_be_reached_is_three(scan_pipeline: CommandLine) -> None:
    def once(facts: dict[str, Any]) -> None:
        facts["operation"] = {"retries": {"attempts": 1}}

    with registry() as url:
        file = scan_pipeline.scan_file(url, change=once)

    assert scan_pipeline("check", file, "--connect").exit_code == 3


def test_credentials_that_are_refused_are_told_as_an_answer(scan_pipeline: CommandLine) -> None:
    with registry() as url:
        file = scan_pipeline.scan_file(url)
        result = scan_pipeline("check", file, "--connect", env={"REGISTRY_TOKEN": "nobodys"})

    assert result.exit_code == 1
    assert "NOT AS DECLARED: access" in result.stdout
    assert "nobodys" not in result.output


LIVE_THINGS = {
    "name": "things",
    "source": {
        "protocol": "page_token",
        "url": "https://api.test/things",
        "records_at": "items",
        "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    },
    "contract": {"key": ["id"], "consistency": "live"},
}


def written(folder: Path, facts: dict[str, Any]) -> str:
    file = folder / "things.yaml"
    file.write_text(json.dumps(facts), encoding="utf-8")
    return str(file)


def few_behaviours(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    from scan_pipeline.testing import behaviours

    few = tuple(each for each in behaviours.BEHAVIOURS if str(each) in names)
    monkeypatch.setattr(behaviours, "BEHAVIOURS", few)


def test_conformance_of_a_scan_file_is_told_as_json(
    scan_pipeline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_behaviours(monkeypatch, "order-undisturbed", "drift-pin_changed")

    answer = scan_pipeline.json(
        "check", written(scan_pipeline.folder, LIVE_THINGS), "--conformance"
    )

    assert answer["passed"]
    assert [each["verdict"] for each in answer["results"]] == ["passed", "not_exercised"]
    assert {"behaviour", "group", "says", "expected", "found"} <= answer["results"][0].keys()
    assert not scan_pipeline.lake.exists()


def test_source_that_does_not_conform_is_one(
    scan_pipeline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_behaviours(monkeypatch, "order-undisturbed")
    adapter = "scan_pipeline_tests.testing.broken_adapters.DropsTheLastRecord"
    source = {"adapter": adapter, "url": "https://api.test/things"}
    pinned = {"key": ["id"], "consistency": "snapshot"}
    file = written(scan_pipeline.folder, {**LIVE_THINGS, "source": source, "contract": pinned})
    bench = f"{__name__}.borrowed"

    result = scan_pipeline("check", file, "--conformance", "--bench", bench)

    assert result.exit_code == 1, result.output
    assert "FAILED  order-undisturbed" in result.stdout
    assert "0 ok, 1 failed, 0 not exercised" in result.stdout


def borrowed(scan: Any) -> Any:
    from scan_pipeline_tests.testing.test_conformance import Borrowed

    return Borrowed(scan.source.adapter.name.rpartition(".")[2])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--conformance"], "--bench"),
        (["--conformance", "--bench", "nowhere.bench"], "cannot be imported"),
        (["--conformance", "--bench", "builtins.str"], "made a str"),
        (["--conformance", "--connect"], "choose one"),
        (["--bench", "nowhere.bench"], "is for --conformance"),
    ],
)
def test_bench_that_cannot_be_made_is_two(
    scan_pipeline: CommandLine, options: list[str], told: str
) -> None:
    source = {"protocol": "etcd", "url": "http://etcd.test:2379"}
    facts = {"key": ["key"], "consistency": "snapshot"}
    file = written(scan_pipeline.folder, {"name": "keys", "source": source, "contract": facts})

    result = scan_pipeline("check", file, *options)

    assert result.exit_code == 2
    assert told in result.output


def test_record_schema_is_looked_at_though_the_file_is_wrong_elsewhere(
    scan_pipeline: CommandLine,
) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts["contract"]["key"] = []
        facts["record_schema"] = "nowhere.Model"

    answer = scan_pipeline.json("check", scan_pipeline.scan_file(NOWHERE, change=spoil), code=2)

    assert [each["field"] for each in answer["problems"]] == ["contract.key", "record_schema"]
