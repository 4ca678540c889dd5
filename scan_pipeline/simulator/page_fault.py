"""Where and how often a fault strikes: by page, and deterministic."""

from typing import Literal

from scan_pipeline.core.value import record
from scan_pipeline.simulator.mutations import STRICT, Natural
from scan_pipeline.simulator.rows import CollectionName


@record
class PageFault:
    """What the faults share: where and how often they strike.

    Attributes:
        page: number of the page from 1, `last` for the one that holds the last row, `every`.
            The number travels in the cursor: a retry or a later recheck is the same page.
        through: also on the pages up to this one, or up to the `end`; None for this page alone.
        first_attempt: strikes from this request for the page on, from 1.
        last_attempt: strikes up to this request for the page; None for always. Requests are
            counted by page over the life of the registry, whichever walk sent them.
        collection: which collection.
    """

    __pydantic_config__ = STRICT

    page: Natural | Literal["last", "every"]
    through: Natural | Literal["end"] | None = None
    first_attempt: Natural = 1
    last_attempt: Natural | None = None
    collection: CollectionName = "customers"

    def strikes(self, *, page: int, is_last: bool, attempt: int) -> bool:
        """Say whether it strikes this request for this page."""
        if attempt < self.first_attempt or attempt > (self.last_attempt or attempt):
            return False
        if self.page == "every":
            return True
        if self.page == "last":
            return is_last
        if self.through is None:
            return page == self.page
        return self.page <= page and (self.through == "end" or page <= self.through)
