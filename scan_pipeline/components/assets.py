"""The four assets of a scan: each reads, calls its stage, and reports numbers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import dagster as dg

from scan_pipeline.components.checks import Extracted, check_specs
from scan_pipeline.components.face import Face, Stage
from scan_pipeline.components.metadata import CERTIFIED_HERE, JUDGED_AGAIN_AS
from scan_pipeline.components.operating import freshness_of, pool_of
from scan_pipeline.components.overtaken import end_where_overtaken
from scan_pipeline.components.past import refuse_the_past, restage_where_judged_otherwise
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.restarts import attempt_before
from scan_pipeline.components.settling import (
    INTERRUPTIONS,
    leaving_a_receipt,
    refusals,
    settle_older,
)
from scan_pipeline.components.telling import (
    kept_extraction,
    pages_told,
    receipt_told,
    reconciliation_told,
    records_told,
)
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.stages.alerting.alerts import tell_quietly
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.telemetry.nights import tell_nights, watched
from scan_pipeline.stages.walking.walks import is_over, last_walk
from scan_pipeline.store.events import Event
from scan_pipeline.store.lake import check_generation

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
            "pool": pool_of(scan, face=face),
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
            return pages_told(pipeline, events, plots=plots).result()

    @dg.asset(
        **options("records", deps=["pages"], kinds={"deltalake", "polars"}),
        description=f"One row for each record of `{scan.name}`, typed, with its page, its key "
        "and its leaf. Not proven yet: read it through `verified_asset`.",
    )
    def records(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _closed(opened.pipeline(context.partition_key))
            restaged = _restaged(context, opened, pipeline)
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                found = _extract(opened, pipeline)
            return records_told(pipeline, found).result(**restaged)

    @dg.asset(
        **options("reconciliation", deps=["records"], kinds={"deltalake", "polars"}),
        description=f"What arrived of `{scan.name}` beside what is known of the whole: unique "
        "keys, partitions, expectations, the Merkle root.",
    )
    def reconciliation(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _staged(opened.pipeline(context.partition_key))
            restaged = _restaged(context, opened, pipeline)
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                reconciled = pipeline.reconciliation()
        told = reconciliation_told(pipeline, reconciled.figures, reconciled.partitions)
        return told.result(**restaged)

    @dg.asset(
        **options("receipt", deps=["reconciliation"], kinds={"json"}),
        freshness_policy=freshness_of(scan),
        description=f"{told}The signed account of one generation of `{scan.name}`, for every "
        "outcome. Only an accepted one lets analyses read.",
    )
    def receipt(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        opened = scan_of(context, face)
        with refusals():
            pipeline = _staged(opened.pipeline(context.partition_key))
            restaged = _restaged(context, opened, pipeline)
            was_sealed = pipeline.is_sealed()
            with leaving_a_receipt(opened, context.partition_key, log=context.log):
                stored = pipeline.receipt()
                published = pipeline.published()
        context.log.info(stored.receipt.statement)
        if not was_sealed:
            tell_nights([stored], workspace=opened.workspace, warn=context.log.warning)
        tell_quietly(
            opened.scan,
            workspace=opened.workspace,
            warn=context.log.warning,
            said=context.log.info,
        )
        told = receipt_told(stored, workspace=opened.workspace, plots=plots)
        return told.result(published=published, **{CERTIFIED_HERE: not was_sealed}, **restaged)

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
        check_generation(generation)
        end_where_overtaken(opened, generation, context=context)
        refuse_the_past(opened, generation, context=context)
    settle_older(opened, generation, instance=context.instance, log=context.log)
    with leaving_a_receipt(opened, generation, log=context.log):
        events = pipeline.pages(
            restart_of=attempt_before(generation, scan=opened.scan, workspace=workspace),
            interruptions=INTERRUPTIONS,
            progress=watched(_told(context.log), scan=pipeline.scan.name, workspace=workspace),
        )
        # The walk closes on a termination and returns; the run must still end as terminated.
        closed = last_walk(pipeline.store)[-1]
        if not was_over and any(each["code"] == "cancelled" for each in closed.facts["findings"]):
            raise dg.DagsterExecutionInterruptedError
    return events


def _extract(opened: ScanResource, pipeline: Pipeline) -> Extracted:
    staged = pipeline.records()
    if staged is None:
        return kept_extraction(opened.collection().receipt(pipeline.generation))
    return Extracted(
        records=staged.records,
        nonconforming=staged.nonconforming,
        without_key=sum(each.code == "record_without_key" for each in staged.findings),
    )


def _restaged(
    context: dg.AssetExecutionContext, opened: ScanResource, pipeline: Pipeline
) -> dict[str, str]:
    """Judge a certified generation again where the contract asks for it; say as what."""
    if not pipeline.is_sealed():
        return {}
    fresh = restage_where_judged_otherwise(opened, pipeline.generation, context=context)
    return {} if fresh is None else {JUDGED_AGAIN_AS: fresh}


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
