"""8,742 customers in a real etcd, walked at one revision while it is written to and compacted."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from scan_pipeline.core.canonical import canonical_form
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.population import population
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.real.etcd_server import EtcdServer, serving_etcd

CUSTOMERS = 8_742

FACTS = Path(__file__).with_name("customer_keys.yaml")


@pytest.fixture(scope="module")
def customers() -> Mapping[str, bytes]:
    return {
        f"customers/customer-{row.number}": row.raw for row in population("customers", CUSTOMERS)
    }


@pytest.fixture
def etcd(tmp_path: Path, customers: Mapping[str, bytes]) -> Iterator[EtcdServer]:
    """Every customer, between keys of other prefixes."""
    with serving_etcd(tmp_path, environ=os.environ) as server:
        server.put([(b"customers.", b"before"), (b"customers0", b"after"), (b"\xff\xfe", b"\x00")])
        server.put((key.encode(), value) for key, value in customers.items())
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    return Workspace(project, environ={})


@pytest.fixture
def scan_of(edit: Callable[..., dict[str, Any]]) -> Callable[..., Scan]:
    """Read the file of facts for a server, changed here and there."""

    def parse(server: EtcdServer, edits: Mapping[str, Any] | None = None) -> Scan:
        facts = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        return parse_scan(edit(facts, {"source.url": server.url, **(edits or {})}))

    return parse


def once_after_page(number: int, does: Callable[[], None]) -> Callable[[Mapping[str, Any]], None]:
    """Let something happen elsewhere, once, when so many pages were read."""
    left = [does]

    def progress(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == number and left:
            left.pop()()

    return progress


def rows_of(scan: Scan, place: Workspace) -> pl.DataFrame:
    return Collection(scan, workspace=place).latest().frame().collect()


def test_file_of_facts_is_one_a_user_could_have_written() -> None:
    assert read_scan_file(FACTS).parse().source.protocol == "etcd"


def test_every_customer_is_verified_at_one_revision(
    etcd: EtcdServer, scan_of: Callable[..., Scan], place: Workspace, customers: Mapping[str, bytes]
) -> None:
    scan, revision = scan_of(etcd), etcd.revision()

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "verified",
        "all_records_in_snapshot",
        True,
    )
    assert receipt.snapshot_id is not None
    assert receipt.snapshot_id.partition("@")[0] == str(revision)
    assert receipt.merkle.leaf_encoding == "canonical-json/v1"
    assert (receipt.pages_observed, receipt.records_expected) == (9, CUSTOMERS)
    assert {each.name: each.result for each in receipt.expectations} == {
        "source_count": "met",
        "id_sequence": "met",
    }
    assert receipt.query == {"url": etcd.url, "prefix": "customers/"}
    rows = rows_of(scan, place)
    assert dict(rows.select("key", "value").iter_rows()) == {
        key: value.decode() for key, value in customers.items()
    }
    assert rows["version"].unique().to_list() == [1]
    assert rows["mod_revision"].max() == revision
    assert Audit(scan.name, receipt.scan_generation, workspace=place).run().agrees


def test_writes_in_mid_walk_do_not_show(
    etcd: EtcdServer, scan_of: Callable[..., Scan], place: Workspace, customers: Mapping[str, bytes]
) -> None:
    """Insert before and behind the position, delete what is to come, change what was read."""

    def elsewhere() -> None:
        etcd.put(
            [
                (b"customers/customer-0", b"early"),
                (b"customers/customer-99999", b"late"),
                (b"customers/customer-1", b"changed"),
                (b"customers/customer-999", b"changed"),
            ]
        )
        etcd.delete(b"customers/customer-8742")

    scan = scan_of(etcd)
    receipt = run_scan(scan, workspace=place, progress=once_after_page(3, elsewhere)).stored.receipt

    assert receipt.coverage_status == "verified"
    rows = rows_of(scan, place)
    assert dict(rows.select("key", "value").iter_rows()) == {
        key: value.decode() for key, value in customers.items()
    }


def test_compaction_in_mid_walk_begins_a_generation_from_nothing(
    etcd: EtcdServer, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    def elsewhere() -> None:
        etcd.put([(b"customers/customer-8743", b"{}")])
        etcd.compact()

    scan = scan_of(etcd)
    night = run_scan(scan, workspace=place, progress=once_after_page(3, elsewhere))

    (expired,) = (stored.receipt for stored in night.earlier)
    assert (expired.traversal, expired.stop_reason) == ("interrupted", "snapshot_expired")
    assert (expired.coverage_status, expired.accepted) == ("unknown", False)
    assert expired.records_observed == 3_000
    receipt = night.stored.receipt
    assert receipt.scan_generation == f"{expired.scan_generation}.2"
    assert receipt.restart_of == expired.scan_generation
    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", CUSTOMERS + 1)
    assert receipt.snapshot_id != expired.snapshot_id


def test_every_key_is_walked_without_a_prefix(
    etcd: EtcdServer, scan_of: Callable[..., Scan], place: Workspace
) -> None:
    """Among them one that is no text, which base64 keeps apart."""
    everything = {"source.prefix": "", "source.keys": "base64", "source.values": "base64"}
    scan = scan_of(etcd, {**everything, "contract.expect": {}})

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", CUSTOMERS + 3)
    assert "//4=" in rows_of(scan, place)["key"].to_list()


def test_values_are_opened_as_json(
    etcd: EtcdServer, scan_of: Callable[..., Scan], place: Workspace, customers: Mapping[str, bytes]
) -> None:
    scan = scan_of(etcd, {"source.values": "json", "record_schema": None})

    receipt = run_scan(scan, workspace=place).stored.receipt

    assert (receipt.coverage_status, receipt.extraction.nonconforming) == ("verified", 0)
    told = dict(rows_of(scan, place).select("key", "value").iter_rows())
    assert told["customers/customer-7"] == (
        canonical_form(customers["customers/customer-7"]).decode()
    )
