"""The asset that says what changed since the last accepted night."""

from typing import Any

import dagster as dg

from scan_pipeline.components.analysis import when_accepted
from scan_pipeline.components.face import Face
from scan_pipeline.components.metadata import RECEIPT_ID, STATEMENT, Metadata, table
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.readers.changes import Changes
from scan_pipeline.stages.readers.nightly_changes import nightly_changes

FIRST = "It is the first accepted generation of its scope: there is none to compare it with."


def changes_asset(scan: Scan, *, face: Face) -> dg.AssetsDefinition:
    """Return the asset of a scan's changes; it keeps counts, and no keys that would outlive one.

    The records themselves are told by `scan-pipeline changes`.
    """
    options: dict[str, Any] = {
        "key": face.changes,
        "deps": [face.key("receipt")],
        "partitions_def": face.partitions,
        "group_name": face.group,
        "owners": list(face.settings.owners) or None,
        "kinds": {"polars"},
        "automation_condition": when_accepted(),
        "required_resource_keys": {face.resource},
        "description": f"Records of `{scan.name}` added, removed and changed since the accepted "
        "generation before, by kind and field. Between generations that are no proven wholes a "
        "record was first seen, not seen, or differs, and no more can be said.",
    }

    def changes(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened: ScanResource = getattr(context.resources, face.resource)
        with refusals():
            collection = opened.collection()
            stored = collection.receipt(context.partition_key)
            found = nightly_changes(collection, context.partition_key, workspace=opened.workspace)
        told = FIRST if found is None else found.statement()
        context.log.info(told)
        return dg.MaterializeResult(
            metadata={
                RECEIPT_ID: stored.receipt_id,
                STATEMENT: told,
                "says": dg.MetadataValue.md(told),
                **({} if found is None else _figures(found)),
            }
        )

    return dg.asset(**options)(changes)


def _figures(found: Changes) -> Metadata:
    """Return the counts: as numbers, which Dagster plots over the nights, and as tables."""
    return {
        "before": found.before,
        "proven": found.proven,
        "dagster/row_count": found.rows.height,
        **dict(found.counts),
        "reformatted": found.reformatted,
        "by_kind": table(
            {"change": word, "records": count} for word, count in found.counts.items()
        ),
        "by_field": table(
            {"field": name, "records": count} for name, count in found.fields.items()
        ),
        "not_compared": list(found.not_compared),
        "uncompared": found.uncompared,
        "partitions_looked_into": f"{found.partitions[0]:,} of {found.partitions[1]:,}",
    }
