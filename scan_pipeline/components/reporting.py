"""A certified generation told to Dagster from the lake, without a run.

What the four assets would say of it is read from the ledger, the tables and the receipt; nothing is
computed again, and the source is not asked. Where a table is gone by now (records are kept for less
than receipts) its asset stays untold, and the receipt still is.
"""

from collections.abc import Callable, Iterator
from typing import Final

import dagster as dg

# Dagster gives it no public name (1.13.27); a verdict that names no materialization releases none.
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from scan_pipeline.components.checks import BLOCKING
from scan_pipeline.components.face import Stage
from scan_pipeline.components.metadata import CERTIFIED_HERE
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.telling import (
    Told,
    kept_extraction,
    pages_told,
    receipt_told,
    reconciliation_told,
    records_told,
)
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.reconciliation import ExpectationResult, PartitionSummary, Reconciliation
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.store.receipts import StoredReceipt

FROM_LAKE: Final = "scan_pipeline/told_from_lake"
"""On what no run of this Dagster made: it was certified elsewhere, or before this home was."""


def report_generation(
    opened: ScanResource, generation: str, *, instance: dg.DagsterInstance, plots: bool
) -> list[Stage]:
    """Report the materializations and verdicts of a certified generation; the receipt comes last.

    Its partition must be known. Where this breaks off, nothing says that it is told: the next look
    tells it again.

    Args:
        opened: the scan.
        generation: of it.
        instance: what is told.
        plots: whether they are drawn, which takes a second or so.

    Returns:
        The stages that could be told of.

    Raises:
        TamperedError: its receipt is not what was signed.
        GateClosedError: it has none.
    """
    stored = opened.collection().receipt(generation)
    told = list[Stage]()
    for stage, telling in _tellings(opened, stored, plots=plots):
        try:
            found = telling()
        except (ScanPipelineError, OSError):  # its table is gone
            if stage == "receipt":
                raise
            continue
        _report(opened, generation, stage, found, instance=instance)
        told.append(stage)
    return told


def _tellings(
    opened: ScanResource, stored: StoredReceipt, *, plots: bool
) -> Iterator[tuple[Stage, Callable[[], Told]]]:
    pipeline = opened.pipeline(stored.receipt.scan_generation)
    yield "pages", lambda: pages_told(pipeline, pipeline.store.events(), plots=plots)
    yield "records", lambda: records_told(pipeline, kept_extraction(stored))
    yield "reconciliation", lambda: _reconciliation(pipeline, stored.receipt)
    yield "receipt", lambda: receipt_told(stored, workspace=opened.workspace, plots=plots)


def _report(
    opened: ScanResource,
    generation: str,
    stage: Stage,
    told: Told,
    *,
    instance: dg.DagsterInstance,
) -> None:
    """Report what is not reported yet: a verdict without a run can be told once and never again."""
    key = opened.face.key(stage)
    held = _current_verdicts(key, generation, told, instance=instance)
    made = _newest_materialization(key, generation, instance=instance)
    if made is None or not (held or _is_from_lake(made)):
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=key,
                partition=generation,
                metadata={**told.metadata, FROM_LAKE: True, CERTIFIED_HERE: False},
                tags={} if told.version is None else {"dagster/data_version": told.version},
            )
        )
        made = _newest_materialization(key, generation, instance=instance)
    # Without it, Dagster takes a verdict for one on something older.
    target = made and AssetCheckEvaluationTargetMaterializationData(
        storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
    )
    for each in told.checks:
        if each.check_name in held:
            continue
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=key,
                check_name=str(each.check_name),
                passed=each.passed,
                target_materialization_data=target,
                metadata=each.metadata,
                severity=each.severity,
                description=each.description,
                blocking=each.check_name == BLOCKING,
                partition=generation,
            )
        )


def _current_verdicts(
    key: dg.AssetKey, generation: str, told: Told, *, instance: dg.DagsterInstance
) -> set[str]:
    """Return the checks that Dagster has a verdict of, on what it knows as newest."""
    keys = [dg.AssetCheckKey(key, str(each.check_name)) for each in told.checks]
    found = instance.event_log_storage.get_asset_check_partition_info(
        keys, partition_keys=[generation]
    )
    return {each.check_key.name for each in found if each.is_current}


def _newest_materialization(
    key: dg.AssetKey, generation: str, *, instance: dg.DagsterInstance
) -> dg.EventLogRecord | None:
    asked = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[generation])
    return next(iter(instance.fetch_materializations(asked, limit=1).records), None)


def _is_from_lake(made: dg.EventLogRecord) -> bool:
    known = made.asset_materialization
    return known is not None and FROM_LAKE in known.metadata


def _reconciliation(pipeline: Pipeline, receipt: Receipt) -> Told:
    """Tell of the stored summaries, with the figures that the receipt keeps."""
    store = pipeline.store
    names = PartitionSummary.__dataclass_fields__
    partitions = [
        PartitionSummary(**{name: row[name] for name in names}) for row in store.read_summaries()
    ]
    findings = store.read_findings(stage="reconciliation")
    figures = _figures(receipt, findings, partitions=len(partitions))
    return reconciliation_told(pipeline, figures, partitions)


def _figures(receipt: Receipt, findings: list[Finding], *, partitions: int) -> Reconciliation:
    return Reconciliation(
        records=receipt.records_observed,
        unique_keys=receipt.unique_ids_observed,
        duplicate_ids=receipt.duplicate_ids,
        conflicting_ids=receipt.conflicting_ids,
        without_key=receipt.extraction.without_key,
        nonconforming=receipt.extraction.nonconforming,
        missing_id_ranges=receipt.missing_id_ranges,
        leaves=receipt.merkle.leaves,
        partitions=partitions,
        root=receipt.merkle.root,
        expectations=tuple(ExpectationResult(**each.__dict__) for each in receipt.expectations),
        findings=tuple(findings),
    )
