"""One night of a scan: finish what broke off, walk, certify, publish, and begin again on expiry."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ScanPipelineError, TamperedError
from scan_pipeline.core.findings import finding
from scan_pipeline.core.receipt import last_stop_reason
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.enumerate import Progress
from scan_pipeline.stages.naming import free_attempt, free_generation
from scan_pipeline.stages.pipeline import Pipeline, never_cancelled
from scan_pipeline.stages.publish import publish
from scan_pipeline.stages.restage import finish_restage, is_restage
from scan_pipeline.stages.walking.stopped import BEGUN_AGAIN
from scan_pipeline.stages.walking.walks import is_closed, is_over, last_walk, open_walks
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event, EventLog, to_batch
from scan_pipeline.store.generations import committed
from scan_pipeline.store.receipts import StoredReceipt, generation_order


@record
class LeftOpen:
    """A generation that could not be certified, and why; without a receipt it opens to nobody."""

    generation: str
    reason: str


@record
class Settled:
    """What became of the generations that earlier runs left open.

    Attributes:
        resumed: the one to take up, None where there is none.
        closed: receipts of those that were closed, oldest first.
        left: those that could not be certified; the next run tries again.
    """

    resumed: str | None
    closed: tuple[StoredReceipt, ...]
    left: tuple[LeftOpen, ...]


@record
class Night:
    """What a run came to.

    Attributes:
        stored: receipt of the last attempt.
        earlier: receipts of attempts that expired before it, oldest first.
        closed: receipts of abandoned generations that this run closed.
        left: abandoned generations that this run could not certify.
    """

    stored: StoredReceipt
    earlier: tuple[StoredReceipt, ...] = ()
    closed: tuple[StoredReceipt, ...] = ()
    left: tuple[LeftOpen, ...] = ()


def run_scan(
    scan: Scan,
    *,
    workspace: Workspace,
    check_cancelled: Callable[[], None] = never_cancelled,
    interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    progress: Progress = lambda _: None,
) -> Night:
    """Bring a scan to a receipt.

    An open generation under the same contract is taken up again; any other open one is closed as
    abandoned and certified. A generation that expired is followed by a new attempt from nothing,
    at most `operation.restarts` times.

    Raises:
        WriterConflictError: another writer holds the generation.
        ConfigurationError: a key, secret or folder is missing.
        ContractError: the record schema cannot be resolved.
    """
    workspace.begin(scan.name)
    repair_receipts(scan.name, workspace=workspace)
    repair_published(scan, workspace=workspace)
    settled = settle_open(scan, workspace=workspace)
    generation = settled.resumed or free_generation(scan.name, workspace=workspace)
    earlier: list[StoredReceipt] = []
    restart_of = None
    while True:
        pipeline = Pipeline(scan, generation, workspace=workspace)
        pipeline.pages(
            restart_of=restart_of,
            check_cancelled=check_cancelled,
            interruptions=interruptions,
            progress=progress,
        )
        stored = finish(pipeline)
        expired = last_stop_reason(stored.receipt) in BEGUN_AGAIN
        if not expired or len(earlier) >= scan.operation.restarts:
            return Night(
                stored=stored, earlier=tuple(earlier), closed=settled.closed, left=settled.left
            )
        earlier.append(stored)
        restart_of = generation
        generation = free_attempt(scan.name, generation, workspace=workspace)


def finish(pipeline: Pipeline) -> StoredReceipt:
    """Bring a closed generation to its receipt, and publish it where it is accepted."""
    if not pipeline.is_sealed():
        pipeline.records()
        pipeline.reconciliation()
    stored = pipeline.receipt()
    pipeline.published()
    return stored


def settle_open(scan: Scan, *, workspace: Workspace) -> Settled:
    """Find the open generation to take up, and certify the other open ones, oldest first.

    Taken up is the newest open walk under the same contract, unless its time is over; the others
    are closed as abandoned, under the contract they were begun with. One that cannot be certified
    (its schema no longer resolves, its evidence was altered) is told and left: it must not keep
    the next night from its own walk.
    """
    receipts = workspace.receipts(scan.name)
    pages = workspace.store(scan.name, "20000101T000000Z").pages()
    walked = sorted(pages.generations(), key=generation_order)
    resumed: str | None = None
    others = list[tuple[str, list[Event]]]()
    left = list[LeftOpen]()
    for generation in reversed(walked):
        try:
            if receipts.has(generation):
                continue
            events = workspace.store(scan.name, generation).events()
            taken_up = resumed is None and _goes_on(scan, generation, events, workspace=workspace)
        except ScanPipelineError as error:
            left.append(LeftOpen(generation=generation, reason=str(error)))
            continue
        if taken_up:
            resumed = generation
        else:
            others.append((generation, events))
    closed = list[StoredReceipt]()
    for generation, events in reversed(others):
        try:
            closed.append(abandon(generation, scan, workspace=workspace, events=events))
        except ScanPipelineError as error:
            left.append(LeftOpen(generation=generation, reason=str(error)))
    return Settled(resumed=resumed, closed=tuple(closed), left=tuple(left))


def _goes_on(scan: Scan, generation: str, events: Sequence[Event], *, workspace: Workspace) -> bool:
    """Say whether an open generation may be taken up: of this contract, and closed or in time."""
    opened = _opened(events)
    pipeline = Pipeline(scan, generation, workspace=workspace)
    if is_restage(opened) or opened.facts["digests"] != pipeline.digests.__dict__:
        return False
    allowed = scan.contract.limits.seconds
    if is_over(scan, pipeline.store) or allowed is None:
        return True
    # Taken up after its time, a walk could only stop at once: a new one has all of it. A second
    # walk that was not begun by then would be held against rows of another hour.
    last = last_walk(pipeline.store)
    since = last[-1] if is_closed(last) else last[0]
    return workspace.clock() - since.received_at < timedelta(seconds=allowed)


def abandon(
    generation: str, scan: Scan, *, workspace: Workspace, events: list[Event]
) -> StoredReceipt:
    """Close an open generation that cannot be taken up, and certify what it holds.

    It is judged under the contract it was begun with, as its open event tells. A restage that
    broke off is finished: it asks nothing of the source.
    """
    opened = _opened(events)
    begun_with = contract_of(opened)
    if is_restage(opened):
        return finish_restage(begun_with, generation, opened, workspace=workspace)
    store = workspace.store(scan.name, generation)
    for shard, walked in open_walks(store):
        told = finding("abandoned", found=f"{sum(e.event == 'page' for e in walked)} pages")
        close = EventLog(last=walked[-1]).close(
            {
                "traversal": "interrupted",
                "stop_reason": "abandoned",
                "limits_hit": [],
                "before": walked[0].facts["before"],
                "after": None,
                "recheck": [],
                "findings": [dict(told.__dict__)],
            },
            at=workspace.clock(),
        )
        rows = to_batch(
            [close], scan=scan.name, generation=generation, shard=shard, sealer=store.sealer()
        )
        store.admission(shard=shard).commit(
            rows, expected=committed(walked[-1]), sealed=store.is_sealed
        )
    return finish(Pipeline(begun_with, generation, workspace=workspace))


def contract_of(opened: Event) -> Scan:
    """Return the scan that a generation was begun with."""
    return parse_scan(json.loads(canonical_json(opened.facts["contract"])), stored=True)


def repair_receipts(scan: str, *, workspace: Workspace) -> None:
    """Write the files of committed receipts that a break left without one."""
    receipts = workspace.receipts(scan)
    for generation in receipts.unfiled():
        with suppress(TamperedError):  # the audit names it; the others are written all the same
            receipts.repair(generation)


def repair_published(scan: Scan, *, workspace: Workspace) -> None:
    """Let the published table follow the receipts where a break left it behind.

    What cannot be published for its records' sake is left to the audit, which names it: it must
    not keep the next night from its own walk.
    """
    with suppress(TamperedError):
        publish(scan, workspace=workspace)


def _opened(events: Sequence[Event]) -> Event:
    if not events or events[0].event != "open":
        raise TamperedError("pages", "found no open event; expected the walk's first row")
    return events[0]
