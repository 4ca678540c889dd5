"""When a second walk corroborates the first, as a table."""

from dataclasses import replace

import pytest

from scan_pipeline.core.coverage import judge
from scan_pipeline.core.findings import finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.second_walk import SecondWalk, SecondWalkFigures
from scan_pipeline.core.walk_evidence import PinEvidence, WalkEvidence
from scan_pipeline.sources.catalogue import ScanFileError

SELF = Opening(principal="auditor", tenant="acme")
EQUAL = SecondWalkFigures(
    unique_ids_observed=3,
    leaves=3,
    partitions=1,
    root="00",
    only_in_first=0,
    only_in_second=0,
    differing=0,
)
SECOND = SecondWalk(
    cursor_chain_digest="sha256:11",
    observation_started_at="2026-11-30T02:00:00.000000Z",
    last_page_at="2026-11-30T02:00:01.000000Z",
    pages_observed=1,
    records_observed=3,
    bytes_observed=30,
    attempts=1,
    refused_responses=0,
    traversal="finished",
    stop_reason="end_signal",
    limits_hit=(),
    end_signal="null",
    figures=EQUAL,
)
WALK = WalkEvidence(
    traversal="finished",
    stop_reason="end_signal",
    end_signal="null",
    limits_hit=(),
    chain_intact=True,
    pin=PinEvidence(),
    bound_sent=False,
    before=SELF,
    after=SELF,
    total=None,
    findings=(),
    second=SECOND,
    openings_of_second=(SELF, SELF),
)
FIGURES = Reconciliation(
    records=3,
    unique_keys=3,
    duplicate_ids=0,
    conflicting_ids=0,
    without_key=0,
    nonconforming=0,
    missing_id_ranges=(),
    leaves=3,
    partitions=1,
    root="00",
    expectations=(),
    findings=(),
)
TWICE = {"contract.consistency": "two_equal_walks", "source.count": ..., "source.snapshot": ...}
WHOLE = ("corroborated", "all_records_present_throughout_both_walks")
MET = ("unknown", "records_encountered_in_live_traversal")
PAGES = ("unknown", "observed_pages_only")
FAILED = ("failed", "observed_pages_only")


@pytest.mark.parametrize(
    ("walk", "expected"),
    [
        (WALK, WHOLE),
        (replace(WALK, second=None), MET),
        (replace(WALK, second=replace(SECOND, figures=None)), MET),
        (replace(WALK, second=replace(SECOND, figures=replace(EQUAL, root="11"))), MET),
        (replace(WALK, second=replace(SECOND, figures=replace(EQUAL, root=None))), MET),
        (replace(WALK, second=replace(SECOND, end_signal=None)), MET),
        (replace(WALK, second=replace(SECOND, limits_hit=("pages",))), MET),
        (replace(WALK, second=replace(SECOND, traversal="interrupted")), MET),
        (replace(WALK, second=replace(SECOND, traversal="cancelled")), MET),
        (replace(WALK, end_signal=None), MET),
        (replace(WALK, traversal="interrupted", stop_reason="limit_reached"), PAGES),
        (replace(WALK, findings=(finding("limit_near"),)), WHOLE),
        (replace(WALK, findings=(finding("count_dropped"),)), MET),
        (replace(WALK, findings=(finding("duplicate_delivery"),)), FAILED),
        (replace(WALK, chain_intact=False), FAILED),
        (replace(WALK, openings_of_second=(SELF, Opening(principal="another"))), FAILED),
        (replace(WALK, openings_of_second=(Opening(principal="another"), None)), FAILED),
        (replace(WALK, openings_of_second=(SELF, None)), WHOLE),
    ],
)
def test_what_two_walks_are_worth(things, walk, expected):
    judged = judge(things(TWICE), walk, FIGURES)

    assert (judged.status, judged.scope) == expected
    assert bool(judged.reasons) == (expected != WHOLE)


def test_first_walk_without_a_root_is_equalled_by_nothing(things):
    walk = replace(WALK, second=replace(SECOND, figures=replace(EQUAL, root=None)))

    assert judge(things(TWICE), walk, replace(FIGURES, root=None)).status == "unknown"


END_PROVES = {
    "contract.denominator": "end_signal",
    "source.end_signal_basis": "provider_documented",
}


def test_two_equal_walks_are_never_verified_whatever_is_declared(things):
    judged = judge(things({**TWICE, **END_PROVES}), WALK, FIGURES)

    assert judged.status == "corroborated"


def test_second_walk_counts_for_nothing_under_another_consistency(things):
    judged = judge(things({**TWICE, "contract.consistency": "live"}), WALK, FIGURES)

    assert (judged.status, judged.scope) == MET


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ({}, False),
        ({"protocol": "next_link", "next": {"at": "next", "ends_when": [{"is": "null"}]}}, False),
        (
            {
                "protocol": "last_key",
                "next": {
                    "after": [{"field": "id", "send_as": "after"}],
                    "ends_when": [{"is": "empty_page"}],
                },
            },
            False,
        ),
        (
            {
                "protocol": "last_key",
                "next": {
                    "after": [{"field": "made", "send_as": "m"}, {"field": "id", "send_as": "a"}],
                    "ends_when": [{"is": "empty_page"}],
                },
            },
            True,
        ),
        (
            {
                "protocol": "offset",
                "page_size": {"send_as": "limit", "value": 10},
                "next": {
                    "send_as": "offset",
                    "counts": "rows",
                    "first": 0,
                    "ends_when": [{"is": "empty_page"}],
                },
            },
            True,
        ),
        (
            {
                "protocol": "offset",
                "page_size": {"send_as": "size", "value": 10},
                "next": {
                    "send_as": "page",
                    "counts": "pages",
                    "first": 1,
                    "ends_when": [{"is": "empty_page"}],
                },
            },
            True,
        ),
    ],
    ids=["token", "link", "key", "mutable order", "offset", "page number"],
)
def test_positions_that_shift_are_refused_where_they_can_be_seen(things, source, refused):
    edits = {**TWICE, **{f"source.{name}": value for name, value in source.items()}}
    if refused:
        with pytest.raises(ScanFileError, match="immutable key"):
            things(edits)
    else:
        assert things(edits).contract.consistency == "two_equal_walks"
