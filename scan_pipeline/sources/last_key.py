"""The `last_key` protocol: the next page starts after the last row of this one (keyset).

Stripe sends it as `starting_after` and says `has_more` (docs.stripe.com/api/pagination, read
2026-11-30). Whether the key advances is not checked by an order of ours, since the source's
collation is its own; that rows do not come again is.
"""

import json
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import Continuation, Next, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import value_at
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.request import Added
from scan_pipeline.sources.http.row_ends import Progress, RowEnd, check_ends, end_of_rows
from scan_pipeline.sources.http.source import HttpSource, Received
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "last_key/1"

_WORDS: Final = frozenset({"false", "equals", "null", "empty_page", "short_page"})


@record
class KeyPart:
    """One field of the last row, and what carries it back.

    Attributes:
        field: where it lies in a record.
        send_as: parameter that carries it back.
    """

    field: FieldPath
    send_as: str


@record
class LastKeyFacts:
    """Which fields of the last row say where to go on, and what says the end.

    Attributes:
        after: the fields; together they must order all rows and tie none.
        ends_when: the declared ends.
    """

    after: Annotated[tuple[KeyPart, ...], Field(min_length=1)]
    ends_when: Annotated[tuple[RowEnd, ...], Field(min_length=1)]


@record
class LastKeySource(HttpFacts):
    """The facts of one collection that is walked from row to row.

    Attributes:
        next: which fields say where to go on, and what says the end.
    """

    positions_are_ours: ClassVar[bool] = True

    protocol: Literal["last_key"]
    next: LastKeyFacts

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_reads(*(each.at for each in self.next.ends_when))
        check_ends(self.next.ends_when, self, words=_WORDS)

    @property
    def position_fields(self) -> tuple[str, ...]:
        """Return the fields of the last row that the next page starts after."""
        return tuple(".".join(part.field) for part in self.next.after)


class LastKey(HttpSource):
    """Walks a `LastKeySource`; a token is canonical JSON: the key, and whether a page was full."""

    def __init__(self, facts: LastKeySource, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings)
        self._facts = facts
        self.adapter = AdapterRevision(name="last_key", revision=REVISION)

    @property
    def facts(self) -> LastKeySource:
        """Return what is declared of the source."""
        return self._facts

    def call(self, position: Position) -> Call:
        """Ask for the rows after the last one."""
        if position.token is None:
            return self.request.call(position)
        parts = zip(self._facts.next.after, _parts(position.token), strict=True)
        added = [
            Added(name=part.send_as, value=value, place=self._facts.send_in)
            for part, value in parts
        ]
        return self.request.call(position, continuation=added)

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the key of the last row, or the end.

        Raises:
            ProtocolError: `continuation_invalid`, the last row has no such key; besides, what
                `end_of_rows` raises.
        """
        facts, records = self._facts, received.records
        asked = None if facts.page_size is None else facts.page_size.value
        full = position.token is not None and json.loads(position.token)["full"]
        full = full or (asked is not None and len(records) >= asked)
        progress = Progress(
            records=len(records), read=None, pages=None, asked=asked, seen_full=full
        )
        end = end_of_rows(facts.next.ends_when, received, facts.count, progress)
        if end is not None:
            return end
        after = [_key_value(records[-1], part.field) for part in facts.next.after]
        # As decimal digits: a JSON number of 10^21 and more would come back rounded.
        told = [{"digits": str(each)} if isinstance(each, int) else each for each in after]
        return Next(token=canonical_json({"after": told, "full": full}).decode())


def _parts(token: str) -> list[str | int]:
    """Return the key of the last row, digit for digit."""
    after = json.loads(token)["after"]
    return [int(each["digits"]) if isinstance(each, dict) else each for each in after]


def _key_value(row: bytes, path: FieldPath) -> str | int:
    try:
        value = value_at(parse_exact(row), path)
    except CanonicalFormError:
        value = None
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ProtocolError(
            "continuation_invalid",
            f"the last record of the page has no text or integer at {'.'.join(path)}; expected the "
            "key after which the next page starts",
        )
    return value


PROTOCOL: Final = Protocol(facts=LastKeySource, open=LastKey)
