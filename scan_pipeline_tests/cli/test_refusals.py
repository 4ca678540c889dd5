"""What a newcomer meets first: a wrong name, no lake, too wide a table; and JSON for programs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from scan_pipeline.cli.main import cli
from scan_pipeline_tests.cli.conftest import CommandLine, make_project

READING = ("generations", "receipt", "explain", "findings", "audit", "read")


@pytest.mark.parametrize("command", READING)
def test_scan_that_nobody_knows_is_two(two_nights: CommandLine, command: str) -> None:
    result = two_nights(command, "nonesuch")

    assert result.exit_code == 2, result.output
    assert "found no scan nonesuch" in result.stderr


@pytest.mark.parametrize("command", [each for each in READING if each != "read"])
def test_lake_that_is_not_there_is_three(scan_pipeline: CommandLine, command: str) -> None:
    result = scan_pipeline(command, "customers")

    assert result.exit_code == 3, result.output
    assert "scan-pipeline run customers" in result.stderr


def test_scan_that_was_run_from_a_file_is_read_by_its_name(two_nights: CommandLine) -> None:
    answer = two_nights.json("read", "shop")

    assert (answer["given"], answer["coverage_status"]) == (300, "verified")


def test_refusal_is_json_too_where_json_was_asked_for(two_nights: CommandLine) -> None:
    for arguments, code, kind in (
        (("read", "nonesuch"), 2, "unknown_scan"),
        (("read", "shop", "20200101T000000Z"), 1, "gate_closed"),
        (("read", "shop", "--at-least", "verified", "--accept", "bounded_view"), 2, "usage"),
        (("read", "shop", "--nonsense"), 2, "no_such_option"),
    ):
        result = two_nights(*arguments, "--json")

        told = json.loads(result.stdout)["error"]
        assert (result.exit_code, told["exit_code"], told["kind"]) == (code, code, kind)
        assert told["message"]


def test_refusal_in_words_leaves_stdout_empty(two_nights: CommandLine) -> None:
    assert two_nights("read", "nonesuch").stdout == ""


def test_no_lake_named_is_three_and_json(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")

    result = project("generations", "customers", "--json")

    assert result.exit_code == 3
    assert json.loads(result.stdout)["error"]["kind"] == "configuration"


def test_wide_table_is_cut_and_says_what_is_not_shown(two_nights: CommandLine) -> None:
    result = two_nights("read", "shop", "--limit", "3")

    assert max(map(len, result.stdout.splitlines())) <= 160
    assert "columns are not shown: " in result.stderr
    assert "tags" in result.stderr
    assert "customer_id" in result.stdout


def test_labels_are_never_cut(two_nights: CommandLine) -> None:
    good = two_nights.json("generations", "shop")[1]["generation"]

    result = two_nights("read", "shop", good, "--accept", "bounded_view")

    assert "_conclusion_scope" in result.stdout
    assert "_coverage_status" in result.stdout


def test_audit_shows_no_words_of_python(two_nights: CommandLine) -> None:
    good = two_nights.json("generations", "shop")[1]["generation"]

    checks = two_nights.json("audit", "shop", good)

    told = " ".join(f"{each['expected']} {each['found']}" for each in checks["checks"])
    for word in ("None", "True", "False", "('", "=None", "Opening("):
        assert word not in told


def test_file_that_is_no_proof_is_refused_by_its_first_fault(
    scan_pipeline: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "words.json").write_text("$ inclusion")

    empty = scan_pipeline("inclusion", "--verify", str(tmp_path / "empty.json"))
    words = scan_pipeline("inclusion", "--verify", str(tmp_path / "words.json"))

    assert (empty.exit_code, words.exit_code) == (2, 2)
    assert "no proof of a key: scan: Field required" in empty.stderr
    assert "expected the JSON that `inclusion` wrote" in words.stderr


def test_stop_hook_that_is_given_no_answer_blocks_and_says_what_it_wants() -> None:
    blocked = CliRunner().invoke(cli, ["check-claims", "--stop-hook"], input="{}")

    assert blocked.exit_code == 2
    assert "found neither last_assistant_message nor transcript_path" in blocked.stderr
