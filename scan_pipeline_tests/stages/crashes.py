"""Nights that are killed in a process of their own, and what a later run must have made of them."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl

from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import REGISTRY, Bench
from scan_pipeline_tests.stages.night_process import project_in

SIZE = 1_000
"""Customers of these nights: ten pages of a hundred."""

FIRST = "20261130T020000Z"
"""The generation that the killed process begins."""


@dataclass(frozen=True)
class Kill:
    """Where a process dies: the n-th time that a point of `night_process` is reached."""

    point: str
    number: int = 1
    edits: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Crashed:
    """A project in which a night was killed; later runs go on in this process."""

    bench: Bench
    url: str = REGISTRY
    edits: Mapping[str, Any] = field(default_factory=dict)
    size: int = SIZE

    @property
    def root(self) -> Path:
        return self.bench.folder / "crashed"

    @property
    def scan(self) -> Scan:
        return self.bench.scan(self.edits, base=self.url)

    def kill(self, kill: Kill) -> None:
        """Run a night in a process that dies; the edits stay for the runs after it."""
        self.edits = {**self.edits, **kill.edits}
        with self._process(kill.point, kill.number) as process:
            told = process.communicate(timeout=120)[1]
        assert process.returncode == -signal.SIGKILL, told
        self.bench.clock.now += timedelta(seconds=30)

    def kill_after(self, seconds: float) -> None:
        """Run a night in a process that is killed from outside, unless it is done by then."""
        with self._process("never", 1) as process:
            try:
                told = process.communicate(timeout=seconds)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                told = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), told
        self.bench.clock.now += timedelta(seconds=10)

    def _process(self, point: str, number: int) -> subprocess.Popen[str]:
        settings = {
            "root": str(self.root),
            "die": [point, number],
            "url": self.url,
            "size": self.size,
            "edits": self.edits,
            "start": self.bench.clock.now.isoformat(),
        }
        module = "scan_pipeline_tests.stages.night_process"
        return subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(settings)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def workspace(self, registry: Registry | None = None, **arguments: Any) -> Workspace:
        inner = None
        if self.url == REGISTRY:
            inner = SimulatorTransport(registry or self.registry(), sleep=self.bench.clock.sleep)
        return self.bench.workspace(
            **{
                "project": project_in(self.root),
                "inner": inner,
                "environ": {"REGISTRY_TOKEN": AUDITOR_TOKEN},
                **arguments,
            }
        )

    def registry(self, **arguments: Any) -> Registry:
        """Return a registry as a new process has it: the same population and secret."""
        return Registry(**{"size": self.size, "clock": self.bench.clock, **arguments})

    def run(self, scan: Scan | None = None, *, registry: Registry | None = None) -> Night:
        return run_scan(scan or self.scan, workspace=self.workspace(registry))


def check_whole(night: Night, workspace: Workspace, *, root: str) -> None:
    """Check that a night is what an undisturbed one is: nothing lost, nothing doubled."""
    receipt = night.stored.receipt
    verdict = (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted)
    assert verdict == ("verified", "all_records_in_snapshot", True), receipt.reasons
    assert receipt.merkle.root == root
    assert receipt.duplicate_ids == receipt.conflicting_ids == 0
    check_generation(workspace, receipt.scan, receipt.scan_generation)


def check_generation(workspace: Workspace, scan: str, generation: str) -> None:
    """Check one sealed generation's rows, its one receipt, and that the audit agrees."""
    store = workspace.store(scan, generation)
    receipt = workspace.receipts(scan).read(generation, trust=workspace.trust).receipt
    events = store.events()
    assert [event.seq for event in events] == list(range(len(events)))
    assert Counter(event.event for event in events)["close"] == 1
    pages = [event.page for event in events if event.event == "page"]
    assert pages == list(range(1, receipt.pages_observed + 1))
    lake = Path(workspace.project.lake)
    records = rows_of(lake / "staging" / scan / "records", generation)
    assert len(records) == receipt.records_observed
    places = records.select("_page", "_position")
    assert places.is_unique().all()
    assert places.equals(places.sort("_page", "_position"))
    assert len(rows_of(lake / "receipts" / scan / "receipts", generation)) == 1
    audit = Audit(scan, generation, workspace=workspace).run()
    assert audit.agrees, audit.disagreements
    assert audit.level == "bodies"
    assert {each.name for each in audit.not_computed} <= {"published"}


def check_published(workspace: Workspace, scan: str, generation: str) -> None:
    """Check that the published table holds one generation, whole, as a stranger reads it."""
    lake = Path(workspace.project.lake)
    published = pl.read_delta(str(lake / "published" / scan))
    records = rows_of(lake / "staging" / scan / "records", generation)
    assert published["scan_generation"].unique().to_list() == [generation]
    assert published["customer_id"].sort().equals(records["customer_id"].sort())


def receipts_of(workspace: Workspace, scan: str) -> list[str]:
    """Return the generations in the table of receipts, one a row."""
    folder = Path(workspace.project.lake) / "receipts" / scan / "receipts"
    return sorted(pl.read_delta(str(folder))["scan_generation"].to_list())


def rows_of(folder: Path, generation: str) -> pl.DataFrame:
    """Return one generation's rows of a table, read by the Delta library alone."""
    return pl.read_delta(str(folder)).filter(pl.col("scan_generation") == generation)
