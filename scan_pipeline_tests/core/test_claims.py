"""Claims: what a receipt and an inspection support, as a table."""

from itertools import product

import pytest

from scan_pipeline.core.claims import (
    aggregate_claim_name,
    is_whole,
    make_claim,
    match_claim_name,
)
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES, COVERAGE_STATUSES, WHOLE_COLLECTION

SNAPSHOT = "all_records_in_snapshot"
LIVE = "records_encountered_in_live_traversal"
TWO_WALKS = "all_records_present_throughout_both_walks"
VERIFIED = ("verified", SNAPSHOT)


@pytest.mark.parametrize(
    ("status", "scope", "inspected", "claim"),
    [
        ("verified", SNAPSHOT, 10, "complete_aggregate"),
        ("verified", SNAPSHOT, 9, "partial_aggregate"),
        ("verified", "all_records_up_to_high_water_mark", 10, "complete_aggregate"),
        ("corroborated", TWO_WALKS, 10, "partial_aggregate"),
        ("unknown", LIVE, 10, "partial_aggregate"),
        ("unknown", SNAPSHOT, 10, "partial_aggregate"),
        ("verified", "bounded_view", 10, "partial_aggregate"),
        ("failed", SNAPSHOT, 10, "partial_aggregate"),
    ],
)
def test_aggregate_is_complete_over_every_row_of_a_verified_whole(status, scope, inspected, claim):
    assert aggregate_claim_name(status, scope, inspected=inspected, population=10) == claim


@pytest.mark.parametrize(
    ("worth", "matches", "inspected", "budget_left", "claim"),
    [
        (VERIFIED, 0, 10, True, "complete_no_match"),
        (VERIFIED, 0, 10, False, "complete_no_match"),
        (VERIFIED, 0, 9, True, "partial_no_match"),
        (VERIFIED, 0, 9, False, "incomplete_budget_exhausted"),
        (VERIFIED, 1, 1, False, "verified_match"),
        (("unknown", LIVE), 0, 10, True, "partial_no_match"),
        (("corroborated", TWO_WALKS), 0, 10, True, "partial_no_match"),
        (("failed", SNAPSHOT), 0, 10, True, "partial_no_match"),
    ],
)
def test_absence_is_shown_by_a_verified_whole_that_was_all_inspected(
    worth, matches, inspected, budget_left, claim
):
    assert claim == match_claim_name(
        *worth, matches=matches, inspected=inspected, population=10, budget_left=budget_left
    )


def test_no_receipt_but_a_verified_whole_shows_absence():
    for status, scope in product(COVERAGE_STATUSES, CONCLUSION_SCOPES):
        claim = match_claim_name(
            status, scope, matches=0, inspected=10, population=10, budget_left=True
        )
        whole = status == "verified" and scope in WHOLE_COLLECTION

        assert (claim == "complete_no_match") == whole
        assert is_whole(status, scope) == (
            status in {"verified", "corroborated"} and scope in WHOLE_COLLECTION
        )


def test_empty_collection_is_completely_searched():
    assert (
        match_claim_name(
            "verified", SNAPSHOT, matches=0, inspected=0, population=0, budget_left=True
        )
        == "complete_no_match"
    )


def test_claim_is_bound_to_all_it_says():
    facts = {
        "name": "complete_aggregate",
        "evaluated_by": "engine",
        "receipt_id": "sha256:00",
        "statement": "4,785 of 8,742 customers still need schema version 3.",
    }

    def claim_id(**changed):
        kept = {**facts, **changed}
        return make_claim(kept.pop("name"), **kept).claim_id

    assert claim_id() == claim_id()
    assert (
        len(
            {
                claim_id(),
                claim_id(name="partial_aggregate"),
                claim_id(evaluated_by="reader"),
                claim_id(receipt_id="sha256:01"),
                claim_id(statement="0 of 8,742 customers still need schema version 3."),
            }
        )
        == 5
    )
