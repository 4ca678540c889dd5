"""The four assets of a scan: each reads, calls its stage, and reports numbers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import dagster as dg
import pyarrow as pa

from scan_pipeline.components.checks import (
    Extracted,
    check_specs,
    checks_table,
    pages_checks,
    receipt_check,
    reconciliation_checks,
    records_checks,
)
from scan_pipeline.components.face import Face, Stage
from scan_pipeline.components.metadata import (
    CERTIFIED_HERE,
    STATEMENT,
    column_schema,
    pages_metadata,
    receipt_metadata,
    table,
)
from scan_pipeline.components.overtaken import end_where_overtaken
from scan_pipeline.components.plots import plot_of_walk, plots_of_receipt
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.restarts import attempt_before
from scan_pipeline.components.settling import (
    INTERRUPTIONS,
    leaving_a_receipt,
    refusals,
    settle_older,
)
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.stages.alerting.alerts import tell_quietly
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reconciling.ledger_schema import ledger_faults, read_ledger
from scan_pipeline.stages.walking.walks import is_over, last_walk
from scan_pipeline.store.events import Event
from scan_pipeline.store.table_reader import TableReader

NOTHING_STAGED: Final = ("evidence_altered", "not_reconcilable", "data_key_destroyed")
"""Findings of the records stage that say why no record could be staged."""

TOLD_PAGES: Final = 100
"""After so many pages a walk says in the log how far it is."""


def scan_assets(scan: Scan, *, face: Face) -> list[Any]:
    """Return the assets of a scan, in order of the stages."""
    plots = face.settings.plots
    told = f"{scan.description} " if scan.description else ""
    version = digest_of(scan_json(scan)).hex()[:12]

    def options(stage: Stage, *, deps: list[Stage], kinds: set[str]) -> dict[str, Any]:
        return {
            "key": face.key(stage),
            "deps": [face.key(each) for each in deps],
            "partitions_def": face.partitions,
            "group_name": face.group,
            "owners": list(face.settings.owners) or None,
            "pool": face.pool,
            "kinds": kinds,
            "code_version": version,
            "check_specs": check_specs(face, stage),
            "required_resource_keys": {face.resource},
        }

    @dg.asset(
        **options("pages", deps=[], kinds={"deltalake"}),
        description=f"Events of the walk of `{scan.name}`, each page as it was sent. "
        "Confidential: bodies and tokens are sealed, and nothing of them is shown here.",
    )
    def pages(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = opened.pipeline(context.partition_key)
            events = _walk(context, opened, pipeline)
            store = pipeline.store
            faults = ledger_faults(read_ledger(store.pages(), store.evidence))
        return dg.MaterializeResult(
            metadata={**pages_metadata(events), **(plot_of_walk(store) if plots else {})},
            check_results=pages_checks(events, faults),
        )

    @dg.asset(
        **options("records", deps=["pages"], kinds={"deltalake", "polars"}),
        description=f"One row for each record of `{scan.name}`, typed, with its page, its key "
        "and its leaf. Not proven yet: read it through `verified_asset`.",
    )
    def records(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _closed(opened.pipeline(context.partition_key))
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                found = _extract(opened, pipeline)
            staged = pipeline.store.records()
            columns = _columns(staged, pipeline.generation)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": found.records,
                "dagster/column_schema": column_schema(columns),
                "nonconforming": found.nonconforming,
                "without_key": found.without_key,
                "dagster/uri": staged.uri,
            },
            check_results=records_checks(found, allowed=scan.contract.accept.nonconforming),
        )

    @dg.asset(
        **options("reconciliation", deps=["records"], kinds={"deltalake", "polars"}),
        description=f"What arrived of `{scan.name}` beside what is known of the whole: unique "
        "keys, partitions, expectations, the Merkle root.",
    )
    def reconciliation(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _staged(opened.pipeline(context.partition_key))
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                reconciled = pipeline.reconciliation()
        figures = reconciled.figures
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": len(reconciled.partitions),
                **figures.figures(),
                "expectations": table(each.__dict__ for each in figures.expectations),
                "partition_summaries": table(each.__dict__ for each in reconciled.partitions),
                "dagster/uri": pipeline.store.summaries().uri,
            },
            check_results=reconciliation_checks(figures),
        )

    @dg.asset(
        **options("receipt", deps=["reconciliation"], kinds={"json"}),
        description=f"{told}The signed account of one generation of `{scan.name}`, for every "
        "outcome. Only an accepted one lets analyses read.",
    )
    def receipt(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _staged(opened.pipeline(context.partition_key))
            was_sealed = pipeline.is_sealed()
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                stored = pipeline.receipt()
                published = pipeline.published()
        context.log.info(stored.receipt.statement)
        tell_quietly(
            opened.scan,
            workspace=opened.workspace,
            warn=context.log.warning,
            said=context.log.info,
        )
        return dg.MaterializeResult(
            metadata={
                # In the order in which the UI shows it: the verdict, what it rests on, the rest.
                STATEMENT: stored.receipt.statement,
                "checks": table(checks_table(stored.receipt)),
                **(plots_of_receipt(stored, workspace=opened.workspace) if plots else {}),
                **receipt_metadata(stored, workspace=opened.workspace),
                "published": published,
                CERTIFIED_HERE: not was_sealed,
            },
            data_version=dg.DataVersion(stored.receipt_id),
            check_results=[receipt_check(stored)],
        )

    return [pages, records, reconciliation, receipt]


def scan_of(context: dg.AssetExecutionContext, face: Face) -> ScanResource:
    """Return the open scan of a run."""
    return getattr(context.resources, face.resource)


def _walk(
    context: dg.AssetExecutionContext, opened: ScanResource, pipeline: Pipeline
) -> list[Event]:
    """Close what older runs left open, walk, and certify a walk that is terminated."""
    if pipeline.is_sealed():
        return pipeline.pages()
    generation, workspace = pipeline.generation, opened.workspace
    was_over = is_over(pipeline.scan, pipeline.store)
    if not pipeline.store.events():
        end_where_overtaken(opened, generation, context=context)
    settle_older(opened, generation, instance=context.instance, log=context.log)
    with leaving_a_receipt(opened, generation, log=context.log):
        events = pipeline.pages(
            restart_of=attempt_before(generation, scan=opened.scan, workspace=workspace),
            interruptions=INTERRUPTIONS,
            progress=_told(context.log),
        )
        # The walk closes on a termination and returns; the run must still end as terminated.
        closed = last_walk(pipeline.store)[-1]
        if not was_over and any(each["code"] == "cancelled" for each in closed.facts["findings"]):
            raise dg.DagsterExecutionInterruptedError
    return events


def _extract(opened: ScanResource, pipeline: Pipeline) -> Extracted:
    staged = pipeline.records()
    if staged is None:
        kept = opened.collection().receipt(pipeline.generation).receipt.extraction
        return Extracted(
            records=kept.admitted, nonconforming=kept.nonconforming, without_key=kept.without_key
        )
    return Extracted(
        records=staged.records,
        nonconforming=staged.nonconforming,
        without_key=sum(each.code == "record_without_key" for each in staged.findings),
    )


def _columns(staged: TableReader, generation: str) -> pa.Schema:
    """Return the columns a generation was written with; the table's where it is empty."""
    first = next(staged.batches(generation, batch_size=1), None)
    return staged.read(generation).schema if first is None else first.schema


def _closed(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline of a walk that is closed.

    Raises:
        EvidenceError: it is not.
    """
    if not is_over(pipeline.scan, pipeline.store):
        raise EvidenceError(
            f"{pipeline.scan.name} {pipeline.generation}: found no closed walk; expected one: "
            "materialize pages of this generation first"
        )
    return pipeline


def _staged(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline of a generation whose records are all staged.

    Raises:
        EvidenceError: they are not; certifying would call the collection short for it.
    """
    _closed(pipeline)
    if pipeline.is_sealed():
        return pipeline
    found = pipeline.store.read_findings(stage="records")
    if any(each.code in NOTHING_STAGED for each in found):
        return pipeline  # nothing could be staged, and the receipt will say so
    admitted = sum(each.returned or 0 for each in pipeline.store.events())
    batches = pipeline.store.records().batches(pipeline.generation, columns=("scan_generation",))
    staged = sum(batch.num_rows for batch in batches)
    if staged != admitted:
        raise EvidenceError(
            f"{pipeline.scan.name} {pipeline.generation}: found {staged} staged records; expected "
            f"the {admitted} of its pages: materialize records of this generation first"
        )
    return pipeline


def _told(log: dg.DagsterLogManager) -> Callable[[Mapping[str, Any]], None]:
    """Return what tells in the log, now and then, how far a walk is."""

    def tell(facts: Mapping[str, Any]) -> None:
        if facts["pages"] % TOLD_PAGES == 0:
            total = facts["total"]
            of = f" of {total}" if total else ""
            log.info("%s pages, %s%s records", facts["pages"], facts["records"], of)

    return tell
