"""Which rounds hold together: a baseline and the rounds that each began where one before it ended.

A round is one of a lineage where its receipt stands, is accepted, and names the round it began at;
what is not accepted is in none, so that the next round begins where the last accepted one ended.
"""

from collections.abc import Iterator

from scan_pipeline.core.checkpoint import GONE
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.shelf import Shelf, pages_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt


@record
class Lineage:
    """Rounds that hold together, the baseline first.

    Attributes:
        rounds: their receipts, one at least.
        over: why its last checkpoint is of no use any more; None where the next round begins there.
    """

    rounds: tuple[StoredReceipt, ...]
    over: str | None = None

    @property
    def tip(self) -> StoredReceipt:
        """The newest of them."""
        return self.rounds[-1]

    @property
    def receipt_ids(self) -> tuple[str, ...]:
        """Ids of their receipts, in order."""
        return tuple(each.receipt_id for each in self.rounds)


def newest_lineage(scan: Scan, *, workspace: Workspace) -> Lineage | None:
    """Return the newest rounds of a scan that hold together, None where no baseline stands.

    Args:
        scan: the scan; rounds under another scope are another collection's.
        workspace: where its receipts lie.
    """
    known = _Standing(scan, workspace)
    over: str | None = None
    for number, tip in enumerate(known.all()):
        receipt = tip.receipt
        if receipt.round is None:
            continue
        if not _is_of_a_lineage(tip):
            if receipt.stop_reason in GONE and receipt.round.since is not None and over is None:
                over = receipt.scan_generation
            continue
        rounds = known.back_from(number)
        if rounds is not None:
            return Lineage(rounds=rounds, over=over)
    return None


class _Standing:
    """The receipts of one scope that stand, newest first; read as far as they are asked for."""

    def __init__(self, scan: Scan, workspace: Workspace) -> None:
        scope = scope_digest(scan)
        shelf = Shelf(scan.name, workspace=workspace)
        self._left = (each for each in shelf.standing() if each.receipt.scope_digest == scope)
        self._read: list[StoredReceipt] = []

    def all(self, start: int = 0) -> Iterator[StoredReceipt]:
        """Yield them from one on, newest first."""
        while True:
            if start == len(self._read):
                following = next(self._left, None)
                if following is None:
                    return
                self._read.append(following)
            yield self._read[start]
            start += 1

    def back_from(self, number: int) -> tuple[StoredReceipt, ...] | None:
        """Return a round with those it rests on, the baseline first; None where one is missing."""
        rounds = list[StoredReceipt]()
        wanted: str | None = None
        for each in self.all(number):
            of_round = each.receipt.round
            if wanted is not None and pages_of(each.receipt) != wanted:
                continue
            if of_round is None or not _is_of_a_lineage(each):
                return None
            rounds.append(each)
            if of_round.since is None:
                return tuple(reversed(rounds))
            wanted = of_round.since.generation
        return None


def _is_of_a_lineage(stored: StoredReceipt) -> bool:
    receipt = stored.receipt
    return receipt.accepted and receipt.round is not None and receipt.round.checkpoint is not None
