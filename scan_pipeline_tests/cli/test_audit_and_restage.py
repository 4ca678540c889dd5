"""`audit` computes a receipt again; `restage` judges its pages again under a corrected file."""

import base64
import json
from hashlib import sha256
from typing import Any

from scan_pipeline.simulator.faults import RecordDamaged
from scan_pipeline_tests.cli.conftest import CommandLine, registry


def damaged_night(project: CommandLine) -> tuple[str, str]:
    """Run a scan of which one record does not conform; return its file and its address."""

    def without_partitions(facts: dict[str, Any]) -> None:
        facts["contract"].pop("partition_by")
        facts["contract"]["expect"].pop("partition_counts")

    with registry(RecordDamaged(page="every", number=77, damage="type_changed")) as url:
        file = project.scan_file(url, change=without_partitions)
        assert project("run", file).exit_code == 1
    return file, url


def test_audit_of_an_untouched_generation_agrees(two_nights: CommandLine) -> None:
    """Also where the receipt says failed: the figures are right, the collection is not."""
    for generation in two_nights.json("generations", "shop"):
        report = two_nights.json("audit", "shop", generation["generation"])

        assert (report["agrees"], report["level"]) == (True, "bodies")
        assert all(each["agrees"] for each in report["checks"])
    assert "agrees: " in two_nights("audit", "shop").stdout


def test_audit_names_what_disagrees(scan_pipeline: CommandLine) -> None:
    with registry(size=100) as url:
        scan_pipeline("run", scan_pipeline.scan_file(url))
    (file,) = (scan_pipeline.lake / "staging" / "shop" / "records").glob("**/*.parquet")
    file.write_bytes(file.read_bytes()[:-200] + bytes(200))

    result = scan_pipeline("audit", "shop")
    report = scan_pipeline.json("audit", "shop", code=1)

    assert result.exit_code == 1
    assert "DISAGREES: files of records" in result.stdout
    wrong = [each["name"] for each in report["checks"] if each["agrees"] is False]
    assert "files of records" in wrong


def test_restage_asks_no_source_and_names_what_it_supersedes(scan_pipeline: CommandLine) -> None:
    """The registry is gone by then: the stored pages answer under a contract that accepts one."""
    _, url = damaged_night(scan_pipeline)
    old = scan_pipeline.json("receipt", "shop", code=1)
    (before,) = scan_pipeline.json("generations", "shop")

    def accept_one(facts: dict[str, Any]) -> None:
        facts["contract"].pop("partition_by")
        facts["contract"]["expect"].pop("partition_counts")
        facts["contract"]["accept"]["nonconforming"] = 1

    file = scan_pipeline.scan_file(url, change=accept_one)
    answer = scan_pipeline.json("restage", file, before["generation"])

    receipt = answer["receipt"]
    assert (old["extraction"]["nonconforming"], receipt["extraction"]["nonconforming"]) == (1, 1)
    assert receipt["scan_generation"] == f"{before['generation']}.2"
    assert receipt["supersedes"].startswith("sha256:")
    assert receipt["accepted"] is True
    assert scan_pipeline.json("audit", "shop")["agrees"] is True
    assert scan_pipeline.json("page", "shop", receipt["scan_generation"], "3")["records"] == 100


def test_restage_under_another_scope_is_two(scan_pipeline: CommandLine) -> None:
    file, _ = damaged_night(scan_pipeline)
    (before,) = scan_pipeline.json("generations", "shop")
    scan_pipeline.scan_file("http://127.0.0.1:9")

    result = scan_pipeline("restage", file, before["generation"])

    assert result.exit_code == 2
    assert "another question" in result.stderr


def test_superseded_generation_is_read_by_its_receipt_alone(scan_pipeline: CommandLine) -> None:
    def more(facts: dict[str, Any]) -> None:
        facts["contract"]["expect"]["count"] = 101

    with registry(size=100) as url:
        scan_pipeline("run", scan_pipeline.scan_file(url))
    (before,) = scan_pipeline.json("generations", "shop")
    receipt = scan_pipeline("receipt", "shop", "--raw").stdout
    file = scan_pipeline.scan_file(url, change=more)
    told = scan_pipeline("read", file, "--limit", "0", "--format", "json")
    assert json.loads(told.stdout)["judged_under"] == "another"
    assert "judged under another judgement" in told.stderr
    scan_pipeline.json("restage", file, before["generation"], code=1)

    refused = scan_pipeline("read", file, before["generation"])
    envelope = json.loads(receipt)
    receipt_id = f"sha256:{sha256(base64.b64decode(envelope['payload'])).hexdigest()}"
    opened = scan_pipeline("read", file, "--receipt", receipt_id, "--format", "json")

    assert refused.exit_code == 1
    assert f"judged again as {before['generation']}.2" in refused.stderr
    answer = json.loads(opened.stdout)
    assert answer["superseded_by"].startswith("sha256:")
    assert {each["_superseded_by"] for each in answer["records"]} == {answer["superseded_by"]}
    listed = scan_pipeline.json("generations", "shop")
    assert [each["superseded_by"] for each in listed] == [None, f"{before['generation']}.2"]
    assert [each["published"] for each in listed] == [False, False]
