"""A scan of rounds over a registry whose rows change, and what its source holds at each moment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.mutations import Mutation
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.enumerate import Progress
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.syncing.current import rests_on
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench, edited

ROUNDS: Mapping[str, Any] = {
    "name": "customers",
    "source": {
        "protocol": "delta_link",
        "url": "simulator://registry/v1/customers/delta",
        "auth": {"bearer": {"env": "REGISTRY_TOKEN"}},
        "records_at": "value",
        "page_size": {"send_as": "page_size", "value": 50},
        "next": {"at": ["@odata.nextLink"], "keeps_query": "provider_documented"},
        "delta": {
            "at": ["@odata.deltaLink"],
            "covers_since": "start",
            "baseline": "whole",
            "basis": "provider_documented",
        },
        "removed": {"at": ["@removed"]},
        "end_signal_basis": "provider_documented",
    },
    "contract": {
        "key": ["customer_id"],
        "mode": "sync",
        "consistency": "change_token",
        "delivery": "latest_wins",
        "denominator": "end_signal",
    },
    "operation": {"commit_pages": 1},
}
"""The sample registry's changes, as its own dialect of OData documents them."""

AT_END: Mapping[str, Any] = {"source.params": {"minted": "end"}, "source.delta.covers_since": "end"}
"""A link that is made when the round is over, told as what it is."""

LIVE = "records_encountered_in_live_traversal"


@dataclass
class Following:
    """Follows one registry round by round."""

    scan: Scan
    registry: Registry
    workspace: Workspace
    changes: list[Mutation] = field(default_factory=list)

    def over(self, registry: Registry, bench: Bench) -> "Following":
        """Return the same scan in the same place, over another registry."""
        workspace = bench.workspace(registry, project=self.workspace.project)
        return Following(self.scan, registry, workspace, self.changes)

    def round(self, progress: Progress = lambda _: None) -> Receipt:
        """Run a night and return its last receipt."""
        return run_scan(self.scan, workspace=self.workspace, progress=progress).stored.receipt

    def change(self, *mutations: Mutation) -> None:
        for each in mutations:
            self.changes.append(each)
            self.registry.mutate(each)

    def change_after(self, page: int, *mutations: Mutation) -> Progress:
        """Return a progress that lets rows change once so many pages were read."""

        def changing(figures: Mapping[str, Any]) -> None:
            if figures["pages"] == page:
                self.change(*mutations)

        return changing

    @property
    def source(self) -> dict[str, dict[str, Any]]:
        """What the source holds now, asked for in one page after the other while nothing moves."""
        token = self.workspace.environ["REGISTRY_TOKEN"]
        held, cursor = dict[str, dict[str, Any]](), {}
        while True:
            answer = self.registry.list_page(
                "customers",
                params=[("view", "live"), ("page_size", "500"), *cursor.items()],
                authorization=f"Bearer {token}",
            )
            told = json.loads(answer.body)
            held |= {each["customer_id"]: each for each in told["items"]}
            if told["page"]["next_cursor"] is None:
                return held
            cursor = {"cursor": told["page"]["next_cursor"]}

    @property
    def table(self) -> pl.DataFrame:
        """The current table as a stranger reads it."""
        return pl.read_delta(str(Path(self.workspace.project.lake) / "published" / self.scan.name))

    @property
    def current(self) -> dict[str, dict[str, Any]]:
        """Its records by key."""
        rows = [json.loads(text) for text in self.table["_raw"]]
        held = {each["customer_id"]: each for each in rows}
        assert len(held) == len(rows)
        return held

    @property
    def rests_on(self) -> tuple[str, ...]:
        return rests_on(self.scan.name, workspace=self.workspace)


def following(
    bench: Bench, edits: Mapping[str, Any] | None = None, *, size: int = 120, **settings: Any
) -> Following:
    """Return a scan of rounds, edited, over a registry of its own."""
    registry = bench.registry(size=size, **settings)
    scan = parse_scan(edited(ROUNDS, edits or {}))
    return Following(scan=scan, registry=registry, workspace=bench.workspace(registry))
