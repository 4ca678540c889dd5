"""The review of the support cases by a language model as an asset."""

from collections.abc import Iterator

import dagster as dg

from scan_pipeline.components.analysis import verified_asset
from scan_pipeline.components.metadata import table
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.defs.support_cases.review_cases import (
    LOCATION,
    MODEL,
    QUALITY_LOCATION,
    SHOWN,
    configured_model,
    run_review,
)
from scan_pipeline.stages.unlock import VerifiedCollection


@verified_asset(
    scan="support_cases",
    key=["support_cases", "model_review"],
    group_name="support_cases",
    kinds={"pydantic", "deltalake"},
    code_version="1",
    output_required=False,
)
def model_review(
    context: dg.AssetExecutionContext, support_cases: VerifiedCollection
) -> Iterator[dg.MaterializeResult]:
    """Defects that a language model finds recurring, with the cases behind them, and a claim.

    Runs where a model is configured; else it says so, and nothing is materialized.
    """
    scan: ScanResource = context.resources.scan_support_cases
    if configured_model(scan.workspace.environ) is None:
        context.log.warning(
            "no model is configured, so that none reviewed the cases: set %s=provider:name", MODEL
        )
        return
    with refusals():
        found = run_review(support_cases, scan.workspace)
    context.log.info(found.statement)
    root = scan.workspace.lake.root
    review = found.review
    yield dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(found.rows),
            "dagster/uri": f"{root}/{LOCATION}",
            "completeness": review.completeness,
            "claim": found.claim.name,
            "claim_id": found.claim.claim_id,
            "says": dg.MetadataValue.md(found.statement),
            "themes": table({name: row[name] for name in SHOWN} for row in found.rows),
            "quality": table([dict(found.quality)]),
            "quality_uri": f"{root}/{QUALITY_LOCATION}",
            "unsupported": table(each.__dict__ for each in review.unsupported),
        }
    )
