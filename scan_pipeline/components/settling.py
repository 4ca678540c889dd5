"""What a run owes the generations it finds: a receipt, also where a run was broken off."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.errors import GateClosedError, ScanPipelineError
from scan_pipeline.stages.run import abandon, finish, repair_published, repair_receipts
from scan_pipeline.stages.telemetry.setup import tell_blocked
from scan_pipeline.stages.walking.walks import is_over
from scan_pipeline.store.receipts import StoredReceipt, generation_order

INTERRUPTIONS: Final[tuple[type[BaseException], ...]] = (
    KeyboardInterrupt,
    dg.DagsterExecutionInterruptedError,
)
"""How a run that is terminated makes itself felt in an asset."""

PARTITION_TAG: Final = "dagster/partition"

ALL_ASSETS: Final = "__ASSET_JOB"
"""The job behind a run of assets that are chosen by name (dagster 1.13)."""

_UNFINISHED: Final = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@contextmanager
def refusals() -> Iterator[None]:
    """Turn our errors into a failure that the UI shows in words and facts.

    Dagster tries nothing of it again: what may help was tried within the contract's retries.

    Raises:
        dagster.Failure: with the message, which says what to do.
    """
    try:
        yield
    except GateClosedError as error:
        tell_blocked(os.environ, error)
        raise dg.Failure(
            description=str(error),
            metadata={
                "scan": error.scan,
                "generation": error.generation or "none",
                "reason": error.reason,
            },
            allow_retries=False,
        ) from error
    except ScanPipelineError as error:
        raise dg.Failure(
            description=str(error),
            metadata={"error": type(error).__name__},
            allow_retries=False,
        ) from error


@contextmanager
def leaving_a_receipt(
    opened: ScanResource, generation: str, *, log: dg.DagsterLogManager
) -> Iterator[None]:
    """Bring the generation to its receipt when the run is terminated, then end the run.

    A second termination during that work ends it at once; the next generation then does it.
    """
    try:
        yield
    except INTERRUPTIONS:
        stored = certify_as_it_is(opened, generation)
        if stored is not None:
            log.warning("terminated; the receipt says: %s", stored.receipt.statement)
        raise


def certify_as_it_is(opened: ScanResource, generation: str) -> StoredReceipt | None:
    """Close a generation where it stands and certify it; None where no walk was begun."""
    pipeline = opened.pipeline(generation)
    events = pipeline.store.events()
    if not events:
        return None
    if is_over(pipeline.scan, pipeline.store):
        return finish(pipeline)
    return abandon(generation, opened.scan, workspace=opened.workspace, events=events)


def settle_older(
    opened: ScanResource,
    generation: str,
    *,
    instance: dg.DagsterInstance,
    log: dg.DagsterLogManager,
) -> list[StoredReceipt]:
    """Finish what earlier runs left: receipts half written, generations open that no run holds.

    Only older generations are closed. One that cannot be certified (its contract no longer
    resolves, its evidence was altered) is told in the log and left: it must not keep the next
    night from its own walk.
    """
    workspace, scan = opened.workspace, opened.scan
    workspace.begin(scan.name)
    for repair in (
        lambda: repair_receipts(scan.name, workspace=workspace),
        lambda: repair_published(scan, workspace=workspace),
    ):
        try:
            repair()
        except ScanPipelineError as error:
            log.warning("what earlier runs left half written cannot be repaired: %s", error)
    receipts = workspace.receipts(scan.name)
    pages = workspace.store(scan.name, generation).pages()
    older = [
        each
        for each in sorted(pages.generations(), key=generation_order)
        if generation_order(each) < generation_order(generation)
    ]
    closed = list[StoredReceipt]()
    for each in older:
        try:
            if receipts.has(each):
                continue
            if is_held(opened.face, each, instance=instance):
                log.info("generation %s is open and a run holds it", each)
                continue
            events = workspace.store(scan.name, each).events()
            closed.append(abandon(each, scan, workspace=workspace, events=events))
        except ScanPipelineError as error:
            log.warning("generation %s is open and cannot be certified: %s", each, error)
    return closed


def is_held(face: Face, generation: str, *, instance: dg.DagsterInstance) -> bool:
    """Say whether an unfinished run works on a generation of this scan."""
    return any(unfinished_runs(face, instance=instance, tags={PARTITION_TAG: generation}))


def unfinished_runs(
    face: Face, *, instance: dg.DagsterInstance, tags: Mapping[str, str] | None = None
) -> Iterator[dg.DagsterRun]:
    """Yield the unfinished runs that work on stages of this scan.

    Scans that begin by the same clock share the names of their generations, hence the look at
    what a run has selected; a run of a whole job has selected nothing by name.

    Args:
        face: the scan.
        instance: which runs there are.
        tags: which a run must have.
    """
    asked = dg.RunsFilter(tags={**(tags or {})}, statuses=_UNFINISHED)
    stages, jobs = {*face.keys}, {face.named("generation"), ALL_ASSETS}
    for run in instance.get_runs(filters=asked):
        if run.job_name in jobs if run.asset_selection is None else stages & run.asset_selection:
            yield run
