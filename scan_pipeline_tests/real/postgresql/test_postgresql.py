"""8,742 customers in a real PostgreSQL, walked in one snapshot while another client writes."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from scan_pipeline.core.canonical import canonical_form
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.postgresql.server import PostgresServer
from scan_pipeline_tests.real.postgresql.walks import Progress, lines, run

CUSTOMERS = 8_742


def busy(writer: "psycopg.Connection[Any]") -> Progress:
    """After the first page everything changes; after every page rows come, go and move."""

    def progress(figures: Mapping[str, Any]) -> None:
        page = figures["pages"]
        if page == 1:
            writer.execute("UPDATE customers SET balance = balance + 1, region = 'mea'")
        for prefix in ("customer-0", "customer-5", "customer-99"):
            writer.execute(
                "INSERT INTO customers SELECT %s, 'mea', 0, now(), '{}'", (f"{prefix}-new-{page}",)
            )
        writer.execute("DELETE FROM customers WHERE customer_id LIKE %s", (f"customer-%{page}7",))
        writer.execute(
            "UPDATE customers SET customer_id = 'moved-' || customer_id WHERE customer_id LIKE %s",
            (f"customer-%{page}3",),
        )

    return progress


def test_file_of_facts_is_one_a_user_could_have_written() -> None:
    facts = Path(__file__).with_name("customers.yaml")

    assert read_scan_file(facts).parse().source.protocol == "sql"


@pytest.mark.parametrize("readers", [1, 4])
def test_every_customer_is_verified_while_another_client_writes(
    scan_of: Callable[..., Scan],
    place: Workspace,
    customers: Mapping[str, bytes],
    writer: "psycopg.Connection[Any]",
    readers: int,
) -> None:
    scan = scan_of({"source.readers": readers})

    receipt = run(scan, place, busy(writer))

    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "verified",
        "all_records_in_snapshot",
        True,
    )
    assert {each.name: each.result for each in receipt.expectations} == {
        "source_count": "met",
        "partition_counts": "met",
        "id_sequence": "met",
    }
    assert (receipt.records_expected, receipt.authorized_scope) == (CUSTOMERS, "postgres")
    frame = Collection(scan, workspace=place).latest().frame().collect()
    told = dict(frame.select("customer_id", "record").iter_rows())
    assert {key: value.encode() for key, value in told.items()} == {
        key: canonical_form(raw) for key, raw in customers.items()
    }
    (gone,) = (
        writer.execute("SELECT count(*) FROM customers WHERE region <> 'mea'").fetchone() or ()
    )
    assert gone == 0
    assert Audit(scan.name, receipt.scan_generation, workspace=place).run().agrees


def test_readers_share_one_snapshot(
    scan_of: Callable[..., Scan],
    place: Workspace,
    customers: Mapping[str, bytes],
    writer: "psycopg.Connection[Any]",
) -> None:
    """Whatever reads, the pages are the same ones, and so are the records."""
    seen: list[tuple[int, int]] = []

    def count_sessions(_: Mapping[str, Any]) -> None:
        row = writer.execute(
            "SELECT count(*), count(DISTINCT backend_xmin::text) FROM pg_stat_activity "
            "WHERE application_name = 'scan_pipeline'"
        ).fetchone()
        seen.append(row or (0, 0))

    alone = run(scan_of({"source.readers": 1}), place)
    together = run(scan_of({"source.readers": 3}), place, count_sessions)

    assert max(seen) == (4, 1)
    assert together.merkle == alone.merkle
    assert together.pages_observed == alone.pages_observed == CUSTOMERS // 500 + 2
    assert together.scope_digest == alone.scope_digest


@pytest.mark.parametrize("readers", [1, 3])
def test_lost_transaction_begins_a_generation_from_nothing(
    scan_of: Callable[..., Scan],
    place: Workspace,
    thousand: Mapping[str, bytes],
    writer: "psycopg.Connection[Any]",
    readers: int,
) -> None:
    left = [True]

    def terminate(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == 3 and left:
            left.clear()
            writer.execute("INSERT INTO customers SELECT 'customer-1001', 'eu', 0, now(), '{}'")
            writer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'scan_pipeline'"
            )

    scan = scan_of({"source.readers": readers, "source.page_size": 50})
    night = run_scan(scan, workspace=place, progress=terminate)

    (expired,) = (stored.receipt for stored in night.earlier)
    assert (expired.traversal, expired.stop_reason) == ("interrupted", "snapshot_expired")
    assert expired.coverage_status == "unknown"
    receipt = night.stored.receipt
    assert receipt.scan_generation == f"{expired.scan_generation}.2"
    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", 1_001)
    assert receipt.snapshot_id != expired.snapshot_id


def test_page_by_page_walk_of_a_busy_table_is_not_called_whole(
    scan_of: Callable[..., Scan],
    place: Workspace,
    thousand: Mapping[str, bytes],
    writer: "psycopg.Connection[Any]",
) -> None:
    scan = scan_of(
        {
            "source.snapshot": None,
            "source.page_size": 50,
            "source.partition_counts": None,
            "contract.consistency": "live",
            "contract.expect": {},
            "contract.limits": {},
        }
    )

    receipt = run(scan, place, busy(writer))

    assert receipt.coverage_status != "verified"
    with pytest.raises(GateClosedError):
        Collection(scan, workspace=place).latest()


def test_page_by_page_walk_goes_on_after_a_lost_connection(
    scan_of: Callable[..., Scan],
    place: Workspace,
    thousand: Mapping[str, bytes],
    writer: "psycopg.Connection[Any]",
) -> None:
    def terminate(figures: Mapping[str, Any]) -> None:
        if figures["pages"] == 3:
            writer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'scan_pipeline'"
            )

    scan = scan_of(
        {
            "source.snapshot": None,
            "source.page_size": 50,
            "contract.consistency": "live",
            "contract.accept": {"scope": "records_encountered_in_live_traversal"},
        }
    )
    receipt = run(scan, place, terminate)

    assert (receipt.coverage_status, receipt.accepted) == ("unknown", True)
    assert receipt.unique_ids_observed == 1_000
    assert receipt.refused_responses == 1


def test_row_level_security_makes_the_view_of_its_principal(
    scan_of: Callable[..., Scan],
    place: Workspace,
    server: PostgresServer,
    thousand: Mapping[str, bytes],
) -> None:
    server.run(
        "DROP ROLE IF EXISTS eu_auditor",
        "CREATE ROLE eu_auditor LOGIN",
        "GRANT SELECT ON customers TO eu_auditor",
        "ALTER TABLE customers ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY eu ON customers TO eu_auditor USING (region = 'eu')",
    )
    scan = scan_of({"source.user": "eu_auditor", "contract.expect": {"partition_counts": "source"}})

    receipt = run(scan, place)

    visible = sum(1 for raw in thousand.values() if json.loads(raw)["region"] == "eu")
    assert (receipt.coverage_status, receipt.unique_ids_observed) == ("verified", visible)
    assert receipt.statement.endswith("as visible to eu_auditor.")
    server.run("DROP OWNED BY eu_auditor", "DROP ROLE eu_auditor")


def test_ties_across_pages_are_kept_by_the_tie_breaker(
    scan_of: Callable[..., Scan], place: Workspace, thousand: Mapping[str, bytes]
) -> None:
    """A nightly job stamped whole groups of customers at once."""
    scan = scan_of({"source.order": ["updated_at", "customer_id"], "source.page_size": 30})

    receipt = run(scan, place)

    moments = [each["updated_at"] for each in lines(scan, place, receipt)]
    assert moments == sorted(moments)
    assert len(set(moments)) < 500
    assert receipt.coverage_status == "verified"
