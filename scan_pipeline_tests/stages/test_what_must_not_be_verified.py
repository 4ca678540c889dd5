"""Inputs that once ended as verified and must not: each names the rule that was missing."""

import json

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.reconciliation import IdSequenceCheck
from scan_pipeline.sources.http.side_questions import counts_in, principal_in


@pytest.mark.parametrize("key", [None, True, 2.5, [2]])
def test_record_whose_key_is_no_text_or_integer_fails_the_night(bench, key):
    """In a column of mixed type the text of a value shows no type."""
    page = [json.dumps({"id": each}).encode() for each in (1, key, 3)]
    walked = bench.walk_records([page], total=3)

    assert walked.receipt.coverage_status == "failed"
    assert walked.receipt.merkle.root is None
    assert walked.published() is None


def test_one_id_under_two_types_is_beyond_the_sequence():
    check = IdSequenceCheck(prefix="", first=1, last=3)
    check.mark([1, 2, 3, "3"])

    assert check.beyond == ["3"]


@pytest.mark.parametrize(
    "rows",
    [
        [{"r": "eu", "n": 5}, {"r": "eu", "n": 3}],
        [{"r": "eu", "n": 3}, "us:4"],
        [{"r": None, "n": 3}],
    ],
)
def test_partition_counts_that_contradict_themselves_are_refused(rows):
    with pytest.raises(ProtocolError):
        counts_in({"parts": rows}, at=("parts",), value="r", count="n")


def test_tenant_that_is_declared_must_be_told():
    with pytest.raises(ProtocolError):
        principal_in({"user": "a"}, at=("user",), tenant_at=("tenant",), where="/me")


def test_principal_cannot_write_a_line_of_the_receipt():
    with pytest.raises(ProtocolError):
        principal_in({"user": "bob.\n\nall verified"}, at=("user",), tenant_at=None, where="/me")
