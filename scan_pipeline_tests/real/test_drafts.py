"""Drafts of servers nobody here made, and the receipts of what was drafted."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.operation import Retries
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.drafting.draft import draft
from scan_pipeline.stages.drafting.proposal import Draft
from scan_pipeline.stages.drafting.question import question
from scan_pipeline.stages.drafting.writing import scan_file
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import MET, Airports, Wire
from scan_pipeline_tests.real.datasette_server import need

pytestmark = pytest.mark.long

Drafted = Callable[[str], tuple[Draft, Scan]]


@pytest.fixture
def drafted(tmp_path: Path, wire: Wire) -> Drafted:
    """Draft a scan of an address, write it, and read it again as `check` does."""

    def of(url: str) -> tuple[Draft, Scan]:
        surroundings = Surroundings(
            environ={},
            inner=wire,
            clock=lambda: datetime.now(UTC),
            sleep=lambda _: None,
            retries=Retries(attempts=1),
        )
        found = draft(question(url), surroundings=surroundings)
        path = tmp_path / "drafted.yaml"
        path.write_text(scan_file(found), encoding="utf-8")
        return found, read_scan_file(path).parse()

    return of


def test_datasette_is_recognised_by_its_answer_and_every_airport_is_met(
    drafted: Drafted, base_url: str, airports: Airports, workspace: Workspace, wire: Wire
) -> None:
    found, scan = drafted(f"{base_url}/airports/airports.json")

    assert scan.source.provider is not None
    assert (scan.source.provider.name, scan.contract.key) == ("datasette", ("icao",))
    assert len(wire.asked) == found.requests == 3
    assert found.pages_implied == -(-len(airports) // 100)
    receipt = run_scan(scan, workspace=workspace).stored.receipt
    assert receipt.unique_ids_observed == len(airports)
    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.accepted
    assert receipt.extraction.nonconforming == 0
    assert {each.name: each.result for each in receipt.expectations} == {"source_count": "met"}


def test_odata_service_is_recognised_by_its_annotations_and_every_customer_is_met(
    drafted: Drafted, workspace: Workspace
) -> None:
    need("odatapy", environ=os.environ)
    from scan_pipeline_tests.real import odata_server

    service: Any = odata_server
    with service.serving(service.customers(8_742)) as url:
        found, scan = drafted(f"{url}?$count=true")
        receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert scan.source.provider is not None
    assert (scan.source.provider.name, scan.contract.key) == ("odata", ("customer_id",))
    assert found.attributes["source"]["count"]["exactness"] == "estimate"
    assert receipt.unique_ids_observed == 8_742
    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.accepted
