"""The `kubernetes` protocol over HTTP, against a cluster that keeps the documented contract."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.simulator import kubernetes_faults as faulty
from scan_pipeline.simulator.kubernetes import READER, KubernetesCluster
from scan_pipeline.simulator.kubernetes_answers import NEWEST, opened_token
from scan_pipeline.simulator.mutations import Delete, Insert, Update
from scan_pipeline.simulator.population import population
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.connecting.connection import check_connection
from scan_pipeline_tests.conftest import SteppingClock
from scan_pipeline_tests.sources.clusters import (
    DIRECT,
    FACTS,
    ClusterBench,
    after_page,
    cluster_bench,
)
from scan_pipeline_tests.sources.over_http import Killed

CUSTOMERS = 8_742
SOME = 300
"""A population of three chunks of 100."""

CHUNKS = {"source.limit": 100}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ClusterBench]:
    with cluster_bench(tmp_path, SteppingClock(datetime(2026, 11, 30, 2, tzinfo=UTC))) as bench:
        yield bench


def _number(spec: dict[str, object]) -> str:
    return str(spec["customer_id"])


def names(size: int = SOME) -> set[str]:
    return {f"customer-{number}" for number in range(1, size + 1)}


def test_file_of_facts_is_one_a_user_could_have_written():
    scan = read_scan_file(FACTS).parse()

    assert scan.source.protocol == "kubernetes"
    assert scan.source.tool == ("GET /apis/registry.example.com/v1/customers of context production")


def test_every_customer_is_verified_at_one_version(bench):
    cluster = KubernetesCluster()

    walked = bench.walk(cluster)

    receipt = walked.receipt
    assert (walked.verdict, receipt.accepted) == (("verified", "finished"), True)
    assert receipt.conclusion_scope == "all_records_in_snapshot"
    assert (receipt.pages_observed, receipt.unique_ids_observed) == (18, CUSTOMERS)
    assert (receipt.snapshot_id, receipt.merkle.leaf_encoding) == ("1000", "raw/v1")
    assert receipt.records_expected is None  # what remains is an estimate
    assert walked.codes == set()
    assert (receipt.identity.before.principal, receipt.identity.after.principal) == (READER, READER)
    assert {each.name: each.basis for each in receipt.assumptions} == {
        "pin_honoured": "provider_documented",
        "end_signal_is_denominator": "provider_documented",
        "principal_view_constant": "observed",
        "token_repeatable": "provider_documented",
    }
    assert walked.audit_agrees
    specs = walked.rows().sort("_page", "_position")["spec"].to_list()
    assert len(specs) == CUSTOMERS
    assert walked.names() == names(CUSTOMERS)


def test_version_is_never_sent_beside_a_token_and_the_first_chunk_is_read_again_exactly(bench):
    cluster = KubernetesCluster(size=SOME)

    bench.walk(cluster, CHUNKS)

    first, second, third, again, sampled = cluster.asked
    assert first == {"limit": "100"}
    assert second.keys() == third.keys() == {"limit", "continue"}
    assert again == {
        "limit": "100",
        "resourceVersion": "1000",
        "resourceVersionMatch": "Exact",
    }
    assert sampled in (second, third)


def test_writes_in_mid_walk_do_not_show(bench):
    """Insert before and behind the position, delete what is to come, change what was read."""
    cluster = KubernetesCluster(size=SOME)

    def elsewhere():
        cluster.mutate(
            Insert(first=301, last=320),
            Delete(first=250, last=260),
            Update(first=1, last=40, status="closed"),
        )

    walked = bench.walk(cluster, CHUNKS, progress=after_page(1, elsewhere))

    assert walked.verdict == ("verified", "finished")
    assert walked.names() == names()
    specs = [json.loads(each) for each in walked.rows()["spec"]]
    born = [json.loads(row.raw) for row in population("customers", SOME)]
    assert sorted(specs, key=_number) == sorted(born, key=_number)


def test_expiry_begins_a_generation_from_nothing_and_never_takes_the_weaker_token(bench):
    cluster = KubernetesCluster(size=SOME)

    def elsewhere():
        cluster.mutate(Delete(first=1), Insert(first=301))
        cluster.compact()

    walked = bench.walk(cluster, CHUNKS, progress=after_page(2, elsewhere))

    (expired,) = (stored.receipt for stored in walked.night.earlier)
    assert (expired.traversal, expired.stop_reason) == ("interrupted", "snapshot_expired")
    assert (expired.coverage_status, expired.records_observed) == ("unknown", 200)
    assert expired.refused_responses == 1
    assert walked.receipt.scan_generation == f"{expired.scan_generation}.2"
    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.snapshot_id == "1002"
    assert walked.names() == (names() | {"customer-301"}) - {"customer-1"}
    tokens = [each["continue"] for each in cluster.asked if "continue" in each]
    assert NEWEST not in {opened_token(each)[0] for each in tokens}


def test_expiry_without_end_is_bounded(bench):
    cluster = KubernetesCluster(
        size=SOME, faults=[faulty.Compacted(request=2 * n) for n in range(1, 9)]
    )

    walked = bench.walk(cluster, {**CHUNKS, "operation.restarts": 2})

    assert len(walked.night.earlier) == 2
    assert (walked.receipt.coverage_status, walked.receipt.stop_reason) == (
        "unknown",
        "snapshot_expired",
    )
    with pytest.raises(GateClosedError):
        walked.rows()


def test_version_that_is_gone_before_the_recheck_is_not_called_verified(bench):
    cluster = KubernetesCluster(size=SOME)

    def elsewhere():
        cluster.write_elsewhere()
        cluster.compact()

    walked = bench.walk(cluster, CHUNKS, progress=after_page(3, elsewhere))

    assert walked.verdict == ("unknown", "finished")
    assert walked.codes == {"snapshot_expired"}
    assert walked.night.earlier == ()


def test_version_that_drifts_in_mid_walk_fails(bench):
    cluster = KubernetesCluster(size=SOME, faults=[faulty.VersionDrifted(request=2)])

    walked = bench.walk(cluster, CHUNKS, progress=after_page(1, cluster.write_elsewhere))

    assert walked.verdict == ("failed", "failed")
    assert walked.codes == {"snapshot_changed"}


@pytest.mark.parametrize("request_number", [4, 5], ids=["the first chunk", "a later chunk"])
def test_version_that_is_named_and_not_kept_is_found_by_the_recheck(bench, request_number):
    cluster = KubernetesCluster(size=SOME, faults=[faulty.PinIgnored(request=request_number)])

    def elsewhere():
        cluster.mutate(Update(first=1, last=SOME, status="closed"))

    walked = bench.walk(cluster, CHUNKS, progress=after_page(3, elsewhere))

    assert walked.verdict == ("failed", "finished")
    assert walked.codes == {"pin_not_honoured"}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (faulty.MemberMissing(request=2, member="metadata"), "pin_not_reported"),
        (faulty.MemberMissing(request=2, member="resourceVersion"), "pin_not_reported"),
        (faulty.MemberMissing(request=3, member="resourceVersion"), "pin_not_reported"),
        (faulty.KindWrong(request=1, kind="PodList"), "error_envelope"),
        (faulty.KindWrong(request=2, kind="List"), "error_envelope"),
        (faulty.KindWrong(request=2, api_version="registry.example.com/v2"), "error_envelope"),
        (faulty.StatusSent(request=2, status=200, reason="InternalError"), "error_envelope"),
        (faulty.StatusSent(request=2, status=400, reason="BadRequest"), "request_rejected"),
        (faulty.StatusSent(request=1, status=404, reason="NotFound"), "request_rejected"),
        (faulty.TokenRepeated(request=2), "cursor_repeated"),
        (faulty.LimitExceeded(request=2), "page_size_not_honoured"),
    ],
    ids=str,
)
def test_answer_that_breaks_the_contract_fails(bench, fault, code):
    walked = bench.walk(KubernetesCluster(size=SOME, faults=[fault]), CHUNKS)

    assert walked.verdict == ("failed", "failed")
    assert walked.codes == {code}


@pytest.mark.parametrize(
    ("fault", "pages"),
    [
        (faulty.LimitIgnored(request=1, through=2), 1),
        (faulty.ChunkShort(request=2, objects=7), 4),
        (faulty.ChunkShort(request=2, objects=0), 4),
    ],
    ids=str,
)
def test_chunks_may_hold_fewer_than_asked_for_or_everything(bench, fault, pages):
    walked = bench.walk(KubernetesCluster(size=SOME, faults=[fault]), CHUNKS)

    assert walked.receipt.pages_observed == pages
    assert walked.verdict == ("verified", "finished")
    assert walked.names() == names()


@pytest.mark.parametrize("by", [-50, 1_000])
def test_what_remains_is_an_estimate_and_decides_nothing(bench, by):
    wrong = faulty.RemainingWrong(request=1, through=5, by=by)
    edits = CHUNKS if by > 0 else {**CHUNKS, "source.limit": 150}
    faults = [wrong] if by > 0 else [faulty.RemainingWrong(request=1, by=by)]

    walked = bench.walk(KubernetesCluster(size=SOME, faults=faults), edits)

    assert (walked.verdict, walked.codes) == (("verified", "finished"), set())
    assert walked.receipt.records_expected is None


def test_list_that_ends_early_is_told_by_a_count_known_from_elsewhere(bench):
    """The end is believed as documented; a denominator of one's own checks it."""
    cluster = KubernetesCluster(size=SOME, faults=[faulty.EndedEarly(request=2, through=9)])

    walked = bench.walk(cluster, {**CHUNKS, "contract.expect": {"count": SOME}})

    assert walked.verdict == ("failed", "finished")
    assert walked.codes == {"count_missed"}


def test_throttling_waits_as_long_as_it_is_asked_to(bench):
    throttled = faulty.StatusSent(
        request=2, through=3, status=429, reason="TooManyRequests", retry_after_s=7
    )
    too_new = faulty.StatusSent(request=5, status=504, reason="Timeout", retry_after_s=1)

    walked = bench.walk(KubernetesCluster(size=SOME, faults=[throttled, too_new]), CHUNKS)

    assert walked.verdict == ("verified", "finished")
    assert walked.slept == [7.0, 7.0, 1.0]


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (401, "Unauthorized")])
def test_right_that_is_taken_away_interrupts(bench, status, reason):
    lost = faulty.StatusSent(request=2, through=9, status=status, reason=reason)

    walked = bench.walk(KubernetesCluster(size=SOME, faults=[lost]), CHUNKS)

    assert walked.verdict == ("unknown", "interrupted")
    assert walked.receipt.stop_reason == "access_refused"


def test_another_user_after_the_walk_fails(bench):
    cluster = KubernetesCluster(
        size=SOME, faults=[faulty.UserReplaced(request=2, user="someone-else")]
    )

    walked = bench.walk(cluster, CHUNKS)

    assert walked.verdict == ("failed", "finished")
    assert walked.codes == {"principal_changed"}


def test_server_that_cannot_tell_who_asks_is_walked_without(bench):
    walked = bench.walk(KubernetesCluster(size=SOME, reviews=False), CHUNKS)

    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.identity.before.principal is None


@pytest.mark.parametrize("reviews", [True, False])
def test_scan_of_one_user_is_walked_as_no_other(bench, reviews):
    cluster = KubernetesCluster(size=SOME, reviews=reviews)

    walked = bench.walk(cluster, {**CHUNKS, "source.user": "auditor"})

    assert walked.receipt.coverage_status == "failed"
    assert cluster.asked == []


def test_selectors_and_namespace_narrow_what_is_verified(bench):
    cluster = KubernetesCluster(size=SOME)

    walked = bench.walk(
        cluster,
        {
            "source.limit": 20,
            "source.namespace": "acme",
            "source.label_selector": "region=eu,status!=closed",
        },
    )

    chosen = {
        f"customer-{row.number}"
        for row in population("customers", SOME)
        if (row.traits.tenant, row.traits.region) == ("acme", "eu")
        and row.traits.status != "closed"
    }
    assert walked.verdict == ("verified", "finished")
    assert walked.names() == chosen
    assert all(each["labelSelector"] == "region=eu,status!=closed" for each in cluster.asked)
    assert walked.receipt.query["namespace"] == "acme"


def test_metadata_alone_is_asked_for_and_comes(bench):
    walked = bench.walk(KubernetesCluster(size=SOME), {**CHUNKS, "source.metadata_only": True})

    assert walked.verdict == ("verified", "finished")
    rows = walked.rows()
    assert "spec" not in rows.columns
    assert rows["kind"].unique().to_list() == ["PartialObjectMetadata"]


def test_no_object_at_all_is_verified_like_many(bench):
    walked = bench.walk(KubernetesCluster(size=0))

    assert walked.verdict == ("verified", "finished")
    assert walked.receipt.unique_ids_observed == 0


def test_walk_that_was_killed_is_taken_up_under_the_same_version(bench):
    cluster, workspace = KubernetesCluster(size=SOME), bench.workspace()
    edits = {"source.limit": 50, "operation.commit_pages": 1}

    def killed():
        raise Killed

    with pytest.raises(Killed):
        bench.walk(cluster, edits, workspace=workspace, progress=after_page(5, killed))
    cluster.mutate(Delete(first=1, last=50))
    read = len(cluster.asked)
    walked = bench.walk(cluster, edits, workspace=workspace)

    assert walked.verdict == ("verified", "finished")
    assert walked.names() == names()
    taken_up = cluster.asked[read:]
    assert all("continue" in each or "resourceVersion" in each for each in taken_up)
    assert walked.audit_agrees


def test_walk_that_was_killed_and_compacted_begins_again(bench):
    cluster, workspace = KubernetesCluster(size=SOME), bench.workspace()
    edits = {**CHUNKS, "operation.commit_pages": 1}

    def killed():
        raise Killed

    with pytest.raises(Killed):
        bench.walk(cluster, edits, workspace=workspace, progress=after_page(2, killed))
    cluster.mutate(Delete(first=1))
    cluster.compact()
    walked = bench.walk(cluster, edits, workspace=workspace)

    assert [each.receipt.stop_reason for each in walked.night.earlier] == ["snapshot_expired"]
    assert walked.verdict == ("verified", "finished")
    assert walked.names() == names() - {"customer-1"}


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"source.context": ...}, "needs"),
        ({"source.auth": {"bearer": {"env": "T"}}}, "takes"),
        ({"source.access": "in_cluster"}, "takes"),
        ({"source.access": "direct"}, "needs"),
        ({"source.url": "https://user@cluster.test"}, "credentials"),
        ({"source.namespace": "../../api/v1/secrets"}, "of the form"),
        ({"source.resource.plural": "pods/../secrets"}, "of the form"),
        ({"source.resource.kind": ...}, "missing"),
        ({"source.count.exactness": "exact"}, "documents another value"),
        (
            {"source.provider": ..., "source.protocol": "kubernetes", "source.count": None},
            "of your own",
        ),
        ({"source.limit": 0}, "more than 0"),
    ],
)
def test_facts_that_contradict_kubernetes_are_refused(bench, edits, told):
    with pytest.raises(ContractError, match=told):
        bench.scan(edits)


def test_provider_file_says_what_the_protocol_says_by_itself(bench):
    named = bench.scan()
    alone = bench.scan({"source.provider": ..., "source.protocol": "kubernetes"})

    assert (alone.source.count, alone.source.snapshot, alone.source.limit) == (
        named.source.count,
        named.source.snapshot,
        named.source.limit,
    )


def test_connection_is_checked_with_two_chunks_and_the_user_named(bench):
    cluster = KubernetesCluster(size=SOME)
    scan = bench.scan({**DIRECT, **CHUNKS, "source.url": bench.serve(cluster)})
    source = bench.workspace().source(scan)

    lines = {each.question: each for each in check_connection(scan, source=source).lines}
    source.close()

    assert (lines["identity"].result, lines["identity"].found) == ("passed", READER)
    assert (lines["snapshot"].result, lines["count"].result) == ("passed", "passed")
    assert len(cluster.asked) == 2


def test_page_size_and_kubeconfig_do_not_move_the_scope(bench):
    scopes = {
        scope_digest(bench.scan(edits))
        for edits in ({}, {"source.limit": 100}, {"source.kubeconfig": "/elsewhere/config"})
    }

    assert len(scopes) == 1
    assert scope_digest(bench.scan({"source.context": "staging"})) not in scopes


def test_opening_a_source_reads_no_kubeconfig(bench):
    """Later stages and audits open a source on machines that reach no cluster."""
    scan, place = bench.scan({"source.kubeconfig": "/nowhere/config"}), bench.workspace()
    source = place.source(scan)
    body = b'{"kind":"CustomerList","metadata":{},"items":[{"a":1},{"a":2}]}'

    assert source.records(body) == [b'{"a":1}', b'{"a":2}']
    assert source.waited == 0.0
    source.close()
