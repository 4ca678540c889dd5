"""What a draft is: a scan file's facts, a remark on every guess, and what is left to a person."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from scan_pipeline.core.value import record

CONFIRM: Final = "confirm it in the provider's documentation"


@record
class Draft:
    """A proposed scan.

    Attributes:
        attributes: the scan file, as plain values in its order.
        notes: remarks by dotted path of the field they stand above.
        fill_in: by dotted path, what only a person can say.
        heading: what was seen, in sentences.
        requests: how many requests were sent.
        pages: how many pages were read as a scan would.
        page_bytes: average bytes of a page.
        pages_implied: pages of the whole, as far as a count implies them.
        tried: what did not work, and why not.
    """

    attributes: dict[str, Any]
    notes: Mapping[str, tuple[str, ...]]
    fill_in: Mapping[str, str]
    heading: tuple[str, ...]
    requests: int
    pages: int
    page_bytes: int
    pages_implied: int | None
    tried: tuple[tuple[str, str], ...] = ()

    @property
    def night_bytes(self) -> int | None:
        """Return about how many bytes one whole walk reads, None where nothing implies it."""
        return None if self.pages_implied is None else self.page_bytes * self.pages_implied


@record
class Notes:
    """Remarks and gaps, gathered in order."""

    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fill_in: dict[str, str] = field(default_factory=dict)

    def say(self, at: str, *remarks: str) -> None:
        """Put remarks above a field."""
        self.notes[at] = (*self.notes.get(at, ()), *remarks)

    def leave(self, at: str, what: str) -> None:
        """Leave a field to a person, saying what belongs there."""
        self.fill_in[at] = what
