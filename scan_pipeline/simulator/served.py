"""What a registry remembers of its own work, so that a test can look."""

from collections import Counter

from scan_pipeline.core.value import record
from scan_pipeline.simulator.rows import CollectionName


@record
class ServedPage:
    """One page request that came as far as a page.

    Attributes:
        collection: which collection.
        walk: the walk started last when the request came, from 1; a walk starts with a request
            that has neither cursor nor snapshot.
        page: number of the page, from 1.
        attempt: the how manieth request for this page, from 1.
        principal: name of who asked.
        cursor: as presented; None on a first page.
        snapshot_id: the pin it was read under; None for a live view.
        status: HTTP status code of the answer.
        rows: rows in the body as it was made, before any damage to it.
    """

    collection: CollectionName
    walk: int
    page: int
    attempt: int
    principal: str
    cursor: str | None
    snapshot_id: str | None
    status: int
    rows: int


class Served:
    """The page requests a registry has answered, in order; refused ones are counted by code.

    Attributes:
        pages: every page request that was understood.
        refused: code of the error envelope -> how often.
        identity_reads: how often the identity endpoint was read.
    """

    def __init__(self) -> None:
        self.pages: list[ServedPage] = []
        self.refused: Counter[str] = Counter()
        self.identity_reads = 0
        self._walks: Counter[str] = Counter()

    def start_walk(self, collection: CollectionName) -> None:
        """Count the start of a walk."""
        self._walks[collection] += 1

    def walks(self, collection: CollectionName = "customers") -> int:
        """Return how many walks were started."""
        return self._walks[collection]

    def requests_of_walk(self, walk: int, collection: CollectionName = "customers") -> int:
        """Return how many page requests a walk sent."""
        return sum(1 for page in self.pages if (page.collection, page.walk) == (collection, walk))

    def cursors(self) -> frozenset[str]:
        """Return every cursor that was presented."""
        return frozenset(page.cursor for page in self.pages if page.cursor is not None)
