"""Asked to end, a walk sends no further request and still ends in a receipt."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from scan_pipeline.core.errors import CancelledError
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.walking.recorder import Recorder
from scan_pipeline.store.events import Event
from scan_pipeline_tests.conftest import REGISTRY, Bench
from scan_pipeline_tests.stages.night_process import project_in

ONE_BY_ONE = {"operation": {"commit_pages": 1}}


def cancelling_after(pages: int) -> tuple[Callable[[], None], Callable[..., None]]:
    """Return a check that raises once so many pages came, and the progress that tells it."""
    seen = [0]

    def progress(figures) -> None:
        seen[0] = figures["pages"]

    def check() -> None:
        if seen[0] >= pages:
            raise CancelledError("asked to end")

    return check, progress


def test_a_cancelled_walk_ends_in_a_receipt_and_the_next_begins_anew(bench: Bench) -> None:
    registry, scan = bench.registry(size=400), bench.scan()
    workspace = bench.workspace(registry)
    check, progress = cancelling_after(2)

    night = run_scan(scan, workspace=workspace, check_cancelled=check, progress=progress)

    receipt = night.stored.receipt
    assert (receipt.coverage_status, receipt.traversal) == ("unknown", "cancelled")
    assert (receipt.conclusion_scope, receipt.accepted) == ("observed_pages_only", False)
    assert (receipt.pages_observed, receipt.records_observed) == (2, 200)
    assert len(registry.served.pages) == 2
    assert {e.result for e in receipt.expectations} == {"not_evaluated"}
    again = run_scan(scan, workspace=workspace).stored.receipt
    assert again.accepted
    assert again.scan_generation != receipt.scan_generation
    for each in (receipt, again):
        assert Audit(scan.name, each.scan_generation, workspace=workspace).run().agrees


def test_cancelled_after_the_end_and_before_the_recheck(bench: Bench) -> None:
    """Every page was read; the pin was not looked at again, so that it proves nothing."""
    check, progress = cancelling_after(4)
    workspace = bench.workspace(bench.registry(size=400))

    night = run_scan(bench.scan(), workspace=workspace, check_cancelled=check, progress=progress)

    receipt = night.stored.receipt
    assert (receipt.coverage_status, receipt.traversal) == ("unknown", "finished")
    assert "cancelled" in {f.code for f in receipt.findings.first}
    assert (receipt.records_observed, receipt.accepted) == (400, False)


class Interrupting(httpx2.BaseTransport):
    """Has the interpreter interrupted while it waits for the n-th answer, as Ctrl-C does."""

    def __init__(self, inner: httpx2.BaseTransport, *, request: int) -> None:
        self._inner, self._left = inner, request

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._left -= 1
        if self._left == 0:
            signal.raise_signal(signal.SIGINT)
        return self._inner.handle_request(request)


def test_an_interrupt_in_a_request_ends_in_a_receipt(bench: Bench) -> None:
    inner = SimulatorTransport(bench.registry(size=400), sleep=bench.clock.sleep)
    workspace = bench.workspace(inner=Interrupting(inner, request=4))

    night = run_scan(bench.scan(ONE_BY_ONE), workspace=workspace)

    receipt = night.stored.receipt
    assert (receipt.traversal, receipt.pages_observed) == ("cancelled", 2)
    assert Audit("customers", receipt.scan_generation, workspace=workspace).run().agrees


@pytest.mark.parametrize("moment", ["before", pytest.param("after", marks=pytest.mark.long)])
def test_an_interrupt_around_the_handing_over_of_a_page_leaves_no_gap(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """An interrupt strikes anywhere: a page that was linked may never reach the recorder."""
    put = Recorder.put

    def interrupted(self: Recorder, event: Event) -> None:
        if event.page != 2:
            put(self, event)
        elif moment == "before":
            raise KeyboardInterrupt
        else:
            put(self, event)
            raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "put", interrupted)
    workspace = bench.workspace(bench.registry(size=400))

    receipt = run_scan(bench.scan(ONE_BY_ONE), workspace=workspace).stored.receipt

    assert receipt.traversal == "cancelled"
    assert receipt.pages_observed == (1 if moment == "before" else 2)
    assert Audit("customers", receipt.scan_generation, workspace=workspace).run().agrees


LIBRARY_RUN = """
import json, signal, sys, time
from scan_pipeline.core.errors import CancelledError
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.stages import night_process as night

settings = json.loads(sys.argv[1])
asked = []
signal.signal(getattr(signal, settings["signal"]), lambda *_: asked.append(True))

def check():
    if asked:
        raise CancelledError("asked to end")

def progress(figures):
    if figures["pages"] == 2:
        print("two pages", flush=True)
        while not asked:
            time.sleep(0.01)

scan, workspace = night.scan_and_workspace(settings, night.Death("never", 1))
stored = run_scan(scan, workspace=workspace, check_cancelled=check, progress=progress).stored
print(stored.receipt.traversal, stored.receipt.statement, flush=True)
"""


@pytest.mark.parametrize(
    "asked", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_library_run_ends_on_a_signal_by_its_check(
    bench: Bench, tmp_path: Path, asked: signal.Signals
) -> None:
    """The host of the run handles signals; the run looks where it is told to."""
    settings = {
        "root": str(tmp_path / "hosted"),
        "url": REGISTRY,
        "size": 400,
        "edits": {},
        "start": bench.clock.now.isoformat(),
        "signal": asked.name,
    }
    with subprocess.Popen(
        [sys.executable, "-c", LIBRARY_RUN, json.dumps(settings)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "two pages\n"
            process.send_signal(asked)
            told = process.stdout.read()
        finally:
            process.kill()

    assert told.startswith("cancelled 200 records of customers")
    workspace = bench.workspace(project=project_in(tmp_path / "hosted"))
    (generation,) = workspace.receipts("customers").generations()
    assert Audit("customers", generation, workspace=workspace).run().agrees
