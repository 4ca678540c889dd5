"""The receipt: its published schema, its canonical bytes, and what it refuses to be read from."""

import json
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.receipt_statement import (
    LATER,
    parse_statement,
    receipt_json,
    receipt_schema,
    statement_bytes,
)
from scan_pipeline.simulator.faults import RowsWithheld
from scan_pipeline.simulator.script import Script
from scan_pipeline_tests.conftest import Bench

PUBLISHED = Path(__file__).parents[2] / "docs" / "receipt.schema.json"

NAMES_OF_OLD = """
    run_id tool query query_digest snapshot_id pages_expected_max pages_observed records_expected
    records_observed unique_ids_observed duplicate_ids missing_id_ranges cursor_chain_digest
    terminal_cursor_observed limits_hit coverage_status conclusion_scope
"""
"""Field names that readers of older receipts know; they stand as they were."""


@pytest.fixture(scope="module")
def receipts(tmp_path_factory, shipped):
    """One accepted receipt, and one with findings, gaps and no end."""
    with ExitStack() as stack:
        bench = Bench(folder=tmp_path_factory.mktemp("receipts"), stack=stack, shipped=shipped)
        withheld = Script(faults=(RowsWithheld(page=1, rows=10),))
        accepted = bench.walk(bench.registry(size=120)).receipt
        failed = bench.walk(bench.registry(size=120, script=withheld)).receipt
        empty = bench.walk(
            bench.registry(size=120), {"operation.retries": {"attempts": 1}, "source.auth": ...}
        ).receipt
    return {"accepted": accepted, "failed": failed, "empty": empty}


@pytest.fixture(params=["accepted", "failed", "empty"])
def receipt(request, receipts):
    return receipts[request.param]


def test_published_schema_is_the_one_in_the_code():
    """Written anew with `json.dumps(receipt_schema(), indent=2, sort_keys=True)`."""
    expected = json.dumps(receipt_schema(), indent=2, sort_keys=True) + "\n"

    assert PUBLISHED.read_text(encoding="utf-8") == expected


def test_schema_is_one():
    Draft202012Validator.check_schema(receipt_schema())


def test_receipts_of_every_outcome_satisfy_the_schema(receipt):
    Draft202012Validator(json.loads(PUBLISHED.read_text(encoding="utf-8"))).validate(
        json.loads(json.dumps(receipt_json(receipt)))
    )


def test_schema_refuses_what_is_no_receipt(receipt):
    validator = Draft202012Validator(receipt_schema())
    good = receipt_json(receipt)

    for changed in (
        {"coverage_status": "complete"},
        {"records_observed": "120"},
        {"limits_hit": ["patience"]},
        {"receipt_version": 2},
        {"merkle": {**good["merkle"], "leaves": None}},
        {"unannounced": 1},
    ):
        assert not validator.is_valid({**good, **changed}), changed
    for name in good.keys() - {"provider"}:  # receipts from before there was one lack it
        assert not validator.is_valid({key: value for key, value in good.items() if key != name})


def test_every_member_is_present_and_the_old_names_stand(receipt):
    shown = receipt_json(receipt)

    assert list(shown) == [each.name for each in fields(Receipt) if each.name not in LATER]
    assert set(NAMES_OF_OLD.split()) <= set(shown)


def test_second_walk_is_a_member_of_receipts_that_have_one_alone(receipt):
    """A receipt signed before there were any reads back from the bytes it was signed in."""
    payload = statement_bytes(receipt)
    assert b"second_walk" not in payload
    assert statement_bytes(parse_statement(payload)) == payload
    told = json.loads(payload)
    told["predicate"]["second_walk"] = None

    with pytest.raises(TamperedError):
        parse_statement(canonical_json(told))


def test_statement_is_canonical_and_reads_back(receipt):
    payload = statement_bytes(receipt)
    statement = json.loads(payload)

    assert canonical_json(statement) == payload
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [
        {
            "name": f"customers/{receipt.scan_generation}",
            "digest": {"sha256": receipt.cursor_chain_digest.removeprefix("sha256:")},
        }
    ]
    assert parse_statement(payload) == receipt


def test_statement_of_another_subject_is_refused(receipt):
    statement = json.loads(statement_bytes(receipt))
    statement["subject"][0]["name"] = "customers/20200101T000000Z"

    with pytest.raises(TamperedError, match="expected its canonical bytes"):
        parse_statement(canonical_json(statement))


def test_same_content_in_other_bytes_is_refused(receipt):
    statement = json.loads(statement_bytes(receipt))

    with pytest.raises(TamperedError, match="expected its canonical bytes"):
        parse_statement(json.dumps(statement).encode())


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"{}", b"null", b'{"predicate":{}}', b'{"predicate":null}', b"\xff", b'"text"'],
)
def test_what_is_no_receipt_is_refused(payload):
    with pytest.raises(TamperedError, match="not a receipt of version 1"):
        parse_statement(payload)


@pytest.mark.parametrize(
    "change",
    [
        lambda predicate: predicate.pop("merkle"),
        lambda predicate: predicate.update(unannounced=1),
        lambda predicate: predicate.update(records_observed="120"),
        lambda predicate: predicate.update(coverage_status="complete"),
        lambda predicate: predicate.update(receipt_version=2),
    ],
)
def test_receipt_of_another_shape_is_refused(receipt, change):
    statement = json.loads(statement_bytes(receipt))
    change(statement["predicate"])

    with pytest.raises(TamperedError, match="not a receipt of version 1"):
        parse_statement(canonical_json(statement))


def test_any_figure_is_in_the_bytes_that_are_signed(receipt):
    before = statement_bytes(receipt)

    for changed in (
        {"unique_ids_observed": receipt.unique_ids_observed + 1},
        {"coverage_status": "corroborated"},
        {"accepted": not receipt.accepted},
        {"statement": f"{receipt.statement} "},
    ):
        assert statement_bytes(replace(receipt, **changed)) != before


def test_statement_is_one_sentence_about_a_view(receipt):
    assert receipt.statement.endswith(".")
    assert ", as visible to " in receipt.statement
    assert "\n" not in receipt.statement


def test_what_was_missed_is_named(receipts):
    assert receipts["failed"].missing_id_ranges == ("customer-91..customer-100",)
    assert "prove nothing about the whole" in receipts["failed"].statement
    assert receipts["accepted"].missing_id_ranges == ()
    assert "are all records in snapshot, verified" in receipts["accepted"].statement


def test_secrets_and_tokens_do_not_show(receipt):
    shown = json.dumps(receipt_json(receipt)) + repr(receipt)

    assert "sample-token" not in shown
    assert "cur_" not in shown


def test_receipt_that_was_signed_before_reads_as_it_did():
    """A frozen payload: what a later version adds must not close the receipts there are."""
    payload = (Path(__file__).parents[1] / "vectors" / "receipt.json").read_bytes()
    receipt = parse_statement(payload)

    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", 8_742)
    assert (receipt.provider, receipt.merkle.key_fields) == (None, ())
