"""The audit that ships: counted over a verified whole, with a claim, in a table of its own."""

import json
from collections import Counter
from typing import Any

import polars as pl
import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.defs.analyses import ANALYSES
from scan_pipeline.defs.customers.audit_migration import (
    LOCATION,
    audit_migration,
    run_audit,
    store_audit,
)
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.scenarios import scenario


def truth(size: int) -> Counter[tuple[str, int]]:
    """Count the population itself, as nobody walked it."""
    rows = [json.loads(row.raw) for row in population("customers", size)]
    return Counter((row["region"], row["schema_version"]) for row in rows)


def test_audit_counts_the_population(bench: Any) -> None:
    """By region and version, every customer once."""
    walked = bench.walk()
    audit = audit_migration(walked.collection.generation(walked.generation))
    expected = truth(1_000)

    found = {(row["region"], row["schema_version"]): row["customers"] for row in audit.rows}
    assert found == dict(expected)
    assert audit.inspected == 1_000
    assert audit.needing == sum(n for (_, version), n in expected.items() if version < 3) == 136


def test_claim_is_from_the_closed_list_and_bound_to_the_receipt(bench: Any) -> None:
    """An aggregate over every row of a verified whole, by the engine."""
    walked = bench.walk()
    audit = audit_migration(walked.collection.generation(walked.generation))

    assert audit.claim.name == "complete_aggregate"
    assert audit.claim.evaluated_by == "engine"
    assert audit.claim.receipt_id == walked.night.stored.receipt_id
    assert audit.statement.startswith("136 of 1,000 customers still need schema version 3 (")
    assert audit.statement.endswith("as visible to auditor@registry.example.")
    again = audit_migration(walked.collection.generation(walked.generation))
    assert again.claim == audit.claim


def test_table_carries_receipt_claim_and_statement(bench: Any) -> None:
    """No row travels without what it rests on; a second run replaces its generation only."""
    walked = bench.walk()
    first = run_audit(walked.collection.generation(walked.generation), walked.workspace)
    run_audit(walked.collection.generation(walked.generation), walked.workspace)
    later = walked.again()
    second = run_audit(later.collection.generation(later.generation), later.workspace)

    rows = pl.read_delta(f"{walked.workspace.project.lake}/{LOCATION}")
    assert rows.height == len(first.rows) + len(second.rows)
    mine = rows.filter(pl.col("scan_generation") == walked.generation)
    assert mine["receipt_id"].unique().to_list() == [walked.night.stored.receipt_id]
    assert mine["claim_id"].unique().to_list() == [first.claim.claim_id]
    assert mine["statement"].unique().to_list() == [first.statement]
    assert mine.filter("needs_migration")["customers"].sum() == 136


def test_audit_of_an_unaccepted_generation_does_not_come_about(bench: Any) -> None:
    """A page was skipped: there is no collection to hand over."""
    walked = bench.walk(scenario("page_skipped"))

    with pytest.raises(GateClosedError):
        walked.collection.generation(walked.generation)


def test_empty_collection_has_an_audit(bench: Any) -> None:
    """Zero customers, proven: nothing needs migration, and that is a complete statement."""
    walked = bench.walk(scenario("no_customer"))
    audit = audit_migration(walked.collection.generation(walked.generation))
    store_audit(audit, workspace=walked.workspace)

    assert audit.claim.name == "complete_aggregate"
    assert (audit.inspected, audit.needing, audit.rows) == (0, 0, ())
    assert "0 of 0 customers" in audit.statement


def test_analyses_are_found_by_scan(bench: Any) -> None:
    """The command line runs what ships, without Dagster."""
    (shipped,) = ANALYSES["customers"]
    walked = bench.walk()
    result = shipped.load()(walked.collection.generation(walked.generation), walked.workspace)

    assert shipped.name == "migration_audit"
    assert result.claim.name == "complete_aggregate"
    assert result.statement == result.claim.statement
    assert len(result.rows) == len(truth(1_000))
