"""Search engines in this process, and scans walked over them to a receipt."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.elasticsearch import SearchEngine, SearchRequest
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench, edited

CUSTOMERS: Mapping[str, Any] = {
    "name": "customers",
    "source": {
        "protocol": "elasticsearch",
        "url": "http://search.test:9200",
        "index": "customers",
        "size": 100,
        "auth": {"bearer": {"env": "REGISTRY_TOKEN"}},
    },
    "contract": {"key": ["_id"], "consistency": "snapshot"},
    "operation": {"restarts": 0, "retries": {"attempts": 3}},
}
"""A scan file over a search engine, the least that a user could write."""

ENVIRON = {"REGISTRY_TOKEN": AUDITOR_TOKEN}


@dataclass(frozen=True)
class Searched:
    """A scan that was run once over a search engine, and where."""

    engine: SearchEngine
    scan: Scan
    workspace: Workspace
    night: Night

    @property
    def receipt(self) -> Receipt:
        return self.night.stored.receipt

    @property
    def verdict(self) -> tuple[str, str, str]:
        receipt = self.receipt
        return receipt.traversal, receipt.coverage_status, receipt.conclusion_scope

    @property
    def codes(self) -> set[str]:
        """Codes of the findings that weigh something."""
        return {f.code for f in self.receipt.findings.first if f.severity != "note"}

    @property
    def notes(self) -> set[str]:
        """Codes of the findings that decide nothing."""
        return {f.code for f in self.receipt.findings.first if f.severity == "note"}

    @property
    def rows(self) -> list[dict[str, Any]]:
        collection = Collection(self.scan, workspace=self.workspace)
        return collection.latest().frame().collect().to_dicts()

    @property
    def searches(self) -> list[dict[str, Any]]:
        """Bodies of the searches, in order, numbers exact."""
        return [json.loads(each.body) for each in self.engine.asked if each.path == "/_search"]

    @property
    def audit_agrees(self) -> bool:
        generation = self.receipt.scan_generation
        return Audit(self.scan.name, generation, workspace=self.workspace).run().agrees


def answering(engine: SearchEngine) -> httpx2.MockTransport:
    """Return a search engine as the transport of its clients."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        found = engine.answer(
            SearchRequest(
                method=request.method,
                path=request.url.path,
                params=dict(request.url.params),
                authorization=request.headers.get("authorization"),
                body=request.read(),
            )
        )
        headers = {"content-type": found.content_type}
        return httpx2.Response(found.status, content=found.body, headers=headers)

    return httpx2.MockTransport(answer)


def search(
    bench: Bench, engine: SearchEngine, edits: Mapping[str, Any] | None = None, **arguments: Any
) -> Searched:
    """Run the scan of customers, edited by dotted path, over a search engine."""
    scan = parse_scan(edited(CUSTOMERS, edits or {}))
    place = bench.workspace(**{"inner": answering(engine), "environ": ENVIRON, **arguments})
    return Searched(
        engine=engine, scan=scan, workspace=place, night=run_scan(scan, workspace=place)
    )
