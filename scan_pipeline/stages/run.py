"""One night of a scan: finish what broke off, walk, certify, publish, and begin again on expiry."""

import json
from collections.abc import Callable

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.findings import finding
from scan_pipeline.core.value import record
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.enumerate import SHARD, Progress
from scan_pipeline.stages.pipeline import Pipeline, never_cancelled
from scan_pipeline.stages.publish import publish, published_generation
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event, EventLog, to_batch
from scan_pipeline.store.generations import committed, new_generation, next_attempt
from scan_pipeline.store.receipts import StoredReceipt, generation_order


@record
class Night:
    """What a run came to.

    Attributes:
        stored: receipt of the last attempt.
        earlier: receipts of attempts that expired before it, oldest first.
        closed: receipts of abandoned generations that this run closed.
    """

    stored: StoredReceipt
    earlier: tuple[StoredReceipt, ...] = ()
    closed: tuple[StoredReceipt, ...] = ()


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
    repair_published(scan, workspace=workspace)
    resumed, closed = settle_open(scan, workspace=workspace)
    generation = resumed or free_generation(scan.name, workspace=workspace)
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
        receipt = stored.receipt
        expired = receipt.stop_reason in ("snapshot_expired", "continuation_consumed")
        if not expired or len(earlier) >= scan.operation.restarts:
            return Night(stored=stored, earlier=tuple(earlier), closed=closed)
        earlier.append(stored)
        restart_of, generation = generation, next_attempt(generation)


def finish(pipeline: Pipeline) -> StoredReceipt:
    """Bring a closed generation to its receipt, and publish it where it is accepted."""
    if not pipeline.is_sealed():
        pipeline.records()
        pipeline.reconciliation()
    stored = pipeline.receipt()
    pipeline.published(stored)
    return stored


def settle_open(
    scan: Scan, *, workspace: Workspace
) -> tuple[str | None, tuple[StoredReceipt, ...]]:
    """Return the open generation to take up, and the receipts of those that were closed.

    Taken up is the newest open generation under the same contract; the others are closed as
    abandoned, under the contract they were begun with.
    """
    receipts = workspace.receipts(scan.name)
    pages = workspace.store(scan.name, "20000101T000000Z").pages()
    walked = sorted(pages.generations(), key=generation_order)
    open_ones = [each for each in walked if not receipts.has(each)]
    resumed: str | None = None
    closed: list[StoredReceipt] = []
    for generation in reversed(open_ones):
        events = workspace.store(scan.name, generation).events()
        pipeline = Pipeline(scan, generation, workspace=workspace)
        same = events[0].facts["digests"] == pipeline.digests.__dict__
        if same and resumed is None:
            resumed = generation
            continue
        closed.append(abandon(generation, scan, workspace=workspace, events=events))
    return resumed, tuple(reversed(closed))


def abandon(
    generation: str, scan: Scan, *, workspace: Workspace, events: list[Event]
) -> StoredReceipt:
    """Close an open generation that cannot be taken up, and certify what it holds.

    It is judged under the contract it was begun with, as its open event tells.
    """
    begun_with = contract_of(events[0])
    if events[-1].event != "close":
        store = workspace.store(scan.name, generation)
        told = finding("abandoned", found=f"{sum(e.event == 'page' for e in events)} pages")
        close = EventLog(last=events[-1]).close(
            {
                "traversal": "interrupted",
                "stop_reason": "abandoned",
                "limits_hit": [],
                "before": events[0].facts["before"],
                "after": None,
                "recheck": [],
                "findings": [dict(told.__dict__)],
            },
            at=workspace.clock(),
        )
        rows = to_batch(
            [close], scan=scan.name, generation=generation, shard=SHARD, sealer=store.sealer()
        )
        store.admission(shard=SHARD).commit(
            rows, expected=committed(events[-1]), sealed=store.is_sealed
        )
    return finish(Pipeline(begun_with, generation, workspace=workspace))


def contract_of(opened: Event) -> Scan:
    """Return the scan that a generation was begun with."""
    return parse_scan(json.loads(canonical_json(opened.facts["contract"])))


def free_generation(scan: str, *, workspace: Workspace) -> str:
    """Return the name of a generation that begins now and does not exist yet.

    Raises:
        ContractError: one of this very second exists, and so do all its attempts.
    """
    name = new_generation(workspace.clock())
    pages = workspace.store(scan, name).pages()
    taken = {*pages.generations(), *workspace.receipts(scan).generations()}
    for _ in range(100):
        if name not in taken:
            return name
        name = next_attempt(name)
    raise ContractError(f"{scan}: a hundred generations of one second exist; wait a second")


def repair_published(scan: Scan, *, workspace: Workspace) -> None:
    """Publish the newest accepted generation where a break left an older one in its place."""
    receipts = workspace.receipts(scan.name)
    current = published_generation(scan.name, workspace=workspace)
    for generation in reversed(receipts.generations()):
        if current is not None and generation_order(current) >= generation_order(generation):
            return
        stored = receipts.read(generation, trust=workspace.trust)
        if stored.receipt.accepted:
            publish(stored, scan, workspace=workspace)
            return
