"""What has to be believed, as a table: each with the basis somebody gave, or `assumed`."""

from dataclasses import replace

import pytest

from scan_pipeline.core.assumptions import assumptions
from scan_pipeline.core.page import Opening
from scan_pipeline.core.walk_evidence import PinEvidence, WalkEvidence

NAMED = Opening(principal="auditor", tenant="acme")
WALK = WalkEvidence(
    traversal="finished",
    stop_reason="end_signal",
    end_signal="null",
    limits_hit=(),
    chain_intact=True,
    pin=PinEvidence(),
    bound_sent=False,
    before=NAMED,
    after=NAMED,
    total=3,
    findings=(),
)
URL = "http://source.test"
TOKEN = {"url": f"{URL}/token", "at": "token"}
MARK = {"url": f"{URL}/mark", "at": "mark", "send_as": "up_to"}
LINKS = {
    "source.protocol": "next_link",
    "source.next": {"at": "next", "ends_when": [{"is": "null"}]},
    "source.snapshot": ...,
    "contract.consistency": "live",
}
ROWS = {
    "source.protocol": "last_key",
    "source.next": {
        "after": [{"field": "id", "send_as": "after"}],
        "ends_when": [{"is": "empty_page"}],
    },
    "source.snapshot": ...,
    "contract.consistency": "live",
}


@pytest.mark.parametrize("basis", ["provider_documented", "user_declared", "observed"])
@pytest.mark.parametrize(
    ("name", "at", "edits"),
    [
        ("pin_honoured", "source.snapshot.basis", {}),
        ("count_exact", "source.count.basis", {}),
        (
            "append_only",
            "source.high_water_mark.basis",
            {"source.high_water_mark": MARK, "contract.consistency": "high_water_mark"},
        ),
        (
            "token_covers_all_writes",
            "source.change_token.basis",
            {"source.change_token": TOKEN, "contract.consistency": "change_token"},
        ),
        (
            "token_never_returns",
            "source.change_token.basis",
            {"source.change_token": TOKEN, "contract.consistency": "change_token"},
        ),
        ("token_repeatable", "source.continuation_basis", {}),
        ("next_link_keeps_filter", "source.next.keeps_query", LINKS),
    ],
)
def test_each_assumption_carries_the_basis_that_was_given(things, name, at, edits, basis):
    walk = replace(WALK, unrepeated=("region",)) if edits is LINKS else WALK

    believed = assumptions(things({**edits, at: basis}), walk)

    assert {each.name: each.basis for each in believed}[name] == basis


def test_end_is_a_denominator_by_the_documentation_alone(things):
    edits = {
        "contract.denominator": "end_signal",
        "source.end_signal_basis": "provider_documented",
    }
    believed = {each.name: each.basis for each in assumptions(things(edits), WALK)}

    assert believed["end_signal_is_denominator"] == "provider_documented"


@pytest.mark.parametrize(
    ("edits", "walk", "expected"),
    [
        # what is declared by the block itself
        ({}, WALK, {"pin_honoured": "user_declared", "count_exact": "user_declared"}),
        # what nobody said
        ({}, WALK, {"token_repeatable": "assumed"}),
        (LINKS, replace(WALK, unrepeated=("region",)), {"next_link_keeps_filter": "assumed"}),
        # what does not arise
        ({}, WALK, {"next_link_keeps_filter": None, "end_signal_is_denominator": None}),
        (LINKS, WALK, {"next_link_keeps_filter": None, "pin_honoured": None}),
        ({"source.continuation": "single_use"}, WALK, {"token_repeatable": None}),
        (ROWS, WALK, {"token_repeatable": None}),
        ({"source.count": ...}, WALK, {"count_exact": None}),
        # who asks
        ({}, WALK, {"principal_view_constant": "observed"}),
        ({}, replace(WALK, after=None), {"principal_view_constant": "assumed"}),
        (
            {},
            replace(WALK, before=Opening(), after=Opening()),
            {"principal_view_constant": "assumed"},
        ),
        (
            {},
            replace(WALK, after=Opening(principal="auditor", tenant="globex")),
            {"principal_view_constant": "assumed"},
        ),
    ],
)
def test_what_nobody_gave_a_basis_is_assumed_and_what_does_not_arise_is_left_out(
    things, edits, walk, expected
):
    believed = {each.name: each.basis for each in assumptions(things(edits), walk)}

    assert {name: believed.get(name) for name in expected} == expected
