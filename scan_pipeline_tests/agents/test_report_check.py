"""Which sentences of a report stand."""

from datetime import UTC, datetime, timedelta

import pytest

from scan_pipeline.agents.claiming import CollectionClaim
from scan_pipeline.agents.report_check import check_report
from scan_pipeline.core.errors import EvidenceError, GateClosedError, TamperedError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ID = "claim-0123456789abcdef01234567"
SAID = (
    'None of the 8,742 customers in the view matches region = "moon". customers 20261130T020000Z, '
    "view whole: verified, all_records_in_snapshot, as visible to auditor@registry.example."
)


def claim(**changes):
    facts = {
        "claim": "complete_no_match",
        "evaluated_by": "engine",
        "statement": SAID,
        "scan": "customers",
        "scan_generation": "20261130T020000Z",
        "receipt_id": "sha256:" + "0" * 64,
        "coverage_status": "verified",
        "conclusion_scope": "all_records_in_snapshot",
        "principal": "ana",
        "tenant": None,
        "view": "whole",
        "view_digest": "sha256:" + "1" * 64,
        "policy_digest": "sha256:" + "2" * 64,
        "query": {},
        "query_digest": "sha256:" + "3" * 64,
        "population": 8_742,
        "matching": 0,
        "inspected": 8_742,
        "matches": 0,
        "concluded_at": NOW - timedelta(hours=1),
    }
    return CollectionClaim(**{**facts, **changes})


def check(text, *, held=None, stands=lambda _: None, max_age=24):
    claims = {ID: claim()} if held is None else held

    def read(name):
        if name not in claims:
            raise EvidenceError(f"no claim {name}")
        if isinstance(claims[name], Exception):
            raise claims[name]
        return claims[name]

    return check_report(
        text,
        nouns=("customers",),
        read=read,
        stands=stands,
        now=NOW,
        max_age=timedelta(hours=max_age),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{SAID} [{ID}]",
        f"I looked.\n\n> {SAID} [{ID}]\n\nThat is my answer.",
        f"- **{SAID}** [{ID}]",
        SAID.replace("verified, ", "verified,\n  ") + f" [{ID}]",
        "I read a receipt and asked the registry.",
        "",
    ],
)
def test_statement_quoted_word_for_word_stands(text):
    assert check(text).found == ()


@pytest.mark.parametrize(
    "text",
    [
        "All customers have moved to the new schema.",
        "Every record was migrated.",
        "I found no customer on the moon.",
        "100% of them are done.",
        "8,742 customers were checked.",
        "Nothing is missing from the collection.",
        "The migration is complete for each customer",
        "| customers | 8,742 |",
        "No results.",
        "All\ncustomers are done",
        "- fine\n- every customer is done",
        "```\nall rows pass\n```",
    ],
)
def test_sentence_that_counts_or_quantifies_and_cites_nothing_is_found(text):
    (found,) = check(text).found

    assert found.fault == "uncited"


@pytest.mark.parametrize(
    "text",
    [
        f"All 8,742 customers are fine. [{ID}]",
        f"{SAID.replace('8,742', '9,000')} [{ID}]",
        f"{SAID} So all is well. [{ID}]",
        f"[{ID}] {SAID}",
    ],
)
def test_claim_behind_other_words_than_its_own_is_found(text):
    assert "misquoted" in [each.fault for each in check(text).found]


def test_words_before_a_quoted_statement_are_held_to_the_same_rule():
    checked = check(f"All customers are on earth: {SAID} [{ID}]")

    assert [each.fault for each in checked.found] == ["uncited"]
    assert checked.cited == (ID,)


def test_claim_that_nobody_signed_supports_nothing():
    checked = check(f"{SAID} [claim-ffffffffffffffffffffffff]")

    assert checked.found[0].fault == "claim_unknown"
    assert checked.cited == ()


def test_claim_that_was_edited_supports_nothing():
    held = {ID: TamperedError("claim", "another signature")}

    assert check(f"{SAID} [{ID}]", held=held).found[0].fault == "claim_tampered"


@pytest.mark.parametrize("at", [NOW - timedelta(hours=25), NOW + timedelta(hours=1)])
def test_claim_too_old_or_of_the_future_supports_nothing(at):
    checked = check(f"{SAID} [{ID}]", held={ID: claim(concluded_at=at)})

    assert [each.fault for each in checked.found] == ["stale"]


def test_claim_whose_receipt_fell_supports_nothing():
    def fell(_):
        raise GateClosedError(scan="customers", generation=None, reason="judged again")

    checked = check(f"{SAID} [{ID}]", stands=fell)

    assert [each.fault for each in checked.found] == ["receipt_fell"]
