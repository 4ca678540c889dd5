"""Admitted pages, taken apart again and held against the digests they were admitted with."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256

from scan_pipeline.core.canonical import leaf_hashes
from scan_pipeline.core.errors import ProtocolError, TamperedError
from scan_pipeline.core.value import record
from scan_pipeline.sources.source import Beside, Noticed, Removal, Source


@record
class AdmittedPage:
    """One page, its records in one piece: an object for each would outlive the page it is of.

    Attributes:
        page: ordinal from 1.
        body: the body as sent.
        rows: number of records.
        lines: the records, joined by line breaks.
        leaves: their leaf hashes, joined.
        noticed: what the source's facts let us see inside them.
        beside: what they let us see beside them.
        removals: those of its records that say that one was removed, by row.
    """

    page: int
    body: bytes
    rows: int
    lines: bytes
    leaves: bytes
    noticed: tuple[Noticed, ...]
    beside: tuple[Beside, ...]
    removals: Mapping[int, Removal]


def open_page(
    page: int, body: bytes, *, source: Source, items_digest: bytes | None
) -> AdmittedPage:
    """Take an admitted body apart.

    Args:
        page: ordinal from 1.
        body: the body as sent.
        source: knows how to take it apart.
        items_digest: digest of the page's leaf hashes as admitted; None where no such page was.

    Raises:
        TamperedError: the records are not those that were admitted.
    """
    try:
        records = source.records(body)
    except ProtocolError as error:
        raise TamperedError("body", f"page {page} is no longer a page: {error}") from error
    leaves = b"".join(leaf_hashes(records))
    if sha256(leaves).digest() != items_digest:
        raise TamperedError("body", f"the records of page {page} are not those that were admitted")
    return AdmittedPage(
        page=page,
        body=body,
        rows=len(records),
        lines=b"\n".join(records),
        leaves=leaves,
        noticed=tuple(source.noticed(records)),
        beside=tuple(source.beside(body)),
        removals=source.removals(records),
    )


class PageGroup:
    """Pages that are staged together.

    Args:
        pages: in order.
        source: knows how to take bodies apart.
    """

    def __init__(self, pages: Sequence[AdmittedPage], *, source: Source) -> None:
        self.pages, self._source = pages, source
        self.rows = sum(each.rows for each in pages)

    @property
    def lines(self) -> bytes:
        """The records of all pages, joined by line breaks."""
        return b"\n".join(each.lines for each in self.pages if each.rows)

    @property
    def leaves(self) -> bytes:
        """Their leaf hashes, joined."""
        return b"".join(each.leaves for each in self.pages)

    @cached_property
    def texts(self) -> list[bytes]:
        """The text of each record, found again in the bodies: few groups need a closer look."""
        return [text for each in self.pages for text in self._source.records(each.body)]

    def noticed(self) -> list[Noticed]:
        """Return what was noticed inside records, by row of the group."""
        found, start = list[Noticed](), 0
        for each in self.pages:
            found += [
                Noticed(row=start + n.row, code=n.code, expected=n.expected, found=n.found)
                for n in each.noticed
            ]
            start += each.rows
        return found

    def removals(self) -> dict[int, Removal]:
        """Return which records say that one was removed, by row of the group."""
        found, start = dict[int, Removal](), 0
        for each in self.pages:
            found |= {start + row: removal for row, removal in each.removals.items()}
            start += each.rows
        return found
