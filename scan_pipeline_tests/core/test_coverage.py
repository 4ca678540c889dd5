"""The judgement, as tables: what each piece of evidence does to status and scope."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from scan_pipeline.core.coverage import (
    RANK,
    SCOPE_RANK,
    accepted,
    judge,
    satisfies,
)
from scan_pipeline.core.finding_kinds import KINDS
from scan_pipeline.core.findings import finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.reconciliation import ExpectationResult, Reconciliation
from scan_pipeline.core.vocabulary import (
    CONCLUSION_SCOPES,
    COVERAGE_STATUSES,
    WHOLE_COLLECTION,
    StopReason,
)
from scan_pipeline.core.walk_evidence import PinEvidence, WalkEvidence

SELF = Opening(principal="auditor", tenant="acme")
MET = ExpectationResult(name="source_count", expected=3, observed=3, result="met", denominator=True)
WALK = WalkEvidence(
    traversal="finished",
    stop_reason="end_signal",
    end_signal="null",
    limits_hit=(),
    chain_intact=True,
    pin=PinEvidence(version="v1", sent_on_every_request=True, recheck="equal"),
    bound_sent=True,
    before=SELF,
    after=SELF,
    total=3,
    findings=(),
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
    expectations=(MET,),
    findings=(),
)
BOUND = {"url": "http://source.test/mark", "at": "mark", "send_as": "up_to"}


def worth(scan, walk=WALK, figures=FIGURES):
    judged = judge(scan, walk, figures)
    return judged.status, judged.scope


WHOLE = ("verified", "all_records_in_snapshot")
MET_LIVE = ("unknown", "records_encountered_in_live_traversal")
PAGES = ("unknown", "observed_pages_only")
FAILED = ("failed", "observed_pages_only")


def test_everything_in_order_is_verified_without_a_reason(things):
    judged = judge(things(), WALK, FIGURES)

    assert (judged.status, judged.scope) == WHOLE
    assert judged.reasons == judged.findings == ()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"chain_intact": False}, FAILED),
        ({"findings": (finding("page_repeated"),)}, FAILED),
        ({"findings": (finding("count_dropped"),)}, MET_LIVE),
        ({"findings": (finding("limit_near"),)}, WHOLE),
        ({"end_signal": None}, MET_LIVE),
        ({"limits_hit": ("pages",)}, MET_LIVE),
        ({"after": Opening(principal="another", tenant="acme")}, FAILED),
        ({"after": Opening(principal="auditor", tenant="globex")}, FAILED),
        ({"after": None}, WHOLE),
        ({"pin": PinEvidence()}, MET_LIVE),
        ({"pin": replace(WALK.pin, sent_on_every_request=False)}, MET_LIVE),
        ({"pin": replace(WALK.pin, recheck="not_done")}, MET_LIVE),
        ({"pin": replace(WALK.pin, recheck="differs")}, FAILED),
        ({"traversal": "failed", "stop_reason": "protocol_broken"}, FAILED),
        ({"traversal": "interrupted", "stop_reason": "limit_reached"}, PAGES),
        ({"traversal": "interrupted", "stop_reason": "source_unavailable"}, PAGES),
        ({"traversal": "cancelled", "stop_reason": "cancelled"}, PAGES),
    ],
)
def test_each_flaw_of_the_walk_has_its_price(things, changed, expected):
    judged = judge(things(), replace(WALK, **changed), FIGURES)

    assert (judged.status, judged.scope) == expected
    assert bool(judged.reasons) == (expected != WHOLE)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"findings": (finding("ids_missing"),)}, FAILED),
        ({"findings": (finding("swing_exceeded"),)}, ("unknown", "observed_pages_only")),
        ({"findings": (finding("nonconforming"),)}, WHOLE),
        ({"expectations": ()}, MET_LIVE),
        ({"expectations": (replace(MET, denominator=False),)}, MET_LIVE),
        ({"expectations": (replace(MET, result="missed"),)}, FAILED),
        ({"expectations": (replace(MET, result="not_evaluated"),)}, MET_LIVE),
        ({"expectations": (MET, replace(MET, name="count", result="not_evaluated"))}, MET_LIVE),
        ({"expectations": (MET, replace(MET, name="count", result="missed"))}, FAILED),
        (
            {"expectations": (MET, replace(MET, name="swing", result="not_evaluated"))},
            WHOLE,
        ),
    ],
)
def test_each_flaw_of_the_figures_has_its_price(things, changed, expected):
    assert worth(things(), figures=replace(FIGURES, **changed)) == expected


def test_failed_outweighs_whatever_else_is_the_matter(things):
    """failed > unknown > verified, over every way to stop and every weight of finding."""
    stops = {"failed": FAILED, "interrupted": PAGES, "cancelled": PAGES, "finished": WHOLE}
    weights = {None: None, "note": None, "warning": "unknown", "error": "failed"}

    for (traversal, plain), (severity, floor) in product(stops.items(), weights.items()):
        told = () if severity is None else (finding("limit_near", severity=severity),)
        walk = replace(WALK, traversal=traversal, findings=told)
        status = judge(things(), walk, FIGURES).status

        expected = min((plain[0], floor or "verified"), key=lambda word: RANK[word])
        assert status == expected, (traversal, severity)


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_every_kind_of_finding_weighs_what_it_says(things, severity):
    codes = [code for code, kind in KINDS.items() if kind.severity == severity]
    floor = {"error": "failed", "warning": "unknown"}[severity]

    assert {worth(things(), replace(WALK, findings=(finding(code),)))[0] for code in codes} == {
        floor
    }


def test_live_is_never_more_than_unknown(things):
    live = things({"contract.consistency": "live"})

    judged = judge(live, WALK, FIGURES)

    assert (judged.status, judged.scope) == MET_LIVE
    assert [each.code for each in judged.findings] == ["live_traversal"]


def test_mark_holds_where_it_was_read_and_sent(things):
    scan = things({"contract.consistency": "high_water_mark", "source.high_water_mark": BOUND})
    read = replace(WALK, before=replace(SELF, high_water_mark="9"))

    assert worth(scan, read) == ("verified", "all_records_up_to_high_water_mark")
    assert worth(scan) == MET_LIVE
    assert worth(scan, replace(read, bound_sent=False)) == MET_LIVE


def test_pin_recheck_decides_under_a_snapshot_alone(things):
    scan = things({"contract.consistency": "high_water_mark", "source.high_water_mark": BOUND})
    read = replace(
        WALK,
        before=replace(SELF, high_water_mark="9"),
        pin=PinEvidence(recheck="differs"),
    )

    assert worth(scan, read)[0] == "verified"


def test_end_signal_is_a_denominator_where_the_contract_says_so(things):
    alone = replace(FIGURES, expectations=())
    scan = things(
        {
            "source.end_signal_basis": "provider_documented",
            "contract.denominator": "end_signal",
            "source.count": ...,
        }
    )

    judged = judge(scan, WALK, alone)

    assert judged.status == "verified"
    assert "end_signal_is_denominator" in {each.name for each in judged.assumptions}


@pytest.mark.parametrize(
    ("changed", "scope"),
    [
        ({}, "bounded_view"),
        (
            {
                "traversal": "interrupted",
                "stop_reason": "limit_reached",
                "limits_hit": ("records",),
            },
            "bounded_view",
        ),
        (
            {"traversal": "interrupted", "stop_reason": "limit_reached", "limits_hit": ("pages",)},
            "bounded_view",
        ),
        (
            {
                "traversal": "interrupted",
                "stop_reason": "limit_reached",
                "limits_hit": ("seconds",),
            },
            "observed_pages_only",
        ),
        (
            {"traversal": "interrupted", "stop_reason": "source_unavailable"},
            "observed_pages_only",
        ),
        ({"traversal": "cancelled", "stop_reason": "cancelled"}, "observed_pages_only"),
    ],
)
def test_bounded_review_is_a_view_once_its_cap_was_reached(things, changed, scope):
    bounded = things({"contract.mode": "bounded", "contract.limits": {"records": 3}})

    assert worth(bounded, replace(WALK, **changed)) == ("unknown", scope)
    assert worth(bounded, replace(WALK, **changed, chain_intact=False)) == FAILED


def test_reasons_say_each_kind_of_finding_once(things):
    """A thousand repeated keys do not hide that ids are missing."""
    repeated = [finding("duplicate_delivery", page=2, key=f'["{n}"]') for n in range(1_000)]
    missing = finding("ids_missing", expected="every id", found="customer-4100..customer-4199")

    judged = judge(things(), WALK, replace(FIGURES, findings=(*repeated, missing)))

    assert judged.reasons == (
        "duplicate delivery on page 2 (999 more)",
        "ids missing: expected every id, found customer-4100..customer-4199",
    )


def test_stop_is_said_in_words(things):
    for traversal, reason in (("failed", "protocol_broken"), ("interrupted", "limit_reached")):
        judged = judge(things(), replace(WALK, traversal=traversal, stop_reason=reason), FIGURES)

        assert judged.reasons[0].endswith(reason.replace("_", " "))
    assert len(get_args(StopReason)) == len(set(get_args(StopReason)))


@pytest.mark.parametrize(
    ("status", "scope", "wish_status", "wish_scope", "answer"),
    [
        ("verified", "all_records_in_snapshot", "verified", "all_records_in_snapshot", True),
        ("verified", "all_records_in_snapshot", "corroborated", "all_records_in_snapshot", True),
        ("verified", "all_records_in_snapshot", "unknown", "observed_pages_only", True),
        ("verified", "all_records_in_snapshot", "unknown", "bounded_view", True),
        (
            "verified",
            "all_records_in_snapshot",
            "verified",
            "all_records_up_to_high_water_mark",
            False,
        ),
        (
            "verified",
            "all_records_up_to_high_water_mark",
            "verified",
            "all_records_in_snapshot",
            False,
        ),
        (
            "corroborated",
            "all_records_present_throughout_both_walks",
            "verified",
            "all_records_present_throughout_both_walks",
            False,
        ),
        (
            "corroborated",
            "all_records_present_throughout_both_walks",
            "corroborated",
            "all_records_present_throughout_both_walks",
            True,
        ),
        (
            "unknown",
            "records_encountered_in_live_traversal",
            "unknown",
            "records_encountered_in_live_traversal",
            True,
        ),
        ("unknown", "records_encountered_in_live_traversal", "unknown", "bounded_view", True),
        ("unknown", "bounded_view", "unknown", "records_encountered_in_live_traversal", False),
        ("unknown", "observed_pages_only", "unknown", "observed_pages_only", True),
        ("unknown", "observed_pages_only", "unknown", "bounded_view", False),
        ("unknown", "observed_pages_only", "verified", "observed_pages_only", False),
        ("failed", "observed_pages_only", "failed", "observed_pages_only", False),
        ("failed", "all_records_in_snapshot", "failed", "observed_pages_only", False),
    ],
)
def test_what_satisfies_which_wish(status, scope, wish_status, wish_scope, answer):
    assert satisfies(status, scope, wish_status=wish_status, wish_scope=wish_scope) is answer


def test_wishes_hold_these_laws():
    """Failed opens nothing; more is never less; no whole stands in for another."""
    pairs = [*product(COVERAGE_STATUSES, CONCLUSION_SCOPES)]

    for (status, scope), (wish, wished) in product(pairs, pairs):
        answer = satisfies(status, scope, wish_status=wish, wish_scope=wished)
        if status == "failed" or RANK[status] < RANK[wish]:
            assert not answer
        elif scope == wished:
            assert answer
        elif {scope, wished} <= WHOLE_COLLECTION:
            assert not answer
        else:
            assert answer == (SCOPE_RANK[scope] > SCOPE_RANK[wished])


@pytest.mark.parametrize(
    ("accept", "walk", "nonconforming", "answer"),
    [
        ({}, WALK, 0, True),
        ({}, WALK, 1, False),
        ({"nonconforming": 1}, WALK, 1, True),
        ({"nonconforming": 1}, WALK, 2, False),
        ({}, replace(WALK, traversal="interrupted"), 0, False),
        ({"scope": "observed_pages_only"}, replace(WALK, traversal="interrupted"), 0, True),
        ({"scope": "observed_pages_only"}, WALK, 0, True),
        ({"scope": "observed_pages_only"}, replace(WALK, chain_intact=False), 0, False),
        ({"scope": "all_records_up_to_high_water_mark"}, WALK, 0, False),
        ({"status": "unknown", "scope": "bounded_view"}, WALK, 0, True),
    ],
)
def test_accept_level_decides_what_counts_as_done(things, accept, walk, nonconforming, answer):
    scan = things({"contract.accept": accept})

    assert accepted(scan, judge(scan, walk, FIGURES), nonconforming=nonconforming) is answer
