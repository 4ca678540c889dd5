"""Rounds of changes of an OData service on a port, which makes a delta link anew on every page.

The link of its last page is made when the walk is over: what changed meanwhile is in no round, and
no receipt is verified. That of its first page is made before the rest is read.
"""

import os
from collections.abc import Mapping
from typing import Any

import httpx2
import polars as pl
import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import Wire
from scan_pipeline_tests.real.datasette_server import need

pytestmark = pytest.mark.long

CUSTOMERS = 2_500
LIVE = "records_encountered_in_live_traversal"
COLUMNS = ("customer_id", "region", "status", "schema_version")
FIRST_PAGE = {"taken_from": "first_page", "covers_since": "start", "basis": "observed"}


@pytest.fixture(scope="module")
def odata() -> Any:
    need("odatapy", environ=os.environ)
    from scan_pipeline_tests.real import odata_server

    return odata_server


def scan_of(url: str, delta: Mapping[str, Any], **contract: Any) -> Scan:
    """Return a scan of the service's changes; its end is documented by OData 4.01, Part 1, 11.3."""
    return parse_scan(
        {
            "name": "odata_rounds",
            "source": {
                "protocol": "delta_link",
                "url": url,
                "params": {"$select": ",".join(COLUMNS)},
                "headers": {
                    "prefer": "odata.maxpagesize=500,odata.track-changes",
                    "odata-maxversion": "4.01",
                },
                "records_at": "value",
                "next": {"at": ["@odata.nextLink"]},
                "delta": {"at": ["@odata.deltaLink"], "shown_on": "every_page", **delta},
                "removed": {"at": ["@removed"], "entity_id_at": ["@id"]},
                "end_signal_basis": "provider_documented",
            },
            "contract": {
                "key": ["customer_id"],
                "mode": "sync",
                "consistency": "change_token",
                "delivery": "latest_wins",
                "denominator": "end_signal",
                **contract,
            },
            "record_schema": [
                {"name": name, "type": "int64" if name == "schema_version" else "string"}
                for name in COLUMNS
            ],
        }
    )


def held(url: str) -> list[tuple[Any, ...]]:
    """Return what the service holds, asked for at once."""
    rows, link = list[dict[str, Any]](), f"{url}?$select={','.join(COLUMNS)}"
    while link:
        told = httpx2.get(link, headers={"prefer": "odata.maxpagesize=5000"}).json()
        rows += told["value"]
        link = told.get("@odata.nextLink")
    return sorted(tuple(row[name] for name in COLUMNS) for row in rows)


def laid_together(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.select(COLUMNS).rows())


def moves(url: str, wire: Wire, *, before: int) -> None:
    """Before a request: a row of the first page goes and another changes, one comes at the end."""

    def move() -> None:
        assert httpx2.delete(f"{url}('customer-3')").status_code == 204
        told = httpx2.patch(f"{url}('customer-4')", json={"region": "moved"})
        assert told.status_code in (200, 204), told.text
        added = {"customer_id": "customer-2501", "region": "eu", "status": "active"}
        assert httpx2.post(url, json={**added, "schema_version": 3}).status_code == 201

    wire.before[before] = move


def test_delta_link_at_the_end_of_a_walk_is_not_verified(
    odata: Any, workspace: Workspace, wire: Wire
) -> None:
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        moves(url, wire, before=3)
        scan = scan_of(url, {}, accept={"scope": LIVE})
        receipt = run_scan(scan, workspace=workspace).stored.receipt
        second = run_scan(scan, workspace=workspace).stored.receipt
        now = held(url)

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", LIVE)
    assert (second.coverage_status, second.unique_ids_observed) == ("unknown", 0)
    assert "checkpoint_at_end" in {each.code for each in receipt.findings.first}
    collection = Collection(scan, workspace=workspace)
    with pytest.raises(GateClosedError):
        collection.current()
    frame = collection.current(accept=LIVE).frame().collect()
    assert set(frame["_conclusion_scope"]) == {LIVE}
    found = laid_together(frame)
    assert "customer-3" in {row[0] for row in found} - {row[0] for row in now}
    assert ("customer-4", "moved") not in {row[:2] for row in found}


def test_delta_link_of_the_first_page_brings_what_changed_meanwhile(
    odata: Any, workspace: Workspace, wire: Wire
) -> None:
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        moves(url, wire, before=3)
        scan = scan_of(url, FIRST_PAGE, accept={"scope": LIVE})
        collection = Collection(scan, workspace=workspace)
        baseline = run_scan(scan, workspace=workspace).stored.receipt
        assert laid_together(collection.current(accept=LIVE).frame().collect()) == held(url)

        assert httpx2.delete(f"{url}('customer-9')").status_code == 204
        httpx2.patch(f"{url}('customer-10')", json={"status": "closed"})
        back = {"customer_id": "customer-3", "region": "us", "status": "active"}
        assert httpx2.post(url, json={**back, "schema_version": 3}).status_code == 201
        receipt = run_scan(scan, workspace=workspace).stored.receipt
        opened = collection.current(accept=LIVE, contents=True)
        assert laid_together(opened.frame().collect()) == held(url)

    assert (receipt.coverage_status, receipt.conclusion_scope) == (
        "verified",
        "all_changes_since_checkpoint",
    )
    assert receipt.round is not None
    assert (receipt.unique_ids_observed, receipt.round.removed_ids) == (3, 1)
    assert len(opened.rounds) == 2
    assert (baseline.coverage_status, opened.worth.status) == ("unknown", "unknown")
    assert Audit(scan.name, receipt.scan_generation, workspace=workspace).run().agrees


def test_row_that_a_baseline_passed_over_comes_in_no_round_and_nothing_is_called_verified(
    odata: Any, workspace: Workspace, wire: Wire
) -> None:
    """The service looks for the row its token names, and where that is gone counts one too far."""
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        wire.before[2] = lambda: httpx2.delete(f"{url}('customer-500')") and None
        scan = scan_of(url, FIRST_PAGE, accept={"scope": LIVE})
        receipt = run_scan(scan, workspace=workspace).stored.receipt
        run_scan(scan, workspace=workspace)
        now = {row[0] for row in held(url)}

    collection = Collection(scan, workspace=workspace)
    found = laid_together(collection.current(accept=LIVE).frame().collect())
    assert now - {row[0] for row in found} == {"customer-501"}
    assert receipt.coverage_status == "unknown"
    assert "baseline_may_skip" in {each.code for each in receipt.findings.first}
    with pytest.raises(GateClosedError):
        collection.current()
