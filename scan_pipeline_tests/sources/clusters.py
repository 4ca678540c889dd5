"""Clusters on a port, and what a scan of their customers comes to."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.kubernetes import TOKEN, KubernetesCluster, create_kubernetes_app
from scan_pipeline.simulator.server import running_app
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.conftest import SteppingClock, edited

FACTS = Path(__file__).with_name("cluster_customers.yaml")

DIRECT = {
    "source.context": ...,
    "source.access": "direct",
    "source.auth": {"bearer": {"env": "CLUSTER_TOKEN"}},
}


@dataclass(frozen=True)
class ClusterWalk:
    """A scan of a cluster that was run, and where."""

    scan: Scan
    workspace: Workspace
    night: Night
    slept: list[float]

    @property
    def receipt(self) -> Receipt:
        return self.night.stored.receipt

    @property
    def verdict(self) -> tuple[str, str]:
        return self.receipt.coverage_status, self.receipt.traversal

    @property
    def codes(self) -> set[str]:
        return {f.code for f in self.receipt.findings.first if f.severity != "note"}

    @property
    def audit_agrees(self) -> bool:
        generation = self.receipt.scan_generation
        return Audit(self.scan.name, generation, workspace=self.workspace).run().agrees

    def rows(self) -> pl.DataFrame:
        """Return what unlocks as a verified whole."""
        return Collection(self.scan, workspace=self.workspace).latest().frame().collect()

    def names(self) -> set[str]:
        return set(self.rows()["metadata"].str.json_path_match("$.name").to_list())


@dataclass
class ClusterBench:
    """Serves clusters and walks them."""

    folder: Path
    stack: ExitStack
    clock: SteppingClock
    served: dict[int, str] = field(default_factory=dict)
    made: int = 0

    def serve(self, cluster: KubernetesCluster) -> str:
        """Return a cluster's address, the same each time."""
        if id(cluster) not in self.served:
            url = self.stack.enter_context(running_app(create_kubernetes_app(cluster)))
            self.served[id(cluster)] = url
        return self.served[id(cluster)]

    def scan(self, edits: Mapping[str, Any] | None = None) -> Scan:
        facts = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        return parse_scan(edited(facts, edits or {}))

    def workspace(self, environ: Mapping[str, str] | None = None) -> Workspace:
        self.made += 1
        root = self.folder / f"place-{self.made}"
        root.mkdir()
        project = find_project(lake=str(root / "lake"), cwd=root, environ={})
        return Workspace(
            project,
            environ={"CLUSTER_TOKEN": TOKEN, **(environ or {})},
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def walk(
        self,
        cluster: KubernetesCluster,
        edits: Mapping[str, Any] | None = None,
        *,
        workspace: Workspace | None = None,
        **arguments: Any,
    ) -> ClusterWalk:
        """Serve a cluster and run the scan over its address, edited."""
        url = {"source.url": self.serve(cluster)}
        return self.run(self.scan({**DIRECT, **url, **(edits or {})}), workspace, **arguments)

    def run(self, scan: Scan, workspace: Workspace | None = None, **arguments: Any) -> ClusterWalk:
        before, place = len(self.clock.slept), workspace or self.workspace()
        night = run_scan(scan, workspace=place, **arguments)
        return ClusterWalk(scan=scan, workspace=place, night=night, slept=self.clock.slept[before:])


@contextmanager
def cluster_bench(folder: Path, clock: SteppingClock) -> Iterator[ClusterBench]:
    with ExitStack() as stack:
        yield ClusterBench(folder=folder, stack=stack, clock=clock)


def after_page(number: int, does: Any) -> Any:
    """Let something happen elsewhere, once, when so many pages were read."""
    left = [does]

    def progress(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == number and left:
            left.pop()()

    return progress
