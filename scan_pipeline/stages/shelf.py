"""A scan's receipts as readers find them: which are receipts, and which of them stand.

A restage judges the same pages again, under a receipt that names the one it supersedes. Of the
receipts over one generation's pages only the newest stands.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt, Untrusted, generation_order


class Shelf:
    """The receipts of one scan, as they are at one moment.

    Args:
        scan: its name.
        workspace: where they lie, and whom to believe.
    """

    def __init__(self, scan: str, *, workspace: Workspace) -> None:
        self._receipts, self._workspace = workspace.receipts(scan), workspace

    def newest_first(self) -> Iterator[StoredReceipt | Untrusted]:
        """Yield what is filed, newest first; what is no receipt keeps nobody from the others.

        A receipt is as new as the pages that it judges. The nights of a clock that was set back are
        attempts of one name, and one of them that is judged again has the newest name of all.
        """
        filed = reversed(self._receipts.generations())
        for _, night in groupby(filed, key=lambda each: generation_order(each)[0]):
            attempts = list(night)
            found = (self._receipts.look(each, trust=self._workspace.trust) for each in attempts)
            yield from found if len(attempts) == 1 else sorted(found, key=_age, reverse=True)

    def standing(self) -> Iterator[StoredReceipt]:
        """Yield the receipts that stand, newest first."""
        for each in self.newest_first():
            if isinstance(each, StoredReceipt) and self.superseded_by(each) is None:
                yield each

    def superseded_by(self, stored: StoredReceipt) -> StoredReceipt | None:
        """Return the newest receipt that judges the same pages again, None where this one stands.

        What was committed counts too: a file that is gone or spoilt takes no judgement back.
        """
        own, pages = stored.receipt.scan_generation, pages_of(stored.receipt)
        after = generation_order(own)
        # A restage is a later attempt of the generation whose pages it judges.
        later = [
            each for each in self._known if generation_order(each) > after and _same(each, own)
        ]
        for generation in sorted(later, key=generation_order, reverse=True):
            found = self._receipts.look(generation, trust=self._workspace.trust)
            if isinstance(found, Untrusted):
                found = self._receipts.look_committed(generation, trust=self._workspace.trust)
            if found and found.receipt.supersedes and pages_of(found.receipt) == pages:
                return found
        return None

    @cached_property
    def _known(self) -> frozenset[str]:
        receipts = self._receipts
        return frozenset({*receipts.generations(), *receipts.committed_generations()})

    def by_id(self, receipt_id: str) -> StoredReceipt | None:
        """Return the receipt of an id, None where none is filed; of a redacted one, its copy."""
        return next(
            (
                each
                for each in self.newest_first()
                if isinstance(each, StoredReceipt)
                and receipt_id in (each.receipt_id, each.receipt.redacts)
            ),
            None,
        )


def pages_of(receipt: Receipt) -> str:
    """Return the generation whose pages a receipt is about."""
    held = receipt.evidence.get("pages")
    return receipt.scan_generation if held is None else held.generation


def _age(filed: StoredReceipt | Untrusted) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return what sorts attempts of one night: by the pages they judge, then by their names."""
    if isinstance(filed, Untrusted):
        return generation_order(filed.generation), generation_order(filed.generation)
    receipt = filed.receipt
    return generation_order(pages_of(receipt)), generation_order(receipt.scan_generation)


def _same(generation: str, other: str) -> bool:
    return generation_order(generation)[0] == generation_order(other)[0]
