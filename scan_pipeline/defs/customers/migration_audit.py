"""The audit of the customers' migration as an asset: it runs for each accepted generation."""

import dagster as dg

from scan_pipeline.components.analysis import verified_asset
from scan_pipeline.components.metadata import table
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.defs.customers.audit_migration import LOCATION, run_audit
from scan_pipeline.stages.unlock import VerifiedCollection

SHOWN: tuple[str, ...] = ("region", "schema_version", "customers", "needs_migration")


@verified_asset(
    scan="customers",
    key=["customers", "migration_audit"],
    group_name="customers",
    kinds={"polars", "deltalake"},
    code_version="1",
)
def migration_audit(
    context: dg.AssetExecutionContext, customers: VerifiedCollection
) -> dg.MaterializeResult:
    """How many customers still need schema version 3, by region and version, with a claim."""
    scan: ScanResource = context.resources.scan_customers
    audit = run_audit(customers, scan.workspace)
    context.log.info(audit.statement)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(audit.rows),
            "dagster/uri": f"{scan.workspace.lake.root}/{LOCATION}",
            "needing": audit.needing,
            "inspected": audit.inspected,
            "claim": audit.claim.name,
            "claim_id": audit.claim.claim_id,
            "says": dg.MetadataValue.md(audit.statement),
            "by_region": table({name: row[name] for name in SHOWN} for row in audit.rows),
        }
    )
