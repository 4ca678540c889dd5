"""Walks that end early, late, twice or never, over a real port: what is said and what opens."""

import pytest

from scan_pipeline.core.claims import aggregate_claim_name
from scan_pipeline.simulator.answer_faults import MemberDoubled
from scan_pipeline.simulator.faults import CompletionMisreported, CursorDropped, EmptyPage, EndEarly
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import Script

pytestmark = pytest.mark.long

WHOLE = ("verified", "all_records_in_snapshot", True)
FAILED = ("failed", "observed_pages_only", False)
PAGES_ONLY = ("unknown", "observed_pages_only", False)

NO_COUNT = {
    "source.count": ...,
    "source.partition_counts": ...,
    "source.params": {"count": "none"},
    "contract.limits": {"seconds": 120},
    "contract.expect": {},
}
"""Edits that leave the end signal as the only word on how many there are."""

END_PROVES = {
    "source.end_signal_basis": "provider_documented",
    "contract.denominator": "end_signal",
}

ENDS_WHEN_ABSENT = {
    "source.next": {"at": "page.next_cursor", "send_as": "cursor", "ends_when": [{"is": "absent"}]}
}


def needing_migration(frame):
    return frame.filter(frame["schema_version"] < 3).height


def test_first_page_is_clean_and_the_whole_is_not(bench, opens):
    """One clean page supports no claim about the migration; the unlocked whole does."""
    first = bench.walk(
        scenario("first_page_clean"),
        {"contract.limits": {"pages": 1}, "contract.expect": {}},
        over="port",
    )
    page = first.collection.partial(first.generation, accept="observed_pages_only")
    rows = page.labelled_frame().collect()
    whole = first.again(bench.scan({"source.url": first.scan.source.url}, base=_base(first)))
    frame = whole.collection.latest().frame().collect()

    assert needing_migration(rows) == 0
    assert rows.height == 100
    assert _claim(first, rows) == "partial_aggregate"
    assert first.opens == opens(whole=None, partial=100, published=8_742)
    assert needing_migration(frame) == 4_785
    assert _claim(whole, frame) == "complete_aggregate"
    assert whole.verdict == WHOLE
    assert whole.opens == opens(whole=8_742, partial=8_742, published=8_742)


def test_page_skipped_while_another_comes_twice_is_named(bench, opens):
    """8,742 rows of 8,742 arrive and 100 customers are missing."""
    walked = bench.walk(scenario("page_skipped_count_matches"), over="port")
    receipt = walked.receipt

    assert walked.verdict == FAILED
    assert receipt.missing_id_ranges == ("customer-4100..customer-4199",)
    assert (receipt.records_observed, receipt.records_expected) == (8_742, 8_742)
    assert (receipt.unique_ids_observed, receipt.duplicate_ids) == (8_642, 100)
    assert receipt.traversal == "finished"
    assert receipt.merkle.leaves == 8_642
    assert {"count_missed", "ids_missing", "duplicate_delivery", "page_repeated"} <= walked.codes
    assert walked.opens == opens()


def test_page_skipped_is_named_where_repeats_are_declared_too(bench, opens):
    walked = bench.walk(
        scenario("page_skipped_count_matches"), {"contract.delivery": "at_least_once"}, over="port"
    )

    assert walked.verdict == FAILED
    assert walked.receipt.missing_id_ranges == ("customer-4100..customer-4199",)
    assert walked.codes == {"count_missed", "ids_missing", "partition_count_missed"}
    assert walked.notes == {"duplicate_allowed", "page_repeated"}
    assert walked.opens == opens()


@pytest.mark.parametrize(
    ("name", "code", "pages"),
    [
        ("cursor_repeats_page_three", "cursor_repeated", 3),
        ("cursor_cycles", "cursor_repeated", 4),
        ("cursor_repeats_in_other_words", "no_progress", 5),
        ("cursor_corrupted", "request_rejected", 3),
    ],
)
def test_cursor_that_leads_back_or_nowhere_fails(bench, opens, name, code, pages):
    walked = bench.walk(scenario(name), over="port")
    receipt = walked.receipt

    assert walked.verdict == FAILED
    assert code in walked.codes
    assert (receipt.traversal, receipt.stop_reason) == ("failed", "protocol_broken")
    assert receipt.pages_observed == pages
    assert not receipt.terminal_cursor_observed
    assert set(walked.results.values()) == {"not_evaluated"}
    assert walked.opens == opens()


def test_tolerated_repeated_cursor_still_makes_no_progress(bench, opens):
    """A contract may allow a repeated continuation; the records that come again still tell."""
    walked = bench.walk(
        scenario("cursor_repeats_page_three"),
        {"contract.limits": {"repeated_cursors": 50}, "contract.delivery": "at_least_once"},
    )

    assert walked.verdict == FAILED
    assert walked.codes == {"no_progress"}
    assert walked.opens == opens()


@pytest.mark.parametrize(
    ("limits", "named", "rows"),
    [
        ({"pages": 4}, "pages", 400),
        ({"records": 250}, "records", 300),
        ({"bytes": 100_000}, "bytes", 300),
        ({"seconds": 0.001}, "seconds", 0),
    ],
)
def test_limit_is_named_and_leaves_the_expectations_open(bench, opens, limits, named, rows):
    walked = bench.walk(bench.registry(), {"contract.limits": limits}, over="port")
    receipt = walked.receipt

    assert walked.verdict == PAGES_ONLY
    assert receipt.limits_hit == (named,)
    assert (receipt.traversal, receipt.stop_reason) == ("interrupted", "limit_reached")
    assert set(walked.results.values()) == {"not_evaluated"}
    assert receipt.missing_id_ranges == ()
    assert receipt.records_observed == rows
    assert walked.codes == {"limit_reached"}
    assert walked.opens == opens(partial=rows)


def test_more_than_the_count_implies_is_stopped(bench, opens):
    """`over_count` is a share of what the source's own count says there are."""
    endless = bench.registry(script=Script(faults=(EmptyPage(page=5, through="end"),)))

    walked = bench.walk(endless, {"contract.limits": {"over_count": 0.2}})

    assert walked.verdict == PAGES_ONLY
    assert walked.receipt.limits_hit == ("pages",)
    assert walked.receipt.pages_observed == walked.receipt.pages_expected_max == 12
    assert walked.opens == opens(partial=400)


def test_endless_empty_pages_meet_their_budget(bench, opens):
    walked = bench.walk(
        scenario("endless_empty_pages"), {"contract.limits": {"empty_pages": 7}}, over="port"
    )

    assert walked.verdict == PAGES_ONLY
    assert walked.receipt.limits_hit == ("empty_pages",)
    assert walked.receipt.empty_pages == 8
    assert walked.opens == opens(partial=400)


def test_short_and_empty_pages_lose_nothing(bench, opens):
    walked = bench.walk(
        scenario("short_and_empty_pages"), {"contract.limits": {"over_count": 0.3}}, over="port"
    )

    assert walked.verdict == WHOLE
    assert (walked.receipt.pages_observed, walked.receipt.empty_pages) == (12, 1)
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_final_page_without_cursor_is_the_end_where_that_is_declared(bench, opens):
    walked = bench.walk(scenario("final_page_without_cursor"), ENDS_WHEN_ABSENT, over="port")
    evidence = walked.receipt.terminal_evidence

    assert walked.verdict == WHOLE
    assert walked.receipt.terminal_cursor_observed
    assert (evidence.signal, evidence.page) == ("absent", 10)
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_final_page_without_cursor_is_an_error_where_null_was_declared(bench, opens):
    walked = bench.walk(scenario("final_page_without_cursor"), over="port")

    assert walked.verdict == FAILED
    assert walked.codes == {"continuation_missing"}
    assert walked.receipt.pages_observed == 9
    assert walked.receipt.refused_responses == 1
    assert walked.opens == opens()


def test_cursor_dropped_in_the_middle_ends_nothing_unnoticed(bench, opens):
    """Where absence is the declared end, only the count tells that it came too early."""
    dropped = bench.registry(script=Script(faults=(CursorDropped(page=3),)))

    walked = bench.walk(dropped, ENDS_WHEN_ABSENT)

    assert walked.verdict == FAILED
    assert walked.receipt.traversal == "finished"
    assert walked.receipt.missing_id_ranges == ("customer-301..customer-1000",)
    assert walked.opens == opens()


def test_end_dropped_early_is_told_by_the_count(bench, opens):
    walked = bench.walk(scenario("end_dropped_early"), over="port")

    assert walked.verdict == FAILED
    assert walked.results == {
        "source_count": "missed",
        "partition_counts": "missed",
        "id_sequence": "missed",
    }
    assert walked.receipt.missing_id_ranges == ("customer-601..customer-1000",)
    assert walked.receipt.terminal_cursor_observed
    assert walked.opens == opens()


def test_end_dropped_early_without_any_denominator_stays_unknown(bench, opens):
    walked = bench.walk(scenario("end_dropped_early_uncounted"), NO_COUNT, over="port")

    assert walked.verdict == ("unknown", "records_encountered_in_live_traversal", False)
    assert walked.codes == {"no_denominator"}
    assert walked.receipt.traversal == "finished"
    assert walked.opens == opens(partial=600)


@pytest.mark.parametrize(
    ("expect", "missed"),
    [
        ({"count": 1_000}, {"count_missed"}),
        (
            {"id_sequence": {"field": "customer_id", "prefix": "customer-", "last": 1_000}},
            {"ids_missing"},
        ),
    ],
)
def test_one_denominator_of_the_contract_is_enough_to_tell(bench, opens, expect, missed):
    early = bench.registry(script=Script(faults=(EndEarly(page=6),)))

    walked = bench.walk(early, {**NO_COUNT, "contract.expect": expect})

    assert walked.verdict == FAILED
    assert walked.codes == missed
    assert walked.opens == opens()


def test_end_signal_is_a_denominator_where_the_contract_says_so(bench, opens):
    walked = bench.walk(bench.registry(), {**NO_COUNT, **END_PROVES})
    assumed = {each.name: each.basis for each in walked.receipt.assumptions}

    assert walked.verdict == WHOLE
    assert assumed["end_signal_is_denominator"] == "provider_documented"
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


@pytest.mark.parametrize(
    "fault",
    [CompletionMisreported(page=5), CompletionMisreported(page="last")],
    ids=["end told beside a cursor", "more told beside the end"],
)
def test_signals_that_disagree_fail(bench, opens, fault):
    both = [{"is": "null"}, {"at": "page.is_complete", "is": "equals", "value": True}]

    walked = bench.walk(
        bench.registry(script=Script(faults=(fault,))), {"source.next.ends_when": both}, over="port"
    )

    assert walked.verdict == FAILED
    assert walked.codes == {"end_signals_disagree"}
    assert walked.opens == opens()


def test_doubled_continuation_is_no_page(bench, opens):
    """Parsers keep the last of two equal members, which here says that nothing follows."""
    doubled = Script(faults=(MemberDoubled(page=4, member="next_cursor"),))

    walked = bench.walk(bench.registry(script=doubled))

    assert walked.verdict == FAILED
    assert walked.codes == {"member_doubled"}
    assert walked.opens == opens()


@pytest.mark.parametrize(
    ("name", "rows", "pages"),
    [
        ("no_customer", 0, 1),
        ("one_customer", 1, 1),
        ("exactly_one_page", 100, 1),
        ("one_over_a_page", 101, 2),
    ],
)
def test_zero_one_a_page_and_one_over_are_proven_alike(bench, opens, name, rows, pages):
    walked = bench.walk(scenario(name), over="port")
    receipt = walked.receipt

    assert walked.verdict == WHOLE
    assert (receipt.unique_ids_observed, receipt.pages_observed) == (rows, pages)
    assert receipt.records_expected == rows
    assert set(walked.results.values()) == {"met"}
    assert walked.opens == opens(whole=rows, partial=rows, published=rows)


def test_zero_without_a_denominator_proves_nothing(bench, opens):
    walked = bench.walk(bench.registry(size=0), NO_COUNT)

    assert walked.verdict == ("unknown", "records_encountered_in_live_traversal", False)
    assert walked.codes == {"no_denominator"}
    assert walked.opens == opens(partial=0)


def test_declared_cap_is_the_population_of_a_bounded_review(bench, opens):
    capped = {
        "contract.mode": "bounded",
        "contract.limits": {"records": 200},
        "contract.accept": {"scope": "bounded_view"},
    }

    walked = bench.walk(bench.registry(), capped)

    assert walked.verdict == ("unknown", "bounded_view", True)
    assert walked.receipt.limits_hit == ("records",)
    assert walked.opens == opens(partial=200, published=200)


def test_bounded_review_that_stops_short_of_its_cap_is_no_view(bench, opens):
    capped = {
        "contract.mode": "bounded",
        "contract.limits": {"records": 500, "bytes": 100_000},
        "contract.accept": {"scope": "bounded_view"},
    }

    walked = bench.walk(bench.registry(), capped)

    assert walked.verdict == PAGES_ONLY
    assert walked.receipt.limits_hit == ("bytes",)
    assert walked.opens == opens(partial=300)


def _claim(walked, rows):
    receipt = walked.receipt
    return aggregate_claim_name(
        receipt.coverage_status,
        receipt.conclusion_scope,
        inspected=rows.height,
        population=receipt.unique_ids_observed,
    )


def _base(walked):
    return walked.scan.source.url.removesuffix("/v1/customers")
