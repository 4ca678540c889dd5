"""A scan whose generations are one: what a gate let in is what is read, and nothing newer."""

from datetime import timedelta

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.standing import Standing, observed_at
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection, Wish
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt


class OneGeneration(Collection):
    """The generations of a scan, seen from one of them; each opening asks its receipt again.

    Args:
        scan: the contract the reader means.
        workspace: where the tables lie.
        generation: the only generation there is.
    """

    def __init__(self, scan: Scan, *, workspace: Workspace, generation: str) -> None:
        super().__init__(scan, workspace=workspace)
        self._only, self._clock = generation, workspace.clock

    def latest(
        self,
        *,
        at_least: Wish = "verified",
        max_age: timedelta | None = None,  # noqa: ARG002  # it was named, however old
    ) -> VerifiedCollection:
        """Open the generation; raises as `Collection.generation`."""
        return self.generation(self._only, at_least=at_least)

    def newest(self) -> StoredReceipt:
        """Return the receipt of the generation; raises as `Collection.receipt`."""
        return self.receipt(self._only)

    def newest_part(self, *, accept: ConclusionScope) -> PartialCollection:
        """Open the generation as no more than its scope; raises as `Collection.partial`."""
        return self.partial(self._only, accept=accept)

    def standing(self, *, at_least: Wish = "verified") -> Standing:
        """Say how old the generation is; raises as `latest`."""
        receipt = self.latest(at_least=at_least).receipt
        return Standing(opened=self._only, read_at=observed_at(receipt), now=self._clock())
