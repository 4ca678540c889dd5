"""An OData service on a port: walked whole by its next links, and while rows move meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import Wire
from scan_pipeline_tests.real.datasette_server import need

pytestmark = pytest.mark.long

FACTS = Path(__file__).with_name("odata_customers.yaml")
LIVE = "records_encountered_in_live_traversal"
CUSTOMERS = 8_742


@pytest.fixture(scope="module")
def odata() -> Any:
    need("odatapy", environ=os.environ)
    from scan_pipeline_tests.real import odata_server

    return odata_server


@pytest.fixture
def scan_of(tmp_path: Path) -> Callable[..., Scan]:
    """Read the file of facts for a server, with a part of its contract changed."""

    def read(url: str, **contract: Any) -> Scan:
        raw = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        raw["source"]["url"] = url
        raw["contract"] |= contract
        path = tmp_path / "customers.yaml"
        path.write_text(yaml.safe_dump(raw), encoding="utf-8")
        return read_scan_file(path).parse()

    return read


def test_every_customer_is_met_and_the_receipt_says_what_a_live_source_allows(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    rows = odata.customers(CUSTOMERS)
    with odata.serving(rows) as url:
        scan = scan_of(url)
        receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert len(wire.asked) == 18
    assert all(b"$skiptoken" in each.raw_path for each in wire.asked[1:])
    assert (receipt.traversal, receipt.coverage_status, receipt.conclusion_scope) == (
        "finished",
        "unknown",
        LIVE,
    )
    assert receipt.accepted
    assert {each.name: each.result for each in receipt.expectations} == {
        "source_count": "met",
        "id_sequence": "met",
    }
    assert {each.code for each in receipt.findings.first if each.severity != "note"} == {
        "live_traversal"
    }
    collection = Collection(scan, workspace=workspace)
    with pytest.raises(GateClosedError):
        collection.latest(at_least="corroborated")
    frame = collection.partial(receipt.scan_generation, accept=LIVE).labelled_frame().collect()
    kept = frame.select(list(odata.TYPES)).sort("customer_id").rows(named=True)
    assert kept == sorted(rows, key=lambda row: row["customer_id"])
    assert Audit(scan.name, receipt.scan_generation, workspace=workspace).run().agrees


def _moves(wire: Wire, url: str) -> None:
    """After the first page: its last row goes, another comes at the end.

    The service looks for the row its token names, and where that is gone falls back to an offset,
    which is one row too far by now.
    """

    def move() -> None:
        assert httpx2.delete(f"{url}('customer-500')").status_code == 204
        added = {"customer_id": "customer-8743", "region": "eu", "status": "active"}
        assert httpx2.post(url, json={**added, "schema_version": 3}).status_code == 201

    wire.before[2] = move


def test_missing_row_behind_a_matching_count_is_not_called_whole(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        _moves(wire, url)
        scan = scan_of(url, expect={})
        receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.records_expected, receipt.unique_ids_observed) == (CUSTOMERS, CUSTOMERS)
    assert {each.name: each.result for each in receipt.expectations} == {"source_count": "met"}
    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", LIVE)
    collection = Collection(scan, workspace=workspace)
    frame = collection.partial(receipt.scan_generation, accept=LIVE).labelled_frame().collect()
    met = set(frame["customer_id"].to_list())
    assert "customer-501" not in met
    assert {"customer-500", "customer-8743"} <= met
    with pytest.raises(GateClosedError):
        collection.latest(at_least="corroborated")


def test_missing_row_is_named_where_ids_are_known_to_run_without_a_gap(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        _moves(wire, url)
        receipt = run_scan(scan_of(url), workspace=workspace).stored.receipt

    assert receipt.coverage_status == "failed"
    assert receipt.missing_id_ranges == ("customer-501",)


TWICE = {"consistency": "two_equal_walks", "expect": {}, "accept": {}}


def test_two_walks_of_a_quiet_service_corroborate_each_other(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        scan = scan_of(url, **TWICE)
        receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert len(wire.asked) == 2 * 18
    assert (receipt.coverage_status, receipt.accepted) == ("corroborated", True)
    assert receipt.conclusion_scope == "all_records_present_throughout_both_walks"
    collection = Collection(scan, workspace=workspace)
    with pytest.raises(GateClosedError):
        collection.latest()
    rows = collection.latest(at_least="corroborated").frame().collect()
    assert rows["customer_id"].n_unique() == rows.height == CUSTOMERS
    assert Audit(scan.name, receipt.scan_generation, workspace=workspace).run().agrees


@pytest.mark.parametrize("at", [2, 19, 30], ids=["first walk", "between", "second walk"])
def test_two_walks_with_a_row_changed_meanwhile_do_not(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire, at: int
) -> None:
    """A row that was read in the first walk changes; every count still matches."""
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        row = "customer-1" if at < 30 else "customer-8742"

        def change() -> None:
            changed = {"status": "changed meanwhile"}
            httpx2.patch(f"{url}('{row}')", json=changed).raise_for_status()

        wire.before[at] = change
        scan = scan_of(url, **TWICE)
        receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", LIVE)
    (differ,) = (each for each in receipt.findings.first if each.code == "walks_differ")
    assert (differ.found or "").startswith(
        "0 keys only in the first walk, 0 only in the second, 1 differing"
    )
    assert not receipt.accepted
    with pytest.raises(GateClosedError):
        Collection(scan, workspace=workspace).latest(at_least="corroborated")


def test_missing_row_behind_a_matching_count_is_found_by_the_second_walk(
    odata: Any, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    """The first walk met as many rows as were counted, and missed one."""
    with odata.serving(odata.customers(CUSTOMERS)) as url:
        _moves(wire, url)
        receipt = run_scan(scan_of(url, **TWICE), workspace=workspace).stored.receipt

    assert receipt.unique_ids_observed == receipt.records_expected == CUSTOMERS
    assert receipt.coverage_status == "unknown"
    (differ,) = (each for each in receipt.findings.first if each.code == "walks_differ")
    assert (differ.found or "").startswith(
        "1 keys only in the first walk, 1 only in the second, 0 differing"
    )
