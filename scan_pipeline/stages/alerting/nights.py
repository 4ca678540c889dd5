"""A scan's last nights as alerts see them: one verdict a night, of the attempt that stands."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from scan_pipeline.core.calendar import Timeliness, timeliness
from scan_pipeline.core.condition import Condition, Verdict, condition_of
from scan_pipeline.core.receipt import Receipt, last_stop_reason
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.standing import begun_at
from scan_pipeline.stages.walking.stopped import BEGUN_AGAIN
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt, Untrusted, generation_order

LOOKED_AT: Final = 64
"""Nights that are looked at; a condition that lasts longer is told by the ledger to be old news."""


@record
class LastNights:
    """How a scan stands, and what an alert tells of it.

    Attributes:
        condition: how it stands.
        receipt: of the newest night; None before the first, and where it cannot be believed.
        timeliness: how the newest night stands to the schedule, None without one.
    """

    condition: Condition
    receipt: Receipt | None
    timeliness: Timeliness | None


def last_nights(scan: Scan, *, workspace: Workspace) -> LastNights:
    """Return how a scan stands by its receipts and its schedule.

    An attempt that expired and that another one will follow is no verdict yet. Late is a scan of
    which no generation came, whatever became of it; before the first one nothing says since when.
    """
    nights = list[Verdict]()
    receipt: Receipt | None = None
    shelf = Shelf(scan.name, workspace=workspace)
    begun: str | None = None
    whole = True
    for each in shelf.newest_first():
        generation = _name(each)
        first = generation_order(generation)[0]
        if first == begun or _is_followed(each, scan, newest=not nights):
            continue
        if isinstance(each, StoredReceipt) and shelf.superseded_by(each) is not None:
            continue
        if len(nights) == LOOKED_AT:
            whole = False
            break
        if not nights and isinstance(each, StoredReceipt):
            receipt = each.receipt
        begun = first
        nights.append(_verdict(each))
    nights.reverse()
    condition = condition_of(nights, whole_history=whole)
    held = _timeliness(scan, nights, now=workspace.clock())
    if held is not None and held.late:
        last = next((each for each in reversed(nights) if each.accepted), None)
        condition = replace(condition, word="late", since=nights[-1].generation, accepted=last)
    return LastNights(condition=condition, receipt=receipt, timeliness=held)


def _timeliness(scan: Scan, nights: Sequence[Verdict], *, now: datetime) -> Timeliness | None:
    if scan.schedule is None or not nights:
        return None
    return timeliness(scan.schedule, read_at=begun_at(nights[-1].generation), now=now)


def _is_followed(each: StoredReceipt | Untrusted, scan: Scan, *, newest: bool) -> bool:
    if isinstance(each, Untrusted) or not newest:
        return False
    attempt = generation_order(each.receipt.scan_generation)[1]
    again = last_stop_reason(each.receipt) in BEGUN_AGAIN and each.receipt.supersedes is None
    return again and attempt <= scan.operation.restarts


def _verdict(each: StoredReceipt | Untrusted) -> Verdict:
    if isinstance(each, Untrusted):
        return Verdict(
            generation=each.generation,
            accepted=False,
            status="failed",
            scope="observed_pages_only",
        )
    told = each.receipt
    return Verdict(
        generation=told.scan_generation,
        accepted=told.accepted,
        status=told.coverage_status,
        scope=told.conclusion_scope,
    )


def _name(each: StoredReceipt | Untrusted) -> str:
    return each.generation if isinstance(each, Untrusted) else each.receipt.scan_generation
