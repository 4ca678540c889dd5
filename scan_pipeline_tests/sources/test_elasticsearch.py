"""Searches walked under a point in time: what proves the whole, and what is no page."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import CancelledError
from scan_pipeline.simulator.elasticsearch import SearchEngine
from scan_pipeline.simulator.mutations import Delete, Insert, Move, Update
from scan_pipeline.simulator.points_in_time import Names
from scan_pipeline.simulator.principals import ANALYST_TOKEN, AUDITOR_TOKEN
from scan_pipeline.simulator.search_faults import SearchDamage, SearchFault
from scan_pipeline.simulator.search_index import LONG, Layout
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.stages.connecting.connection import check_connection
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.conftest import Bench, edited
from scan_pipeline_tests.sources.search_engines import CUSTOMERS, ENVIRON, answering, search

SIZE = 350
"""Customers on three full pages of a hundred and a half one."""

WHOLE = ("finished", "verified", "all_records_in_snapshot")

OPENSEARCH: Mapping[str, Any] = {
    "source.engine": "opensearch",
    "source.sort": ["customer_id"],
    "source.tie_breaker": ["customer_id"],
}


def engine_of(bench: Bench, **arguments: Any) -> SearchEngine:
    return SearchEngine(**{"size": SIZE, "clock": bench.clock, **arguments})


def fault(kind: SearchDamage, **where: Any) -> tuple[SearchFault, ...]:
    return (SearchFault(kind=kind, **{"page": 2, **where}),)


def test_whole_index_is_verified_and_its_point_in_time_closed(bench: Bench) -> None:
    walked = search(bench, engine_of(bench))

    assert walked.verdict == WHOLE
    assert walked.receipt.unique_ids_observed == walked.receipt.records_expected == SIZE
    assert walked.engine.points.open == {}
    after = walked.receipt.identity.after
    assert after is not None
    assert after.principal == "auditor@registry.example"
    assert walked.audit_agrees


def test_members_of_a_document_are_columns_and_its_place_in_the_walk_is_not_kept(
    bench: Bench,
) -> None:
    row = search(bench, engine_of(bench, size=1)).rows[0]

    assert (row["customer_id"], row["_key"]) == ("customer-1", '["customer-1"]')
    assert json.loads(row["_raw"])["_index"] == "customers-000001"
    assert "sort" not in json.loads(row["_raw"])


def test_two_walks_over_one_state_have_one_root(bench: Bench) -> None:
    """Though the second numbers its documents otherwise: another layout, other `_shard_doc`s."""
    one = search(bench, engine_of(bench, layout=Layout(shards=1)))
    other = search(bench, engine_of(bench, layout=Layout(shards=5)))

    assert one.receipt.merkle.root == other.receipt.merkle.root


def test_every_search_asks_for_what_the_proof_needs(bench: Bench) -> None:
    walked = search(bench, engine_of(bench), {"source.search": {"query": {"match_all": {}}}})

    asked = [each for each in walked.engine.asked if each.path == "/_search"]
    assert {each.params["allow_partial_search_results"] for each in asked} == {"false"}
    for body in walked.searches:
        assert body["track_total_hits"] is True
        assert body["sort"] == ["_shard_doc"]
        assert body["query"] == {"match_all": {}}
        assert body["pit"]["keep_alive"] == "5m"


@pytest.mark.parametrize("names", ["kept", "rotate", "rotate_and_forget"])
def test_every_search_names_the_point_in_time_as_the_answer_before_did(
    bench: Bench, names: Names
) -> None:
    """Where older names are forgotten, naming one of them would find nothing."""
    walked = search(bench, engine_of(bench, names=names))

    assert walked.verdict == WHOLE
    named = {body["pit"]["id"] for body in walked.searches}
    assert len(named) == (1 if names == "kept" else len(walked.searches))
    assert walked.engine.points.open == {}
    assert walked.audit_agrees


@pytest.mark.parametrize("edits", [{}, OPENSEARCH], ids=["elasticsearch", "opensearch"])
def test_writes_in_mid_walk_are_hidden_by_the_point_in_time(
    bench: Bench, edits: Mapping[str, Any]
) -> None:
    engine = engine_of(
        bench,
        engine=edits.get("source.engine", "elasticsearch"),
        mutations=(
            Insert(first=SIZE + 1, last=SIZE + 9, after_page=1),
            Delete(first=120, last=130, after_page=1),
            Update(first=300, last=310, status="closed", after_page=2),
            Move(first=1, to="newest", after_page=2),
        ),
    )

    walked = search(bench, engine, edits)

    assert walked.verdict == WHOLE
    assert walked.receipt.unique_ids_observed == SIZE
    assert engine.points.open == {}


def test_search_without_a_point_in_time_is_never_more_than_unknown(bench: Bench) -> None:
    engine = engine_of(bench, mutations=(Update(first=300, status="closed", after_page=1),))
    walked = search(
        bench,
        engine,
        {
            "source.snapshot": None,
            "source.sort": ["customer_id"],
            "source.tie_breaker": ["customer_id"],
            "contract.consistency": "live",
        },
    )

    scope = "records_encountered_in_live_traversal"
    assert walked.verdict == ("finished", "unknown", scope)
    assert {each.path for each in engine.asked if each.method == "POST"} == {"/customers/_search"}


def test_sort_values_above_2_to_the_53_go_back_digit_for_digit(bench: Bench) -> None:
    """Read as doubles, two ledger numbers in a row are one, and a document is lost at each page."""
    walked = search(
        bench,
        engine_of(bench, engine="opensearch"),
        {
            "source.engine": "opensearch",
            "source.size": 99,
            "source.sort": [{"ledger_no": {"order": "asc"}}],
            "source.tie_breaker": ["ledger_no"],
        },
    )

    assert walked.verdict == WHOLE
    assert walked.searches[1]["search_after"] == [LONG + 99]
    assert float(LONG + 99) != LONG + 99


def test_ties_in_the_sort_lose_nothing_where_the_engine_breaks_them(bench: Bench) -> None:
    walked = search(bench, engine_of(bench), {"source.sort": [{"region": "asc"}]})

    assert walked.verdict == WHOLE
    assert walked.searches[0]["sort"] == [{"region": "asc"}, "_shard_doc"]


def test_a_tie_breaker_that_ties_is_found_by_the_count(bench: Bench) -> None:
    walked = search(
        bench,
        engine_of(bench, engine="opensearch"),
        {
            "source.engine": "opensearch",
            "source.sort": ["region"],
            "source.tie_breaker": ["region"],
        },
    )

    assert walked.verdict[1] == "failed"
    assert "count_missed" in walked.codes


def test_the_end_is_a_page_without_hits_and_nothing_before_it(bench: Bench) -> None:
    """Also where the last page of hits is a short one, or there are no documents at all."""
    walked = search(bench, engine_of(bench))
    empty = search(bench, engine_of(bench, size=0))

    assert walked.receipt.pages_observed == 5
    assert empty.verdict == WHOLE
    assert (empty.receipt.pages_observed, empty.receipt.records_observed) == (1, 0)


NO_PAGES: list[SearchDamage] = [
    "shard_failed",
    "shard_failed_empty",
    "shard_missing",
    "timed_out",
    "terminated_early",
    "cluster_skipped",
]


@pytest.mark.parametrize("kind", NO_PAGES)
@pytest.mark.parametrize("page", [1, 2, "last"])
def test_an_answer_that_is_not_whole_is_no_page(
    bench: Bench, kind: SearchDamage, page: int | str
) -> None:
    walked = search(bench, engine_of(bench, faults=fault(kind, page=page)))

    assert walked.verdict == ("failed", "failed", "observed_pages_only")
    assert "answer_partial" in walked.codes
    assert walked.engine.points.open == {}


def test_an_answer_that_does_not_name_its_point_in_time_is_no_page(bench: Bench) -> None:
    walked = search(bench, engine_of(bench, faults=fault("pit_unnamed")))

    assert walked.verdict[1] == "failed"
    assert "pin_not_reported" in walked.codes


def test_a_lower_bound_is_no_count(bench: Bench) -> None:
    everywhere = search(bench, engine_of(bench, faults=fault("total_gte", page="every")))
    once = search(bench, engine_of(bench, faults=fault("total_gte")))

    assert everywhere.verdict[:2] == ("finished", "unknown")
    assert "no_denominator" in everywhere.codes
    assert once.verdict[:2] == ("finished", "unknown")
    assert "count_dropped" in once.codes


def test_a_point_in_time_that_is_not_honoured_is_found_by_the_recheck(bench: Bench) -> None:
    engine = engine_of(
        bench,
        faults=fault("pit_not_honoured", page="every", first_attempt=2),
        mutations=(Update(first=1, last=SIZE, status="closed", after_page=3),),
    )

    walked = search(bench, engine)

    assert walked.verdict[1] == "failed"
    assert "pin_not_honoured" in walked.codes
    assert engine.points.open == {}


def test_a_context_that_is_gone_begins_a_new_generation_from_nothing(bench: Bench) -> None:
    engine = engine_of(bench, faults=fault("context_missing", page=3, last_attempt=1))

    walked = search(bench, engine, {"operation.restarts": 1})

    (earlier,) = walked.night.earlier
    assert (earlier.receipt.stop_reason, earlier.receipt.coverage_status) == (
        "snapshot_expired",
        "unknown",
    )
    assert walked.verdict == WHOLE
    assert walked.receipt.records_observed == SIZE
    assert sum(each.path == "/customers/_pit" for each in engine.asked) == 2
    assert engine.points.open == {}


def test_a_context_that_stays_gone_ends_after_the_restarts_allowed(bench: Bench) -> None:
    engine = engine_of(bench, faults=fault("context_missing"))

    walked = search(bench, engine, {"operation.restarts": 2})

    assert walked.receipt.stop_reason == "snapshot_expired"
    assert len(walked.night.earlier) == 2
    assert engine.points.open == {}


def test_a_point_in_time_outlives_a_walk_by_each_request_alone(bench: Bench) -> None:
    """A minute to each page; kept alive for two minutes, then for half of one."""

    def slowly(figures: Mapping[str, Any]) -> None:
        bench.clock.now += timedelta(minutes=1)

    def told(keep_alive: str) -> tuple[str, str]:
        engine = engine_of(bench)
        scan = parse_scan(edited(CUSTOMERS, {"source.keep_alive": keep_alive}))
        place = bench.workspace(inner=answering(engine), environ=ENVIRON)
        receipt = run_scan(scan, workspace=place, progress=slowly).stored.receipt
        assert engine.points.open == {}
        return receipt.stop_reason, receipt.coverage_status

    assert told("2m") == ("end_signal", "verified")
    assert told("30s") == ("snapshot_expired", "unknown")


@pytest.mark.parametrize("kind", ["rejected", "unavailable"])
def test_refusals_in_passing_are_sent_again(bench: Bench, kind: SearchDamage) -> None:
    walked = search(bench, engine_of(bench, faults=fault(kind, last_attempt=2)))

    assert walked.verdict == WHOLE
    assert walked.receipt.refused_responses == 2


def test_what_stays_unavailable_can_be_resumed_by_nobody_and_leaves_nothing_open(
    bench: Bench,
) -> None:
    walked = search(bench, engine_of(bench, faults=fault("unavailable")))

    assert walked.receipt.stop_reason == "source_unavailable"
    assert walked.engine.points.open == {}


@pytest.mark.parametrize("edits", [{}, OPENSEARCH], ids=["elasticsearch", "opensearch"])
@pytest.mark.parametrize("closing", ["fails", "unsuccessful"])
def test_a_close_that_fails_is_told_and_changes_no_judgement(
    bench: Bench, closing: str, edits: Mapping[str, Any]
) -> None:
    engine = engine_of(bench, closing=closing, engine=edits.get("source.engine", "elasticsearch"))

    walked = search(bench, engine, edits)

    assert walked.verdict == WHOLE
    assert "held_by_source" in walked.notes
    assert len(engine.points.open) == 1


@pytest.mark.parametrize("after", [0, 2])
def test_cancelled_walk_leaves_no_point_in_time_open(bench: Bench, after: int) -> None:
    engine = engine_of(bench)

    def cancelled() -> None:
        if sum(each.path == "/_search" for each in engine.asked) >= after:
            raise CancelledError("someone asked")

    scan = parse_scan(CUSTOMERS)
    place = bench.workspace(inner=answering(engine), environ=ENVIRON)
    receipt = run_scan(scan, workspace=place, check_cancelled=cancelled).stored.receipt

    assert (receipt.traversal, receipt.pages_observed) == ("cancelled", after)
    assert engine.points.open == {}


def test_a_key_that_several_indices_share_needs_the_index_beside_it(bench: Bench) -> None:
    """Behind one alias: a scan file cannot tell, and the documents do."""
    layout = Layout(indices=2, ids="per_index")

    alone = search(bench, engine_of(bench, layout=layout))
    both = search(bench, engine_of(bench, layout=layout), {"contract.key": ["_index", "_id"]})

    assert alone.verdict[1] == "failed"
    assert "conflicting_versions" in alone.codes
    assert both.verdict == WHOLE


@pytest.mark.parametrize(
    ("index", "found"), [("orders", "request_rejected"), ("customers-9*", "answer_partial")]
)
def test_an_index_that_is_not_there_is_no_empty_one(bench: Bench, index: str, found: str) -> None:
    edits = {"source.index": index, "contract.key": ["_index", "_id"]}
    walked = search(bench, engine_of(bench), edits)

    assert walked.verdict[1] == "failed"
    assert found in walked.codes


def test_another_principal_after_the_walk_fails(bench: Bench, tmp_path: Path) -> None:
    """Both see all that the point in time holds; what the second may see by now is not known."""
    token = tmp_path / "token"
    token.write_text(AUDITOR_TOKEN, encoding="utf-8")
    edits = {"source.auth": {"bearer": {"file": str(token)}}}
    scan = parse_scan(edited(CUSTOMERS, edits))
    workspace = bench.workspace(inner=answering(engine_of(bench)), environ={})

    def replaced(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == 5:
            token.write_text(ANALYST_TOKEN, encoding="utf-8")

    receipt = run_scan(scan, workspace=workspace, progress=replaced).stored.receipt

    assert receipt.coverage_status == "failed"
    assert "principal_changed" in {each.code for each in receipt.findings.first}


def test_an_api_key_is_named_beside_its_owner(bench: Bench) -> None:
    walked = search(
        bench,
        engine_of(bench),
        {"source.auth": {"api_key": {"header": "authorization", "value": {"env": "KEY"}}}},
        environ={"KEY": f"ApiKey {AUDITOR_TOKEN}"},
    )

    principal = walked.receipt.identity.before.principal
    assert principal == "auditor@registry.example (API key VuaCfGcB)"


def test_wrong_credentials_are_a_refusal_and_open_nothing(bench: Bench) -> None:
    walked = search(bench, engine_of(bench), environ={"REGISTRY_TOKEN": "nobody"})

    assert walked.receipt.stop_reason == "access_refused"
    assert walked.engine.points.open == {}


def test_refresh_makes_earlier_writes_visible_before_the_point_in_time(bench: Bench) -> None:
    walked = search(bench, engine_of(bench), {"source.refresh": True})

    paths = [each.path for each in walked.engine.asked]
    assert paths.index("/customers/_refresh") < paths.index("/customers/_pit")
    believed = {each.name: each.basis for each in walked.receipt.assumptions}
    assert believed["earlier_writes_refreshed"] == "observed"
    unasked = search(bench, engine_of(bench)).receipt.assumptions
    assert ("earlier_writes_refreshed", "assumed") in {(e.name, e.basis) for e in unasked}


def test_a_filter_is_counted_as_it_is_walked(bench: Bench) -> None:
    walked = search(
        bench,
        engine_of(bench),
        {
            "source.search": {"query": {"term": {"region": "eu"}}},
            "contract.partition_by": "region",
            "contract.expect": {"every_record": {"region": "eu"}},
        },
    )

    assert walked.verdict == WHOLE
    assert 0 < walked.receipt.records_observed < SIZE


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "opensearch_without_a_tie_breaker": ({"source.engine": "opensearch"}, "sort may tie documents"),
    "document_number_for_a_tie_breaker": (
        {"source.engine": "opensearch", "source.sort": ["_doc"], "source.tie_breaker": ["_doc"]},
        "never _doc or _score",
    ),
    "tie_breaker_that_is_not_sorted_by": (
        {"source.engine": "opensearch", "source.sort": ["region"], "source.tie_breaker": ["_id"]},
        "which sort does not",
    ),
    "live_without_a_tie_breaker": (
        {"source.snapshot": None, "contract.consistency": "live"},
        "sort may tie documents",
    ),
    "live_by_shard_and_document": (
        {
            "source.snapshot": None,
            "source.sort": ["_shard_doc"],
            "contract.consistency": "live",
        },
        "sorts points in time alone",
    ),
    "point_in_time_and_live": ({"contract.consistency": "live"}, "source.snapshot: null"),
    "pattern_with_ids_alone": ({"source.index": "customers-*"}, r"expected \[_index, _id\]"),
    "pattern_sorted_by_ids_alone": (
        {
            "source.engine": "opensearch",
            "source.index": "a,b",
            "source.sort": ["_id"],
            "source.tie_breaker": ["_id"],
            "contract.key": ["_index", "_id"],
        },
        "to name _index too",
    ),
    "search_that_stops_early": ({"source.search": {"terminate_after": 10}}, "terminate_after"),
    "search_that_pages_by_itself": ({"source.search": {"from": 10}}, "from"),
    "search_that_folds_documents": ({"source.search": {"collapse": {"field": "a"}}}, "collapse"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_scan_file_that_cannot_prove_the_whole_is_refused(name: str) -> None:
    edits, told = REFUSED[name]

    with pytest.raises(ScanFileError, match=told):
        parse_scan(edited(CUSTOMERS, edits))


@pytest.mark.parametrize("provider", ["elasticsearch", "opensearch"])
def test_provider_file_walks_the_whole_index(bench: Bench, provider: str) -> None:
    """With the little that is left to say."""
    order = {"source.sort": ["customer_id"], "source.tie_breaker": ["customer_id"]}
    walked = search(
        bench,
        engine_of(bench, engine=provider),
        {
            "source.provider": provider,
            "source.protocol": ...,
            **(order if provider == "opensearch" else {}),
        },
    )

    assert walked.verdict == WHOLE
    basis = {each.name: each.basis for each in walked.receipt.assumptions}
    assert basis["pin_honoured"] == basis["count_exact"] == "provider_documented"


@pytest.mark.parametrize("names", ["kept", "rotate"])
def test_check_of_the_connection_passes_and_leaves_nothing_open(bench: Bench, names: Names) -> None:
    engine, scan = engine_of(bench, names=names), parse_scan(CUSTOMERS)
    source = bench.workspace(inner=answering(engine), environ=ENVIRON).source(scan)
    try:
        found = check_connection(scan, source=source)
    finally:
        source.close()

    assert {each.result for each in found.lines} <= {"passed", "not_declared"}
    assert {each.question for each in found.lines if each.result == "passed"} >= {
        "identity",
        "count",
        "snapshot",
    }
    assert engine.points.open == {}
