"""Which sealed generations a scan's retention no longer keeps, and what keeps them all the same."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.retention import Certified, Keep, Retention, beyond
from scan_pipeline.core.value import record
from scan_pipeline.stages.publish import published_generation
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt

What = Literal["bodies", "records"]


@record
class KeptBack:
    """What retention does not keep and something else does."""

    generation: str
    what: What
    reason: str


@record
class Plan:
    """What is to be dropped.

    Attributes:
        bodies: receipts whose pages lose their bodies, oldest first.
        records: receipts whose records go, oldest first.
        kept_back: what would go and stays.
    """

    bodies: tuple[Receipt, ...]
    records: tuple[Receipt, ...]
    kept_back: tuple[KeptBack, ...]


def plan(scan: str, retention: Retention, *, workspace: Workspace) -> Plan:
    """Say what a retention no longer keeps.

    Never dropped: the newest accepted generation and the one that is published, what is held, a
    generation of a chain of delta rounds, and pages that a kept receipt judges again. Bodies of
    the newest accepted generation follow their own rule.
    """
    shelf = Shelf(scan, workspace=workspace)
    filed = [each for each in shelf.newest_first() if isinstance(each, StoredReceipt)]
    standing = [each.receipt for each in filed if shelf.superseded_by(each) is None]
    receipts = {each.receipt.scan_generation: each.receipt for each in filed}
    accepted = [each.scan_generation for each in standing if each.accepted]
    certified = [
        Certified(
            generation=each.receipt.scan_generation,
            counts=each.receipt.scan_generation in accepted,
            completed_at=datetime.fromisoformat(each.receipt.completed_at),
        )
        for each in filed
    ]
    now = workspace.clock()

    def over(keep: Keep | None) -> frozenset[str]:
        return frozenset() if keep is None else beyond(keep, certified, now=now)

    stays = dict(_stays(scan, receipts, workspace=workspace))
    last = {
        name: reason
        for name, reason in (
            (published_generation(scan, workspace=workspace), "it is the one that is published"),
            (next(iter(accepted), None), "it is the newest accepted generation"),
        )
        if name is not None
    }
    records, back = list[Receipt](), list[KeptBack]()
    for name in _oldest_first(over(retention.records), receipts):
        reason = stays.get(name) or last.get(name)
        if reason is None:
            records.append(receipts[name])
        else:
            back.append(KeptBack(generation=name, what="records", reason=reason))
    gone = {each.scan_generation for each in records}
    bodies = list[Receipt]()
    without = over(retention.bodies) | gone
    for name in _oldest_first(without, receipts):
        receipt = receipts[name]
        if pages_of(receipt) != name:
            continue  # a restage has no pages of its own
        users = [r.scan_generation for r in receipts.values() if pages_of(r) == name]
        kept = [user for user in users if user not in without]
        reason = stays.get(name) or next((stays[user] for user in users if user in stays), None)
        if reason is None and kept:
            reason = f"{kept[0]} judges its pages again and is kept"
        if reason is None:
            bodies.append(receipt)
        else:
            back.append(KeptBack(generation=name, what="bodies", reason=reason))
    return Plan(bodies=tuple(bodies), records=tuple(records), kept_back=tuple(back))


def held(scan: str, *, workspace: Workspace) -> dict[str, str]:
    """Return the generations that are held, and why; a note that does not verify holds too."""
    notes, found = workspace.holds(scan), dict[str, str]()
    for generation in notes.generations():
        told = notes.of(generation, trust=workspace.trust)
        if notes.unreadable(generation, trust=workspace.trust):
            found[generation] = "a note on whether it is held does not verify: look at it"
        elif told and told[-1].state == "held":
            by = f" by {told[-1].by}" if told[-1].by else ""
            found[generation] = f"held{by} since {told[-1].said_at[:10]}: {told[-1].because}"
    return found


def _stays(
    scan: str, receipts: dict[str, Receipt], *, workspace: Workspace
) -> Iterator[tuple[str, str]]:
    for name, receipt in receipts.items():
        if receipt.mode == "sync":
            yield name, "the rounds after it rest on it"
    yield from held(scan, workspace=workspace).items()


def _oldest_first(names: frozenset[str], receipts: dict[str, Receipt]) -> Sequence[str]:
    return [name for name in reversed(receipts) if name in names]
