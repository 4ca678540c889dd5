"""Answers that are no pages, or hold records that are not as they should be."""

import pytest

from scan_pipeline.simulator.answer_faults import (
    BodyTruncated,
    ContentTypeWrong,
    Delayed,
    ErrorEnvelope,
    Failing,
)
from scan_pipeline.simulator.faults import CursorRepeats, PageReplaced, RecordDamaged
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import Script

pytestmark = pytest.mark.long

WHOLE = ("verified", "all_records_in_snapshot", True)
FAILED = ("failed", "observed_pages_only", False)
PAGES_ONLY = ("unknown", "observed_pages_only", False)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("body_truncated", "body_unparsable"),
        ("login_page", "body_unparsable"),
        ("invalid_utf8", "body_unparsable"),
        ("error_envelope", "error_envelope"),
        ("items_doubled", "member_doubled"),
    ],
)
def test_answer_that_is_no_page_ends_the_walk_with_what_it_was(bench, opens, name, code):
    walked = bench.walk(scenario(name), over="port")
    receipt = walked.receipt

    assert walked.verdict == FAILED
    assert walked.codes == {code}
    assert receipt.stop_reason == "protocol_broken"
    assert (receipt.pages_observed, receipt.refused_responses) == (3, 1)
    assert walked.opens == opens()


@pytest.mark.parametrize("fault", [ErrorEnvelope(page=1), BodyTruncated(page=1, keep_bytes=0)])
def test_first_answer_that_is_no_page_leaves_a_receipt_too(bench, opens, fault):
    walked = bench.walk(bench.registry(script=Script(faults=(fault,))))

    assert walked.verdict == FAILED
    assert walked.receipt.pages_observed == 0
    assert walked.receipt.last_page_at is None
    assert walked.opens == opens()


def test_content_type_decides_nothing(bench, opens):
    wrong = bench.registry(size=150, script=Script(faults=(ContentTypeWrong(page="every"),)))

    walked = bench.walk(wrong)

    assert walked.verdict == WHOLE
    assert walked.opens == opens(whole=150, partial=150, published=150)


def test_source_that_recovers_is_walked_to_its_end(bench, opens):
    walked = bench.walk(scenario("flaky"), over="port")
    receipt = walked.receipt

    assert walked.verdict == WHOLE
    assert (receipt.attempts, receipt.refused_responses) == (15, 5)
    assert receipt.pages_observed == 10
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_source_that_stays_away_leaves_what_was_read(bench, opens):
    failing = bench.registry(script=Script(faults=(Failing(page=4),)))

    walked = bench.walk(failing, {"operation.retries": {"attempts": 3}}, over="port")

    assert walked.verdict == PAGES_ONLY
    assert walked.codes == {"source_unavailable"}
    assert walked.receipt.refused_responses == 3
    assert walked.opens == opens(partial=300)


def test_answer_that_does_not_come_is_asked_for_again(bench, opens):
    slow = bench.registry(script=Script(faults=(Delayed(page=2, seconds=60, last_attempt=1),)))

    walked = bench.walk(slow, {"operation.retries": {"timeout": 0.5}})

    assert walked.verdict == WHOLE
    assert (walked.receipt.attempts, walked.receipt.refused_responses) == (11, 1)
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_every_page_rate_limited_once_is_waited_for(bench, opens):
    walked = bench.walk(scenario("rate_limited"), over="port")

    assert walked.verdict == WHOLE
    assert (walked.receipt.attempts, walked.receipt.refused_responses) == (20, 10)
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


@pytest.mark.parametrize("form", ["seconds", "http_date"])
def test_declared_wait_is_kept_and_does_not_count_against_the_seconds(bench, opens, form):
    """Three waits of twenty-five seconds, and a limit of thirty; none alone is longer."""
    limited = Failing(page=2, status=429, retry_after_s=25, retry_after_form=form, last_attempt=3)

    walked = bench.walk(
        bench.registry(script=Script(faults=(limited,))),
        {"contract.limits": {"seconds": 30}},
        over="port",
    )

    assert walked.verdict == WHOLE
    assert walked.receipt.limits_hit == ()
    assert all(23 <= waited <= 25 for waited in bench.clock.slept)
    assert len(bench.clock.slept) == 3
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_waits_of_our_own_choice_count_against_the_seconds(bench, opens):
    failing = Failing(page=2, last_attempt=4)

    walked = bench.walk(
        bench.registry(script=Script(faults=(failing,))), {"contract.limits": {"seconds": 0.2}}
    )

    assert walked.verdict == PAGES_ONLY
    assert walked.receipt.limits_hit == ("seconds",)


@pytest.mark.parametrize("status", [429, 503])
def test_wait_beyond_an_hour_fails_rather_than_shortens(bench, opens, status):
    limited = Failing(page=2, status=status, retry_after_s=3_601)

    walked = bench.walk(bench.registry(script=Script(faults=(limited,))))

    assert walked.verdict == PAGES_ONLY
    assert walked.codes == {"source_unavailable"}
    assert bench.clock.slept == []
    assert walked.opens == opens(partial=100)


def test_record_that_does_not_conform_was_collected(bench, opens):
    """It counts and it is a leaf; whether one may be there is for the contract to say."""
    walked = bench.walk(scenario("one_not_conforming"), over="port")
    extraction = walked.receipt.extraction

    assert walked.verdict == ("verified", "all_records_in_snapshot", False)
    assert (extraction.admitted, extraction.nonconforming) == (1_000, 1)
    assert (walked.receipt.unique_ids_observed, walked.receipt.merkle.leaves) == (1_000, 1_000)
    assert walked.receipt.merkle.root is not None
    assert set(walked.results.values()) == {"met"}
    assert walked.notes == {"nonconforming"}
    assert "1 of them not conforming to the schema" in walked.receipt.statement
    assert walked.opens == opens(partial=1_000)


def test_record_that_does_not_conform_is_accepted_where_one_may(bench, opens):
    walked = bench.walk(scenario("one_not_conforming"), {"contract.accept.nonconforming": 1})
    odd = walked.collection.latest().frame().filter(~walked.published()["_conforming"]).collect()

    assert walked.verdict == WHOLE
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)
    assert odd["customer_id"].to_list() == ["customer-77"]
    assert odd["status"].to_list() == [None]
    assert b'"status":7' in odd["_raw"][0].encode()


@pytest.mark.parametrize(
    ("damage", "verdict"),
    [
        ("field_missing", False),
        ("type_changed", False),
        ("null_field", False),
        ("member_doubled", False),
        ("field_unknown", True),
        ("value_changed", True),
    ],
)
def test_damage_to_a_record_never_hides_that_it_was_collected(bench, damage, verdict):
    damaged = RecordDamaged(page="every", number=7, damage=damage)
    registry = bench.registry(size=20, script=Script(faults=(damaged,)))

    walked = bench.walk(registry, {"contract.expect.partition_counts": ...})

    assert walked.verdict == ("verified", "all_records_in_snapshot", verdict)
    assert walked.receipt.unique_ids_observed == 20
    assert walked.receipt.extraction.nonconforming == (0 if verdict else 1)
    assert walked.notes == ({"unknown_field"} if damage == "field_unknown" else set()) | (
        set() if verdict else {"nonconforming"}
    )


def test_record_without_a_key_leaves_no_root(bench, opens):
    walked = bench.walk(scenario("one_without_key"), over="port")
    (told,) = (f for f in walked.receipt.findings.first if f.code == "record_without_key")

    assert walked.verdict == FAILED
    assert walked.receipt.extraction.without_key == 1
    assert walked.receipt.records_observed == 1_000
    assert walked.receipt.merkle.root is None
    assert (told.page, told.found) == (1, "none in record 77 of its page")
    assert walked.opens == opens()


def test_one_key_with_two_contents_is_a_conflict(bench, opens):
    """Page 2 holds the customers of page 1 again, one of them with another status."""
    script = Script(
        faults=(
            PageReplaced(page=2, by=1),
            RecordDamaged(page=2, number=7, damage="value_changed"),
        )
    )

    walked = bench.walk(
        bench.registry(size=200, script=script), {"contract.delivery": "at_least_once"}, over="port"
    )

    assert walked.verdict == FAILED
    assert (walked.receipt.conflicting_ids, walked.receipt.duplicate_ids) == (1, 99)
    assert walked.receipt.merkle.root is None
    assert "conflicting_versions" in walked.codes
    assert walked.opens == opens()


PAGE_TWICE = Script(faults=(CursorRepeats(page=3, to=3, fresh_text=True, last_attempt=1),))
"""Page 3 is delivered twice, behind two cursors, and nothing is missing."""


def test_page_delivered_twice_fails_where_once_was_promised(bench, opens):
    walked = bench.walk(bench.registry(script=PAGE_TWICE), {"contract.limits.over_count": 0.5})

    assert walked.verdict == FAILED
    assert walked.codes == {"duplicate_delivery", "page_repeated"}
    assert walked.receipt.duplicate_ids == 100
    assert walked.opens == opens()


def test_page_delivered_twice_is_read_once_where_repeats_are_declared(bench, opens):
    """The receipt tells of the repeats; whoever counts rows counts records."""
    walked = bench.walk(
        bench.registry(script=PAGE_TWICE),
        {"contract.limits.over_count": 0.5, "contract.delivery": "at_least_once"},
        over="port",
    )
    receipt = walked.receipt

    assert walked.verdict == WHOLE
    assert (receipt.records_observed, receipt.unique_ids_observed) == (1_100, 1_000)
    assert (receipt.duplicate_ids, receipt.merkle.leaves) == (100, 1_000)
    assert walked.notes == {"duplicate_allowed", "page_repeated"}
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)
    assert walked.collection.latest().arrow().num_rows == 1_000
