"""Reads what a report is made from; what can no longer be read is told and stops nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.auditing.report import UNREADABLE
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.reporting.material import Ledger, Material, Night, Unread
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt, Untrusted, generation_order
from scan_pipeline.store.signed_notes import taken_out_since

T = TypeVar("T")

BEFORE: Final = 9
"""Generations before the one of the report, at most."""

AFTER: Final = 2
"""Generations after it, at most."""


def gather(stored: StoredReceipt, *, workspace: Workspace, audited: bool) -> Material:
    """Read what a report on a generation is made from.

    Args:
        stored: its receipt.
        workspace: where it lies.
        audited: whether to compute every figure again, which reads all of its rows.
    """
    receipt = stored.receipt
    scan, generation = receipt.scan, receipt.scan_generation
    by = Shelf(scan, workspace=workspace).superseded_by(stored)
    return Material(
        stored=stored,
        fingerprint=next(
            each.fingerprint for each in workspace.trust.keys if each.keyid == stored.key_id
        ),
        ledger=_readable(lambda: _ledger(stored, workspace)),
        partitions=_readable(lambda: _partitions(stored, workspace)),
        nights=_nights(scan, generation, workspace),
        superseded_by=by and by.receipt.scan_generation,
        audit=Audit(scan, generation, workspace=workspace).run() if audited else None,
        made_at=moment(workspace.clock()),
        taken_out=taken_out_since(receipt, lake=workspace.lake, trust=workspace.trust),
    )


def _readable(look: Callable[[], T]) -> T | Unread:
    try:
        return look()
    except UNREADABLE as error:
        return Unread(why=str(error) or type(error).__name__)


def _ledger(stored: StoredReceipt, workspace: Workspace) -> Ledger | Unread:
    receipt = stored.receipt
    store = workspace.store(receipt.scan, receipt.scan_generation, evidence=pages_of(receipt))
    first = store.events()
    if not first:
        return Unread(why="the table of pages holds no event of this generation")
    second = store.events(SECOND_WALK)
    return Ledger(
        walks=(first, second) if second else (first,), contract=store.opened().facts["contract"]
    )


def _partitions(
    stored: StoredReceipt, workspace: Workspace
) -> Sequence[Mapping[str, Any]] | Unread:
    receipt = stored.receipt
    store = workspace.store(receipt.scan, receipt.scan_generation)
    rows = store.read_summaries() if store.summaries().exists() else []
    if not rows and receipt.merkle.partitions:
        return Unread(why="the table of partition summaries holds none of this generation")
    return rows


def _nights(scan: str, generation: str, workspace: Workspace) -> tuple[Night, ...]:
    receipts = workspace.receipts(scan)
    names, place = receipts.generations(), generation_order(generation)
    before = [each for each in names if generation_order(each) < place][-BEFORE:]
    after = [each for each in names if generation_order(each) > place][:AFTER]
    nights = list[Night]()
    for each in (*before, generation, *after):
        found = receipts.look(each, trust=workspace.trust)
        told = Unread(why=found.reason) if isinstance(found, Untrusted) else found.receipt
        nights.append(Night(generation=each, receipt=told))
    return tuple(nights)
