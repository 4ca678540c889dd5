"""How many customers still need the present schema version; computed without Dagster."""

from typing import Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.claims import aggregate_claim_name, make_claim
from scan_pipeline.core.receipt import in_words
from scan_pipeline.core.value import record
from scan_pipeline.defs.analysis_result import AnalysisResult
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.tables import Table

SCHEMA_VERSION: Final = 3
"""The version every record should have."""

LOCATION: Final = "analyses/customers/migration_audit"

ROWS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("region", pa.string(), nullable=False),
        pa.field("schema_version", pa.int64(), nullable=False),
        pa.field("customers", pa.int64(), nullable=False),
        pa.field("needs_migration", pa.bool_(), nullable=False),
        pa.field("receipt_id", pa.string(), nullable=False),
        pa.field("claim_id", pa.string(), nullable=False),
        pa.field("claim", pa.string(), nullable=False),
        pa.field("statement", pa.string(), nullable=False),
    ]
)
"""One row a region and schema version; the claim stands on each, so that none travels without."""


@record
class MigrationAudit(AnalysisResult):
    """What the audit found; rows are as `ROWS`, sorted by region and version.

    Attributes:
        generation: the generation that was counted.
        inspected: customers counted.
        needing: those of an older schema version.
    """

    generation: str
    inspected: int
    needing: int


def audit_migration(collection: VerifiedCollection) -> MigrationAudit:
    """Count customers by region and schema version, over every row of the generation."""
    receipt = collection.receipt
    counted = (
        collection.frame()
        .group_by("region", "schema_version")
        .agg(pl.len().cast(pl.Int64).alias("customers"))
        .sort("region", "schema_version")
        .collect()
    )
    older = counted.filter(pl.col("schema_version") < SCHEMA_VERSION)
    inspected, needing = int(counted["customers"].sum()), int(older["customers"].sum())
    name = aggregate_claim_name(
        receipt.coverage_status,
        receipt.conclusion_scope,
        inspected=inspected,
        population=receipt.unique_ids_observed,
    )
    claim = make_claim(
        name,
        evaluated_by="engine",
        receipt_id=collection.receipt_id,
        statement=f"{needing:,} of {inspected:,} customers still need schema version "
        f"{SCHEMA_VERSION} ({_by_version(older)}), generation {receipt.scan_generation}, "
        f"{in_words(receipt)}.",
    )
    rows = tuple(
        {
            "scan_generation": receipt.scan_generation,
            **row,
            "needs_migration": row["schema_version"] < SCHEMA_VERSION,
            "receipt_id": collection.receipt_id,
            "claim_id": claim.claim_id,
            "claim": claim.name,
            "statement": claim.statement,
        }
        for row in counted.iter_rows(named=True)
    )
    return MigrationAudit(
        generation=receipt.scan_generation,
        inspected=inspected,
        needing=needing,
        claim=claim,
        rows=rows,
    )


def store_audit(audit: MigrationAudit, *, workspace: Workspace) -> str:
    """Put an audit in the place of an earlier one of its generation; return where it lies."""
    table = Table(f"{workspace.lake.root}/{LOCATION}", ROWS)
    rows = pa.Table.from_pylist(list(audit.rows), schema=ROWS)
    table.replace_generation(rows, generation=audit.generation)
    return table.uri


def run_audit(collection: VerifiedCollection, workspace: Workspace) -> MigrationAudit:
    """Audit the collection and store what was found."""
    audit = audit_migration(collection)
    store_audit(audit, workspace=workspace)
    return audit


def _by_version(older: pl.DataFrame) -> str:
    versions = (
        older.group_by("schema_version").agg(pl.col("customers").sum()).sort("schema_version")
    )
    told = [f"{count:,} at version {version}" for version, count in versions.iter_rows()]
    return ", ".join(told) or "none is older"
