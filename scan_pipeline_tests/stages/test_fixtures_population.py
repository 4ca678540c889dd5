"""Populations that do not hold still, over a real port: what is said and what opens."""

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.simulator.answer_faults import Failing, ResponseLost
from scan_pipeline.simulator.faults import CountDropped, FilterChanged, SnapshotExpired
from scan_pipeline.simulator.mutations import Delete, Insert
from scan_pipeline.simulator.principals import ANALYST_TOKEN
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.reading import Collection

pytestmark = pytest.mark.long

WHOLE = ("verified", "all_records_in_snapshot", True)
FAILED = ("failed", "observed_pages_only", False)
PAGES_ONLY = ("unknown", "observed_pages_only", False)
MET = ("unknown", "records_encountered_in_live_traversal", False)

LIVE = {
    "source.snapshot": ...,
    "source.partition_counts": ...,
    "contract.consistency": "live",
    "contract.expect": {},
    "contract.accept": {},
}
"""Edits for a source that holds nothing still."""

BOUNDED_ABOVE = {
    **LIVE,
    "contract.consistency": "high_water_mark",
    "source.high_water_mark": {
        "url": "simulator://registry/v1/customers/high_water_mark",
        "at": "high_water_mark",
        "send_as": "up_to",
        "basis": "provider_documented",
    },
    "source.params": {"view": "live"},
}
"""Edits for an append-only source that is read up to a bound."""


def test_snapshot_that_changes_between_pages_fails(bench, opens):
    walked = bench.walk(scenario("snapshot_changes"), over="port")

    assert walked.verdict == FAILED
    assert walked.codes == {"snapshot_changed"}
    assert walked.receipt.pages_observed == 3
    assert walked.opens == opens()


def test_snapshot_that_expires_is_begun_again_from_nothing(bench, opens):
    walked = bench.walk(scenario("snapshot_expires"), over="port")
    (expired,) = (each.receipt for each in walked.night.earlier)

    assert (expired.traversal, expired.stop_reason) == ("interrupted", "snapshot_expired")
    assert (expired.coverage_status, expired.records_observed) == ("unknown", 400)
    assert expired.scan_generation == "20261130T020000Z"
    assert walked.generation == "20261130T020000Z.2"
    assert walked.receipt.restart_of == expired.scan_generation
    assert walked.verdict == WHOLE
    assert walked.receipt.pages_observed == 10
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_snapshot_that_always_expires_is_begun_again_so_often_and_no_more(bench, opens):
    expiring = bench.registry(script=Script(faults=(SnapshotExpired(page=5),)))

    walked = bench.walk(expiring, {"operation.restarts": 1})

    assert walked.verdict == PAGES_ONLY
    assert walked.generation.endswith(".2")
    assert len(walked.night.earlier) == 1
    assert walked.codes == {"snapshot_expired"}
    assert walked.opens == opens(partial=400)


def test_pin_that_is_echoed_and_not_honoured_is_found_by_reading_again(bench, opens):
    walked = bench.walk(scenario("pin_not_honoured"), over="port")

    assert walked.verdict == FAILED
    assert walked.codes == {"pin_not_honoured"}
    assert set(walked.results.values()) == {"met"}
    assert walked.opens == opens()


@pytest.mark.parametrize("basis", ["user_declared", "observed", "provider_documented"])
def test_what_must_be_believed_is_in_the_receipt(bench, basis):
    walked = bench.walk(bench.registry(size=10), {"source.count.basis": basis})
    assumed = {each.name: each.basis for each in walked.receipt.assumptions}

    assert assumed["count_exact"] == basis
    assert assumed["pin_honoured"] == "provider_documented"
    assert assumed["principal_view_constant"] == "observed"


def test_principal_narrowed_in_mid_walk_is_another_population(bench, opens):
    walked = bench.walk(scenario("principal_narrowed"), over="port")
    identity = walked.receipt.identity

    assert walked.verdict == FAILED
    assert "principal_changed" in walked.codes
    assert (identity.before.tenant, identity.after.tenant) == (None, "acme")
    assert walked.opens == opens()


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"partition_counts": "source"},
        {"id_sequence": {"field": "customer_id", "prefix": "customer-", "last": "count"}},
    ],
    ids=["count", "partition counts", "id sequence"],
)
def test_principal_narrowed_silently_is_found_by_each_denominator(bench, opens, expect):
    walked = bench.walk(
        scenario("principal_narrowed_silently"), {"contract.expect": expect}, over="port"
    )
    identity = walked.receipt.identity

    assert walked.verdict == FAILED
    assert identity.before == identity.after
    assert "count_missed" in walked.codes
    assert len(walked.codes - {"pin_not_honoured"}) == 1 + len(expect)
    assert walked.opens == opens()


def test_another_principal_sees_another_whole(bench, opens):
    """Coverage is always of a view: the receipt ends with whose."""
    walked = bench.walk(
        bench.registry(),
        {"contract.expect": {"partition_counts": "source"}},
        environ={"REGISTRY_TOKEN": ANALYST_TOKEN},
    )

    assert walked.verdict == WHOLE
    assert walked.receipt.statement.endswith("as visible to analyst@acme.example of tenant acme.")
    assert walked.opens == opens(whole=591, partial=591, published=591)


def test_rights_that_are_refused_leave_a_receipt(bench, opens):
    walked = bench.walk(bench.registry(), environ={"REGISTRY_TOKEN": "nobody"}, over="port")

    assert walked.verdict == PAGES_ONLY
    assert walked.receipt.stop_reason == "access_refused"
    assert "nobody" not in walked.receipt.statement + repr(walked.receipt)
    assert walked.opens == opens(partial=0)


ONE_REGION = {"contract.expect": {"every_record": {"region": "eu"}}, "source.partition_counts": ...}


def test_filter_that_changes_on_a_retry_is_found_in_the_records(bench, opens):
    walked = bench.walk(scenario("filter_changes_on_retry"), ONE_REGION, over="port")
    told = [f for f in walked.receipt.findings.first if f.code == "filter_missed"]

    assert walked.verdict == FAILED
    assert walked.codes == {"count_missed", "filter_missed"}
    assert walked.results["every_record"] == "missed"
    assert {each.page for each in told} == {3}
    assert walked.receipt.refused_responses == 1
    assert walked.opens == opens()


def test_filter_that_changes_is_found_without_any_count(bench, opens):
    script = scenario("filter_changes_on_retry").script

    walked = bench.walk(
        bench.registry(script=script),
        {
            **ONE_REGION,
            "source.params": {"region": "eu", "count": "none"},
            "source.count": ...,
            "contract.limits": {},
        },
    )

    assert walked.verdict == FAILED
    assert walked.codes == {"filter_missed", "no_denominator"}
    assert walked.opens == opens()


def test_filter_that_changes_is_found_before_the_walk_has_finished(bench):
    """One record that the filter should have kept away is enough, wherever the walk stopped."""
    script = scenario("filter_changes_on_retry").script

    walked = bench.walk(
        bench.registry(script=script),
        {**ONE_REGION, "source.params": {"region": "eu"}, "contract.limits": {"pages": 3}},
    )

    assert walked.verdict == FAILED
    assert walked.receipt.limits_hit == ("pages",)
    assert walked.results == {"source_count": "not_evaluated", "every_record": "missed"}


def test_filter_that_changes_is_found_by_partition_counts(bench, opens):
    walked = bench.walk(
        bench.registry(script=Script(faults=(FilterChanged(page=3, count="follows"),))),
        {
            "source.params": {"status": "active"},
            "source.count": ...,
            "contract.limits": {},
            "contract.expect": {"partition_counts": "source"},
        },
    )

    assert walked.verdict == FAILED
    assert "partition_count_missed" in walked.codes
    assert walked.opens == opens()


def test_receipt_of_another_filter_opens_nothing(bench):
    walked = bench.walk(bench.registry(size=100), {"contract.expect": {}})
    other = bench.scan({"contract.expect": {}, "source.params": {"region": "eu"}})
    meant = bench.scan({"contract.expect": {}})

    elsewhere = Collection(other, workspace=walked.workspace)

    assert scope_digest(meant) == walked.receipt.scope_digest
    with pytest.raises(GateClosedError, match="of another contract"):
        elsewhere.generation(walked.generation)
    with pytest.raises(GateClosedError, match="no generation is verified"):
        elsewhere.latest()


MOVING = {"timestamp_ties": 1_000, "insert_before_cursor": 1_000, "mutable_filter": 2_000}
"""Scenarios in which rows slip by the cursor, and how many customers show it."""


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("timestamp_ties", LIVE),
        ("timestamp_ties", BOUNDED_ABOVE),
        ("insert_before_cursor", LIVE),
        ("mutable_filter", LIVE),
        ("mutable_filter", BOUNDED_ABOVE),
    ],
)
def test_what_moves_under_the_cursor_is_never_verified(bench, opens, name, edits):
    told = scenario(name)
    registry = bench.registry(size=MOVING[name], script=told.script)

    walked = bench.walk(
        registry, {**edits, "source.params": {**told.query, "view": "live"}}, over="port"
    )
    status, scope, accepted = walked.verdict

    assert status in {"unknown", "failed"}
    assert scope in {"records_encountered_in_live_traversal", "observed_pages_only"}
    assert not accepted
    assert walked.opens.whole is walked.opens.published is None


def test_insert_before_the_cursor_lies_beyond_the_mark(bench, opens):
    """Up to the mark nothing was added, so that the same walk is a whole of its own."""
    told = scenario("insert_before_cursor")

    walked = bench.walk(
        bench.registry(script=told.script), {**BOUNDED_ABOVE, "source.params": told.query}
    )

    assert walked.verdict == ("verified", "all_records_up_to_high_water_mark", True)
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_key_that_becomes_visible_below_the_mark_fails(bench, opens):
    script = Script(mutations=(Delete(after_page=1, first=7), Insert(after_page=3, first=7)))

    walked = bench.walk(bench.registry(script=script), BOUNDED_ABOVE)

    assert walked.verdict == FAILED
    assert walked.codes == {"count_changed"}
    assert walked.opens == opens()


def test_live_traversal_with_a_matching_count_is_never_more_than_unknown(bench, opens):
    walked = bench.walk(bench.registry(), {**LIVE, "source.params": {"view": "live"}}, over="port")

    assert walked.verdict == MET
    assert walked.codes == {"live_traversal"}
    assert walked.results == {"source_count": "met"}
    assert walked.opens == opens(partial=1_000)


def test_live_traversal_counts_as_done_where_no_more_is_asked(bench, opens):
    accept = {"scope": "records_encountered_in_live_traversal"}

    walked = bench.walk(
        bench.registry(), {**LIVE, "source.params": {"view": "live"}, "contract.accept": accept}
    )

    assert walked.verdict == (*MET[:2], True)
    assert walked.opens == opens(partial=1_000, published=1_000)


def test_live_count_that_moves_decides_nothing(bench, opens):
    walked = bench.walk(scenario("delete_ahead_of_cursor"), LIVE, over="port")

    assert walked.verdict == MET
    assert walked.codes == {"count_changed", "live_traversal", "no_denominator"}
    assert walked.results == {"source_count": "not_evaluated"}
    assert walked.opens == opens(partial=950)


def test_record_that_moves_across_the_cursor_is_two_versions(bench, opens):
    walked = bench.walk(scenario("rows_move_across_cursor"), LIVE, over="port")

    assert walked.verdict == FAILED
    assert walked.receipt.conflicting_ids == 50
    assert walked.receipt.merkle.root is None
    assert "conflicting_versions" in walked.codes
    assert walked.opens == opens()


def test_high_water_mark_with_an_exact_count_is_verified_up_to_it(bench, opens):
    late = Insert(after_page=3, first=1_001, last=1_010)
    appended = bench.registry(script=Script(mutations=(late,)))

    walked = bench.walk(appended, BOUNDED_ABOVE, over="port")

    assert walked.verdict == ("verified", "all_records_up_to_high_water_mark", True)
    assert walked.receipt.high_water_mark == "1000"
    assert walked.receipt.consistency_basis == "provider_documented"
    assert {"append_only", "rows_immutable", "keys_visible_in_order"} <= {
        each.name for each in walked.receipt.assumptions
    }
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_whole_up_to_a_mark_is_not_a_whole_snapshot(bench):
    walked = bench.walk(bench.registry(size=50), BOUNDED_ABOVE)

    opened = walked.collection.partial(
        walked.generation, accept="all_records_up_to_high_water_mark"
    )

    assert opened.labelled_frame().collect().height == 50
    with pytest.raises(GateClosedError, match="expected at least all_records_in_snapshot"):
        walked.collection.partial(walked.generation, accept="all_records_in_snapshot")


def test_record_beyond_the_mark_fails(bench, opens):
    """A source that ignores the bound is told by the field that the bound is of."""
    ignored = {**BOUNDED_ABOVE, "source.high_water_mark.field": "schema_version"}

    walked = bench.walk(
        bench.registry(size=2), {**ignored, "source.high_water_mark.at": "high_water_mark"}
    )

    assert walked.receipt.high_water_mark == "2"
    assert walked.verdict == FAILED
    assert walked.codes == {"beyond_high_water_mark"}
    assert walked.opens == opens()


def test_count_that_moves_under_a_pin_fails(bench, opens):
    walked = bench.walk(scenario("count_changes"), over="port")

    assert walked.verdict == FAILED
    assert walked.codes == {"count_changed"}
    assert walked.opens == opens()


def test_count_that_stops_coming_keeps_from_verified(bench, opens):
    dropped = bench.registry(script=Script(faults=(CountDropped(page=4, through="end"),)))

    walked = bench.walk(dropped)

    assert walked.verdict == MET
    assert walked.codes == {"count_dropped"}
    assert walked.opens == opens(partial=1_000)


SINGLE_USE = {"source.continuation": "single_use"}


def test_lost_answer_to_a_single_use_cursor_proves_nothing_and_begins_again(bench, opens):
    lost = Script(
        faults=(ResponseLost(page=4, last_attempt=1),), cursors="single_use", walk_nonces=True
    )

    walked = bench.walk(bench.registry(script=lost), SINGLE_USE, over="port")
    (consumed,) = (each.receipt for each in walked.night.earlier)

    assert (consumed.traversal, consumed.stop_reason) == ("interrupted", "continuation_consumed")
    assert (consumed.coverage_status, consumed.records_observed) == ("unknown", 300)
    assert walked.verdict == WHOLE
    assert walked.receipt.restart_of == consumed.scan_generation
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)


def test_failure_before_a_single_use_cursor_was_used_is_not_retried_either(bench, opens):
    failing = Script(faults=(Failing(page=4, last_attempt=1),), cursors="single_use")

    walked = bench.walk(bench.registry(script=failing), {**SINGLE_USE, "operation.restarts": 0})

    assert walked.verdict == PAGES_ONLY
    assert walked.codes == {"continuation_consumed"}
    assert walked.registry.served.requests_of_walk(1) == 4
    assert walked.opens == opens(partial=300)


def test_single_use_cursor_declared_repeatable_is_told_by_the_source(bench, opens):
    lost = Script(faults=(ResponseLost(page=4, last_attempt=1),), cursors="single_use")

    walked = bench.walk(bench.registry(script=lost), {"operation.restarts": 0})

    assert walked.verdict == PAGES_ONLY
    assert walked.codes == {"continuation_consumed"}
    assert walked.opens == opens(partial=300)
