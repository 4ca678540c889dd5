"""A walk that broke off goes on as if it had not, or is closed as what it is."""

from datetime import timedelta

import httpx2
import pytest

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.simulator.mutations import Delete
from scan_pipeline.simulator.scenarios import SCENARIOS, scenario
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.stages.run import run_scan
from scan_pipeline.store.events import PAGES
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.breaking import BrokeOff, break_off, events_of, pages_of

SMALL = 500
"""Customers on five pages."""

ONE_BY_ONE = {"operation": {"commit_pages": 1}}
LIVE = {
    "source.snapshot": ...,
    "contract.consistency": "live",
    "contract.accept": {"scope": "records_encountered_in_live_traversal"},
}


class OutOfService(httpx2.BaseTransport):
    """Answers every request with 503."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(503, request=request)


def test_resumed_walk_asks_for_no_page_twice_but_the_last(bench: Bench) -> None:
    registry, scan = bench.registry(size=SMALL), bench.scan(ONE_BY_ONE)
    workspace = bench.workspace(registry)
    break_off(scan, workspace, after=3)
    asked = len(registry.served.pages)

    night = run_scan(scan, workspace=workspace)

    again = [page.page for page in registry.served.pages[asked:]]
    assert again[:3] == [3, 4, 5]
    assert night.stored.receipt.accepted
    assert night.stored.receipt.snapshot_id == registry.served.pages[-1].snapshot_id


def test_what_a_walk_noticed_before_the_break_is_not_forgotten(bench: Bench) -> None:
    """The count moved on page 5 and back; the process that saw it is gone."""
    moved = scenario("count_changes")
    calm = bench.walk(moved, ONE_BY_ONE).receipt
    registry, scan = bench.registry(moved), bench.scan(ONE_BY_ONE)
    workspace = bench.workspace(registry)
    break_off(scan, workspace, after=7)

    night = run_scan(scan, workspace=workspace)

    receipt = night.stored.receipt
    assert receipt.coverage_status == "failed"
    assert [f.code for f in receipt.findings.first] == [f.code for f in calm.findings.first]
    assert "count_changed" in {f.code for f in receipt.findings.first}


TEN_PAGES = sorted(name for name, each in SCENARIOS.items() if each.size == 1_000)


@pytest.mark.long
@pytest.mark.parametrize("name", TEN_PAGES)
def test_a_break_changes_no_judgement(bench: Bench, name: str) -> None:
    """Whatever happens to a walk, it comes to the same with a break after its second page."""
    happening = scenario(name)
    live = LIVE if happening.query.get("view") == "live" else {}
    edits = {**ONE_BY_ONE, **live, "source.params": dict(happening.query)}
    calm = bench.walk(happening, edits).receipt
    registry, scan = bench.registry(happening), bench.scan(edits)
    workspace = bench.workspace(registry)
    break_off(scan, workspace, after=2)

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    def told(of: Receipt) -> tuple[object, ...]:
        codes = [each.code for each in of.findings.first if each.severity != "note"]
        return of.coverage_status, of.conclusion_scope, of.accepted, codes, of.merkle.root

    assert told(receipt) == told(calm)


def test_a_source_that_is_down_when_a_walk_is_taken_up_is_no_other_principal(
    bench: Bench,
) -> None:
    scan = bench.scan({"operation": {"commit_pages": 1, "retries": {"attempts": 1}}})
    workspace = bench.workspace(bench.registry(size=SMALL))
    break_off(scan, workspace, after=3)

    down = bench.workspace(project=workspace.project, inner=OutOfService())
    receipt = run_scan(scan, workspace=down).stored.receipt

    assert (receipt.coverage_status, receipt.stop_reason) == ("unknown", "source_unavailable")
    assert receipt.identity.before.principal == "auditor@registry.example"
    assert receipt.pages_observed == 3


def test_another_principal_at_resumption_fails_and_begins_anew(bench: Bench) -> None:
    from scan_pipeline.simulator.principals import ANALYST_TOKEN

    registry, scan = bench.registry(size=SMALL), bench.scan(ONE_BY_ONE)
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)

    other = bench.workspace(
        registry, project=workspace.project, environ={"REGISTRY_TOKEN": ANALYST_TOKEN}
    )
    night = run_scan(scan, workspace=other)

    (ended,) = (each.receipt for each in night.earlier)
    assert (ended.scan_generation, ended.coverage_status) == (begun, "failed")
    assert "principal_changed" in {f.code for f in ended.findings.first}
    assert night.stored.receipt.identity.before.principal == "analyst@acme.example"


def test_a_page_that_reads_differently_at_resumption_fails(bench: Bench) -> None:
    """A live view: the last page read has lost a row meanwhile."""
    live = {**ONE_BY_ONE, **LIVE, "source.params": {"view": "live"}}
    registry, scan = bench.registry(size=SMALL), bench.scan(live)
    workspace = bench.workspace(registry)
    break_off(scan, workspace, after=3)
    registry.mutate(Delete(first=250))

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.traversal) == ("failed", "failed")
    assert "page_changed_on_resume" in {f.code for f in receipt.findings.first}


def test_continuations_that_work_once_are_not_taken_up(bench: Bench) -> None:
    """The broken walk is certified as consumed, and a new attempt begins from nothing."""
    once = {**ONE_BY_ONE, "source.continuation": "single_use"}
    script = Script(cursors="single_use", walk_nonces=True)
    registry, scan = bench.registry(size=SMALL, script=script), bench.scan(once)
    workspace = bench.workspace(registry)
    first = break_off(scan, workspace, after=3)

    night = run_scan(scan, workspace=workspace)

    assert [each.receipt.stop_reason for each in night.earlier] == ["continuation_consumed"]
    receipt = night.stored.receipt
    assert (receipt.scan_generation, receipt.restart_of) == (f"{first}.2", first)
    assert (receipt.coverage_status, receipt.pages_observed) == ("verified", 5)


def test_a_walk_whose_time_is_over_is_closed_and_a_new_one_begins(bench: Bench) -> None:
    """`limits.seconds` counts from the open event: taken up, it could only stop at once."""
    scan, workspace = bench.scan(ONE_BY_ONE), bench.workspace(bench.registry(size=SMALL))
    old = break_off(scan, workspace, after=3)
    bench.clock.now += timedelta(seconds=120)

    night = run_scan(scan, workspace=workspace)

    (closed,) = night.closed
    assert closed.receipt.scan_generation == old
    assert (closed.receipt.stop_reason, closed.receipt.pages_observed) == ("abandoned", 3)
    assert night.stored.receipt.accepted
    assert night.stored.receipt.scan_generation != old


@pytest.mark.parametrize(
    "column",
    [
        "body",
        "end_signal",
        pytest.param("facts", marks=pytest.mark.long),
        pytest.param("returned", marks=pytest.mark.long),
    ],
)
def test_a_stored_page_altered_before_resumption_is_found(bench: Bench, column: str) -> None:
    """Nothing is sealed yet, so no pin tells: the walk holds its own pages against their chain."""
    import polars as pl
    import pyarrow as pa

    scan, workspace = bench.scan(ONE_BY_ONE), bench.workspace(bench.registry(size=SMALL))
    generation = break_off(scan, workspace, after=3)
    table = workspace.store(scan.name, generation).pages()
    altered = pl.DataFrame(table.read(generation)).with_columns(
        pl.when(pl.col("page") == 2)
        .then(
            {
                "body": pl.col("body").shift(-1),
                "facts": pl.col("facts").str.replace("500", "501"),
                "returned": pl.lit(99),
                "end_signal": pl.lit("null"),
            }[column]
        )
        .otherwise(pl.col(column))
        .alias(column)
    )
    rows = altered.to_arrow(compat_level=pl.CompatLevel.oldest())
    rows = pa.table([rows[name].cast(PAGES.field(name).type) for name in PAGES.names], PAGES)
    table.replace_generation(rows, generation=generation)

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.stop_reason) == ("failed", "evidence_disagrees")
    assert "evidence_altered" in {f.code for f in receipt.findings.first}
    assert not receipt.accepted


@pytest.mark.long
def test_an_open_event_alone_is_taken_up(bench: Bench) -> None:
    """Broken off between the open event and the first page."""
    scan = bench.scan()
    inner = SimulatorTransport(bench.registry(size=SMALL), sleep=bench.clock.sleep)
    workspace = bench.workspace(inner=BreakingAt(inner, request=2))
    with pytest.raises(BrokeOff):
        run_scan(scan, workspace=workspace)
    assert [event.event for event in events_of(scan, workspace)] == ["open"]

    night = run_scan(scan, workspace=bench.workspace(project=workspace.project, inner=inner))

    assert night.stored.receipt.accepted
    assert pages_of(events_of(scan, workspace)) == 5


class BreakingAt(httpx2.BaseTransport):
    """Breaks off before a request is sent."""

    def __init__(self, inner: httpx2.BaseTransport, *, request: int) -> None:
        self._inner, self._left = inner, request

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._left -= 1
        if self._left == 0:
            raise BrokeOff
        return self._inner.handle_request(request)
