"""The recurring defects as an asset: it runs for each accepted generation."""

import dagster as dg

from scan_pipeline.components.analysis import verified_asset
from scan_pipeline.components.metadata import table
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.defs.support_cases.find_defects import (
    LOCATION,
    QUALITY_LOCATION,
    SHOWN,
    run_defects,
)
from scan_pipeline.stages.unlock import VerifiedCollection


@verified_asset(
    scan="support_cases",
    key=["support_cases", "recurring_defects"],
    group_name="support_cases",
    kinds={"scikitlearn", "deltalake"},
    code_version="1",
)
def recurring_defects(
    context: dg.AssetExecutionContext, support_cases: VerifiedCollection
) -> dg.MaterializeResult:
    """Themes of the support cases by their words, with the cases behind each, and a claim."""
    scan: ScanResource = context.resources.scan_support_cases
    with refusals():
        found = run_defects(support_cases, scan.workspace)
    context.log.info(found.statement)
    root = scan.workspace.lake.root
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(found.rows),
            "dagster/uri": f"{root}/{LOCATION}",
            "recurring_defects": len(found.defects),
            "claim": found.claim.name,
            "claim_id": found.claim.claim_id,
            "says": dg.MetadataValue.md(found.statement),
            "themes": table({name: row[name] for name in SHOWN} for row in found.rows),
            "quality": table([dict(found.quality)]),
            "quality_uri": f"{root}/{QUALITY_LOCATION}",
        }
    )
