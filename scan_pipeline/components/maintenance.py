"""Maintenance of a scan as an asset, and the job that does it alone."""

from typing import Any, Final

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.metadata import table
from scan_pipeline.components.operating import pool_of
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.maintain import Maintained, maintain

MAINTENANCE: Final = "maintenance"

NOTHING_LEFT: Final = "nothing_left_undone"

DAILY: Final = "0 6 * * *"
"""When a scan with a retention is maintained, in the time zone of its schedule; see the sensor of
automation, which a project switches on."""


def maintenance_key(face: Face) -> dg.AssetKey:
    """Return the key of the asset."""
    return dg.AssetKey([*face.settings.key_prefix, face.scan, MAINTENANCE])


def maintenance_asset(scan: Scan, *, face: Face) -> dg.AssetsDefinition:
    """Return the asset that is what maintenance left of a scan's part of the lake.

    It shares the scan's pool, so that no generation is walked meanwhile.
    """
    zone = "UTC" if scan.schedule is None else scan.schedule.timezone
    kept = scan.operation.retention is not None
    key = maintenance_key(face)

    @dg.asset(
        key=key,
        group_name=face.group,
        owners=list(face.settings.owners) or None,
        pool=pool_of(scan, face=face),
        kinds={"deltalake"},
        required_resource_keys={face.resource},
        automation_condition=dg.AutomationCondition.on_cron(DAILY, zone) if kept else None,
        check_specs=[
            dg.AssetCheckSpec(
                NOTHING_LEFT,
                asset=key,
                description="Every abandoned generation was certified, and nothing that was to be "
                "dropped was found altered.",
            )
        ],
        description=f"Abandoned generations of `{scan.name}` closed, what its retention no longer "
        "keeps dropped and told beside its receipt, files and logs cleaned up. What a receipt "
        "pins stays.",
    )
    def maintenance(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened: ScanResource = getattr(context.resources, face.resource)
        with refusals():
            came = maintain(opened.scan, workspace=opened.workspace)
        return dg.MaterializeResult(metadata=_metadata(came), check_results=[_check(came)])

    return maintenance


def maintenance_job(face: Face) -> Any:
    """Return the job that maintains one scan."""
    return dg.define_asset_job(
        face.named("maintain"),
        selection=dg.AssetSelection.assets(maintenance_key(face)),
        description=f"Maintain `{face.scan}`: settle, drop, sweep, clean up.",
    )


def _metadata(came: Maintained) -> dict[str, Any]:
    return {
        "closed": [each.receipt.scan_generation for each in came.closed],
        "dropped": table(dict(each.__dict__) for each in came.dropped),
        "dropped_bytes": sum(each.bytes for each in came.dropped),
        "kept_back": table(dict(each.__dict__) for each in came.kept_back),
        "swept_files": came.swept_files,
    }


def _check(came: Maintained) -> dg.AssetCheckResult:
    undone = [f"{each.generation}: {each.reason}" for each in (*came.left, *came.refused)]
    return dg.AssetCheckResult(
        check_name=NOTHING_LEFT,
        passed=not undone,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"undone": undone},
    )
