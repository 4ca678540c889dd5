"""The `offset` protocol: we say from which row, or which page, to go on.

The next offset moves by the rows received, not by the page size asked for: sources clip it. A page
number has no such remedy, since it means something only under one page size; a page that does not
hold what was asked for and yet is not the last breaks the walk. Rows that come or go while the
pages are read shift all later ones, and nothing in the answers shows it: such a walk is `live` at
best.
"""

import json
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.page import Continuation, Next, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import NaturalInt, record
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.request import Added
from scan_pipeline.sources.http.row_ends import Progress, RowEnd, check_ends, end_of_rows
from scan_pipeline.sources.http.source import HttpSource, Received
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "offset/1"

_ROWS: Final = frozenset({"total_reached", "false", "equals", "null", "empty_page", "short_page"})
_PAGES: Final = _ROWS | {"total_pages"}


@record
class OffsetFacts:
    """How the next rows are asked for and what says the end.

    Attributes:
        send_as: parameter that carries the offset or the page number.
        counts: whether it counts rows or pages.
        first: its value for the first page; sources differ between 0 and 1.
        ends_when: the declared ends.
    """

    send_as: str
    counts: Literal["rows", "pages"]
    first: NaturalInt
    ends_when: Annotated[tuple[RowEnd, ...], Field(min_length=1)]


@record
class OffsetSource(HttpFacts):
    """The facts of one collection behind offsets or page numbers.

    Attributes:
        next: how the next rows are asked for and what says the end.
    """

    positions_are_ours: ClassVar[bool] = True

    protocol: Literal["offset"]
    next: OffsetFacts

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_reads(*(each.at for each in self.next.ends_when))
        words = _ROWS if self.next.counts == "rows" else _PAGES
        check_ends(self.next.ends_when, self, words=words)
        if self.snapshot is not None or self.high_water_mark is not None:
            raise ContractError(
                "offsets shift with every row that comes or goes; expected neither snapshot nor "
                "high_water_mark: such a walk is live at best"
            )


@record
class _Place:
    """Where a walk stands; the token is its canonical JSON.

    Attributes:
        at: offset or page number to ask for.
        read: rows received before.
        pages: pages received before.
        full: whether one of them was as large as asked.
        odd: whether the one before did not hold what was asked for.
    """

    at: int
    read: int = 0
    pages: int = 0
    full: bool = False
    odd: bool = False


class Offset(HttpSource):
    """Walks an `OffsetSource`."""

    def __init__(self, facts: OffsetSource, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings)
        self._facts = facts
        self.adapter = AdapterRevision(name="offset", revision=REVISION)

    @property
    def facts(self) -> OffsetSource:
        """Return what is declared of the source."""
        return self._facts

    def call(self, position: Position) -> Call:
        """Ask for the rows from a place on."""
        following = self._facts.next
        added = Added(
            name=following.send_as, value=self._place(position).at, place=self._facts.send_in
        )
        return self.request.call(position, continuation=[added])

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the place after this page, or the end.

        Raises:
            ProtocolError: `page_size_not_honoured`, pages go by number and the one before did not
                hold what was asked for; besides, what `end_of_rows` raises.
        """
        facts, place, records = self._facts, self._place(position), len(received.records)
        if place.odd and records:
            raise ProtocolError(
                "page_size_not_honoured",
                f"the page before number {place.at} did not hold the {self._asked} records asked "
                "for and yet was not the last; page numbers then count other pages than ours",
            )
        full = place.full or (self._asked is not None and records >= self._asked)
        progress = Progress(
            records=records,
            read=place.read + records,
            pages=place.pages + 1,
            asked=self._asked,
            seen_full=full,
        )
        end = end_of_rows(facts.next.ends_when, received, facts.count, progress)
        if end is not None:
            return end
        by_rows = facts.next.counts == "rows"
        after = _Place(
            at=place.at + (records if by_rows else 1),
            read=place.read + records,
            pages=place.pages + 1,
            full=full,
            odd=not by_rows and self._asked is not None and records != self._asked,
        )
        return Next(token=canonical_json(dict(after.__dict__)).decode())

    @property
    def _asked(self) -> int | None:
        size = self._facts.page_size
        return None if size is None else size.value

    def _place(self, position: Position) -> _Place:
        if position.token is None:
            return _Place(at=self._facts.next.first)
        return _Place(**json.loads(position.token))


PROTOCOL: Final = Protocol(facts=OffsetSource, open=Offset)
