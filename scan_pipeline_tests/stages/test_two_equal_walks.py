"""Two whole walks in succession: equal roots corroborate, and nothing else does."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt_statement import receipt_json
from scan_pipeline.simulator.mutations import Delete, Insert, Mutation, Update
from scan_pipeline.simulator.principals import ANALYST_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import THINGS, Bench, Walked, edited
from scan_pipeline_tests.stages.breaking import BrokeOff

TWICE: dict[str, Any] = {
    "source.snapshot": ...,
    "source.partition_counts": ...,
    "source.count": ...,
    "source.params": {"view": "live"},
    "contract.consistency": "two_equal_walks",
    "contract.expect": {},
    "contract.accept": {},
    "contract.limits": {"seconds": 600},
    "operation": {"commit_pages": 1},
}
SIZE = 500
PAGES = 5
WHOLE = ("corroborated", "all_records_present_throughout_both_walks", True)
MET = ("unknown", "records_encountered_in_live_traversal", False)
FAILED = ("failed", "observed_pages_only", False)


class Before(httpx2.BaseTransport):
    """The registry, with what happens before the n-th page request (from 1) is answered."""

    def __init__(self, bench: Bench, registry: Registry, happens: dict[int, Callable[[], None]]):
        self._inner = SimulatorTransport(registry, sleep=bench.clock.sleep)
        self._happens, self._asked = happens, 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v1/customers":
            self._asked += 1
            self._happens.get(self._asked, lambda: None)()
        return self._inner.handle_request(request)


def busy(bench: Bench, at: int, *writes: Mutation, **edits: Any) -> Walked:
    """Walk twice while somebody writes before one of the page requests."""
    registry, scan = bench.registry(size=SIZE), bench.scan({**TWICE, **edits})

    def write() -> None:
        for each in writes:
            registry.mutate(each)

    workspace = bench.workspace(inner=Before(bench, registry, {at: write}))
    night = run_scan(scan, workspace=workspace)
    return Walked(scan=scan, workspace=workspace, registry=registry, night=night)


def audited(walked: Walked) -> set[str]:
    """Return the names of the checks of an audit that agrees."""
    report = Audit(walked.scan.name, walked.generation, workspace=walked.workspace).run()
    assert report.agrees, report.disagreements
    return {each.name for each in report.checks}


@pytest.mark.parametrize("over", ["process", "port"])
def test_quiet_source_is_corroborated_and_opens_to_who_asks_for_it(bench: Bench, over: str) -> None:
    walked = bench.walk(bench.registry(size=SIZE), TWICE, over=over)
    receipt, second = walked.receipt, walked.receipt.second_walk

    assert walked.verdict == WHOLE
    assert (receipt.accept.status, receipt.accept.scope) == WHOLE[:2]
    assert receipt.reasons == ()
    assert second is not None
    assert second.figures is not None
    assert second.figures.root == receipt.merkle.root
    assert second.figures.differences().startswith("0 keys")
    assert second.cursor_chain_digest != receipt.cursor_chain_digest
    assert (receipt.pages_observed, second.pages_observed) == (PAGES, PAGES)
    assert (receipt.records_observed, second.records_observed) == (SIZE, SIZE)
    assert second.observation_started_at > (receipt.last_page_at or "")
    assert receipt.evidence["pages"].rows == 2 * (PAGES + 2)
    assert receipt.evidence["second_walk"].rows == receipt.evidence["records"].rows == SIZE
    assumed = {each.name: each.basis for each in receipt.assumptions}
    assert assumed["continuations_go_by_key"] == "assumed"
    assert assumed["key_immutable"] == "user_declared"
    with pytest.raises(GateClosedError):
        walked.collection.latest()
    assert walked.collection.latest(at_least="corroborated").frame().collect().height == SIZE
    assert walked.opens.published == SIZE
    assert {
        "chain of the second walk",
        "bodies of the second walk",
        "records by page of the second walk",
        "second_walk.figures.root",
        "files of second_walk",
    } <= audited(walked)


def test_empty_source_is_corroborated_as_empty(bench: Bench) -> None:
    walked = bench.walk(bench.registry(size=0), TWICE)

    assert walked.verdict == WHOLE
    assert walked.receipt.unique_ids_observed == 0
    audited(walked)


@pytest.mark.parametrize(
    ("at", "writes", "told"),
    [
        (PAGES + 1, (Insert(first=501),), "0 keys only in the first walk, 1 only in the second, 0"),
        (PAGES + 1, (Delete(first=7),), "1 keys only in the first walk, 0 only in the second, 0"),
        (
            PAGES + 1,
            (Update(first=7, last=9, status="suspended"),),
            "0 keys only in the first walk, 0 only in the second, 3 differing",
        ),
        (
            PAGES + 1,
            (Delete(first=7), Insert(first=501), Update(first=8, status="suspended")),
            "1 keys only in the first walk, 1 only in the second, 1 differing",
        ),
        (3, (Delete(first=7),), "1 keys only in the first walk, 0 only in the second, 0"),
        (PAGES + 3, (Delete(first=450),), "1 keys only in the first walk, 0 only in the second, 0"),
    ],
    ids=["insert", "delete", "update", "equal counts", "in the first walk", "in the second walk"],
)
def test_busy_source_is_not_corroborated_and_says_how_many_keys_differ(
    bench: Bench, at: int, writes: tuple[Mutation, ...], told: str
) -> None:
    walked = busy(bench, at, *writes)

    assert walked.verdict == MET
    assert walked.codes == {"walks_differ"}
    (differ,) = (f for f in walked.receipt.findings.first if f.code == "walks_differ")
    assert (differ.found or "").startswith(told)
    assert differ.key is None
    assert "the two walks are not equal" in walked.receipt.reasons
    with pytest.raises(GateClosedError):
        walked.collection.generation(walked.generation, at_least="corroborated")
    assert walked.published() is None
    audited(walked)


def test_write_behind_the_first_walk_and_undone_before_the_second_is_no_difference(
    bench: Bench,
) -> None:
    """All that is claimed is of records present throughout both walks."""
    walked = busy(bench, PAGES + 1, Insert(first=501), Delete(first=501))

    assert walked.verdict == WHOLE


def test_declared_count_that_is_missed_fails_all_the_same(bench: Bench) -> None:
    walked = bench.walk(bench.registry(size=SIZE), {**TWICE, "contract.expect": {"count": 501}})

    assert walked.verdict == FAILED
    assert walked.codes == {"count_missed"}


def things_twice(bench: Bench, first: list[list[bytes]], second: list[list[bytes]]) -> Walked:
    """Walk pages that a test lays down for each walk."""
    walks = [first, second]
    begun = -1

    def answer(request: httpx2.Request) -> httpx2.Response:
        nonlocal begun
        number = int(request.url.params.get("cursor", "0"))
        begun += number == 0
        pages = walks[begun]
        follows = f'"{number + 1}"' if number + 1 < len(pages) else "null"
        return httpx2.Response(
            200, content=b'{"items":[%b],"next":%b}' % (b",".join(pages[number]), follows.encode())
        )

    plain = {"source.snapshot": ..., "source.count": ..., "contract.consistency": "two_equal_walks"}
    scan = parse_scan(edited(THINGS, plain))
    workspace = bench.workspace(inner=httpx2.MockTransport(answer))
    night = run_scan(scan, workspace=workspace)
    return Walked(scan=scan, workspace=workspace, registry=None, night=night)


def item(name: str, number: int = 1) -> bytes:
    return json.dumps({"id": name, "n": number}).encode()


def test_order_and_page_edges_make_no_difference(bench: Bench) -> None:
    walked = things_twice(
        bench, [[item("a"), item("b")], [item("c")]], [[item("c")], [item("b"), item("a")]]
    )

    assert walked.verdict == WHOLE
    audited(walked)


@pytest.mark.parametrize("odd", [0, 1], ids=["in the first", "in the second"])
@pytest.mark.parametrize(
    ("page", "code"),
    [
        ([item("a"), item("a")], "duplicate_delivery"),
        ([item("a"), item("a", 2)], "conflicting_versions"),
        ([item("a"), b'{"n":1}'], "record_without_key"),
    ],
)
def test_flaw_in_either_walk_fails(bench: Bench, page: list[bytes], code: str, odd: int) -> None:
    walks = [[[item("a")]], [[item("a")]]]
    walks[odd] = [page]

    walked = things_twice(bench, *walks)

    assert walked.verdict == FAILED
    assert code in walked.codes
    audited(walked)


def break_in_second(bench: Bench, registry: Registry, scan: Any, after: int) -> Workspace:
    """Break off once so many pages of the second walk are durable."""

    def stop() -> None:
        while sum(e.event == "page" for e in stored().events(SECOND_WALK)) < after:
            pass
        raise BrokeOff

    workspace = bench.workspace(
        inner=Before(bench, registry, {PAGES + after + 1: stop} if after else {PAGES + 1: stop})
    )

    def stored() -> Any:
        (generation,) = workspace.store(scan.name, "20000101T000000Z").pages().generations()
        return workspace.store(scan.name, generation)

    with pytest.raises(BrokeOff):
        run_scan(scan, workspace=workspace)
    return workspace


@pytest.mark.parametrize(
    "after", [0, 3, *(pytest.param(pages, marks=pytest.mark.long) for pages in (1, 4))]
)
def test_second_walk_that_broke_off_is_taken_up_and_comes_to_the_same_root(
    bench: Bench, after: int
) -> None:
    registry, scan = bench.registry(size=SIZE), bench.scan(TWICE)
    broken = break_in_second(bench, registry, scan, after)
    asked = len(registry.served.pages)
    workspace = bench.workspace(registry, project=broken.project)

    night = run_scan(scan, workspace=workspace)

    walked = Walked(scan=scan, workspace=workspace, registry=registry, night=night)
    assert walked.verdict == WHOLE
    assert (
        walked.receipt.merkle.root
        == bench.walk(bench.registry(size=SIZE), TWICE).receipt.merkle.root
    )
    # Its last page is read again; the first walk is not.
    assert len(registry.served.pages) - asked == PAGES - after + (after > 0)
    audited(walked)


def test_second_walk_is_not_taken_up_by_another_principal(bench: Bench) -> None:
    registry, scan = bench.registry(size=SIZE), bench.scan({**TWICE, "source.identity": ...})
    broken = break_in_second(bench, registry, scan, 2)
    other = bench.workspace(
        registry, project=broken.project, environ={"REGISTRY_TOKEN": ANALYST_TOKEN}
    )

    night = run_scan(scan, workspace=other)

    (ended,) = (each.receipt for each in night.earlier)
    assert (ended.coverage_status, ended.traversal) == ("failed", "finished")
    assert ended.second_walk is not None
    assert ended.second_walk.stop_reason == "principal_changed"
    assert night.stored.receipt.restart_of == ended.scan_generation


def test_second_walk_whose_time_is_over_is_closed_as_what_it_is(bench: Bench) -> None:
    registry, scan = bench.registry(size=SIZE), bench.scan(TWICE)
    broken = break_in_second(bench, registry, scan, 2)
    bench.clock.sleep(601)
    workspace = bench.workspace(registry, project=broken.project)

    night = run_scan(scan, workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    assert (closed.coverage_status, closed.conclusion_scope) == MET[:2]
    assert closed.second_walk is not None
    assert closed.second_walk.stop_reason == "abandoned"
    assert night.stored.receipt.coverage_status == "corroborated"


def test_limits_apply_to_each_walk(bench: Bench) -> None:
    enough = {**TWICE, "contract.limits": {"pages": PAGES + 1}}

    assert bench.walk(bench.registry(size=SIZE), enough).verdict == WHOLE

    registry, scan = bench.registry(size=SIZE), bench.scan(enough)
    grown = Before(
        bench, registry, {PAGES + 1: lambda: registry.mutate(Insert(first=501, last=620))}
    )
    workspace = bench.workspace(inner=grown)
    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope) == MET[:2]
    assert receipt.second_walk is not None
    assert receipt.second_walk.limits_hit == ("pages",)


def test_first_walk_that_did_not_finish_has_no_second(bench: Bench) -> None:
    walked = bench.walk(bench.registry(size=SIZE), {**TWICE, "contract.limits": {"pages": 3}})

    assert walked.verdict == ("unknown", "observed_pages_only", False)
    assert walked.receipt.second_walk is None
    assert "second_walk" not in receipt_json(walked.receipt)
    assert "second_walk" not in walked.receipt.evidence


def test_restage_judges_both_walks_again(bench: Bench) -> None:
    walked = bench.walk(bench.registry(size=SIZE), TWICE)

    again = restage(walked.scan, walked.generation, workspace=walked.workspace)

    assert again.receipt.coverage_status == "corroborated"
    assert again.receipt.second_walk == walked.receipt.second_walk
    report = Audit(walked.scan.name, again.receipt.scan_generation, workspace=walked.workspace)
    assert report.run().agrees


def test_collection_of_two_walks_is_read_like_any_other(bench: Bench) -> None:
    walked = bench.walk(bench.registry(size=SIZE), TWICE)
    collection = Collection(walked.scan, workspace=walked.workspace)

    frame = collection.generation(walked.generation, at_least="corroborated").frame().collect()

    assert frame["customer_id"].n_unique() == frame.height == SIZE
