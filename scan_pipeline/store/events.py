"""The events of a walk as rows: built with their chain, sealed, and read back in order.

A page and its continuation are one row, so they commit together. Bodies and tokens are sealed;
digests are over the plain bytes, so that the chain can be recomputed without opening anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa

from scan_pipeline.core.canonical import canonical_json, parse_exact
from scan_pipeline.core.chain import (
    EMPTY_DIGEST,
    ChainLink,
    chain_after,
    chain_start,
    checkpoint_digest,
    cursor_digest,
    end_digest,
)
from scan_pipeline.core.checkpoint import CHECKPOINT
from scan_pipeline.core.errors import ErasedError
from scan_pipeline.core.page import End, Page, Refusal
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import EventKind
from scan_pipeline.store.sealing import Sealer
from scan_pipeline.store.tables import Table

UTC_US: Final = pa.timestamp("us", "UTC")

PAGES: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("page", pa.int64()),
        pa.field("cursor_in", pa.binary()),
        pa.field("cursor_in_digest", pa.binary(), nullable=False),
        pa.field("cursor_out", pa.binary()),
        pa.field("cursor_out_digest", pa.binary(), nullable=False),
        pa.field("end_signal", pa.string()),
        pa.field("returned", pa.int64()),
        pa.field("facts", pa.string(), nullable=False),
        pa.field("facts_digest", pa.binary(), nullable=False),
        pa.field("items_digest", pa.binary(), nullable=False),
        pa.field("body", pa.binary()),
        pa.field("body_digest", pa.binary(), nullable=False),
        pa.field("body_bytes", pa.int64()),
        pa.field("attempts", pa.int32()),
        pa.field("requested_at", UTC_US),
        pa.field("received_at", UTC_US, nullable=False),
        pa.field("chain", pa.binary(), nullable=False),
    ]
)
"""One row an event, by (shard, seq). Digests are 32 bytes; `body` and the cursors are sealed."""

SEALED_COLUMNS: Final = ("body", "cursor_in", "cursor_out")

OPAQUE_COLUMNS: Final = (
    *SEALED_COLUMNS,
    *(name for name in PAGES.names if name.endswith("digest")),
    "chain",
)
"""Columns that neither compression nor statistics can help."""

LEDGER: Final = tuple(name for name in PAGES.names if name != "body")
"""Every column but the bodies: what the chain and the judgement need."""


@record
class Event:
    """One event of a walk, plain; `body` is None where the row has none or it was not read."""

    seq: int
    event: EventKind
    facts: dict[str, Any]
    facts_digest: bytes
    cursor_in_digest: bytes
    cursor_out_digest: bytes
    items_digest: bytes
    body_digest: bytes
    chain: bytes
    received_at: datetime
    page: int | None = None
    cursor_in: bytes | None = None
    cursor_out: bytes | None = None
    end_signal: str | None = None
    returned: int | None = None
    body: bytes | None = None
    body_bytes: int | None = None
    attempts: int | None = None
    requested_at: datetime | None = None

    def link(self) -> ChainLink:
        """Return what the event adds to the chain."""
        return ChainLink(
            seq=self.seq,
            cursor_in=self.cursor_in_digest,
            cursor_out=self.cursor_out_digest,
            items=self.items_digest,
            body=self.body_digest,
            reported=self.facts_digest,
        )


class EventLog:
    """Numbers and links the events of one walk as they happen; does no IO.

    Args:
        last: the last committed event of a walk that is taken up again.
        pages: number of pages committed so far.
    """

    def __init__(self, *, last: Event | None = None, pages: int = 0) -> None:
        self._last, self._pages = last, pages

    def open(self, facts: dict[str, Any], *, at: datetime) -> Event:
        """Return the first event, which says what will be asked for, and of whom."""
        stated = {"kind": "open", **facts}
        digest = _facts_digest(stated)
        self._last = Event(
            seq=0,
            event="open",
            facts=stated,
            facts_digest=digest,
            cursor_in_digest=cursor_digest(None),
            cursor_out_digest=cursor_digest(None),
            items_digest=EMPTY_DIGEST,
            body_digest=EMPTY_DIGEST,
            chain=chain_start(digest),
            received_at=at,
        )
        return self._last

    def page(self, page: Page, *, items: bytes) -> Event:
        """Return the event of an admitted page."""
        self._pages += 1
        follows = page.continuation
        ending = follows.signal if isinstance(follows, End) else None
        following = None if isinstance(follows, End) else follows.token
        facts = page.reported.facts(
            returned=page.records, sent_pin=page.position.pin, fingerprint=page.fingerprint
        )
        if isinstance(follows, End) and follows.checkpoint is not None:
            facts[CHECKPOINT] = checkpoint_digest(follows.checkpoint)
        token = page.position.token
        return self._linked(
            event="page",
            facts=facts,
            page=self._pages,
            cursor_in=None if token is None else token.encode(),
            cursor_in_digest=cursor_digest(token),
            cursor_out=None if following is None else following.encode(),
            cursor_out_digest=(cursor_digest(following) if ending is None else end_digest(ending)),
            end_signal=ending,
            returned=page.records,
            items_digest=items,
            body=page.body,
            body_digest=sha256(page.body).digest(),
            body_bytes=len(page.body),
            attempts=page.attempts,
            requested_at=page.requested_at,
            received_at=page.received_at,
        )

    def refused(self, refusal: Refusal) -> Event:
        """Return the event of an answer that was not a page.

        What was not asked to go on leaves the walk where it stands.
        """
        if self._last is not None and refusal.asked != "page":
            cursor = self._last.cursor_out_digest
        else:
            cursor = cursor_digest(refusal.position.token)
        return self._linked(
            event="refused",
            facts=refusal.facts(),
            cursor_in_digest=cursor,
            cursor_out_digest=cursor,
            items_digest=EMPTY_DIGEST,
            body_digest=refusal.body_digest,
            received_at=refusal.at,
        )

    def close(self, facts: dict[str, Any], *, at: datetime, checkpoint: str | None = None) -> Event:
        """Return the last event, which says how the walk stopped, and where a next round begins."""
        if checkpoint is not None:
            facts = {**facts, CHECKPOINT: checkpoint_digest(checkpoint)}
        if self._last is None:
            raise ValueError("a walk is closed only after it was opened")
        return self._linked(
            event="close",
            facts={"kind": "close", **facts},
            cursor_in_digest=self._last.cursor_out_digest,
            cursor_out=None if checkpoint is None else checkpoint.encode(),
            cursor_out_digest=self._last.cursor_out_digest,
            items_digest=EMPTY_DIGEST,
            body_digest=EMPTY_DIGEST,
            received_at=at,
        )

    def _linked(self, *, facts: dict[str, Any], **columns: Any) -> Event:
        if self._last is None:
            raise ValueError("a walk begins with its open event")
        unlinked = Event(
            seq=self._last.seq + 1,
            facts=facts,
            facts_digest=_facts_digest(facts),
            chain=b"",
            **columns,
        )
        event = replace(unlinked, chain=chain_after(self._last.chain, link=unlinked.link()))
        self._last = event
        return event


def to_batch(
    events: Sequence[Event], *, scan: str, generation: str, shard: int, sealer: Sealer
) -> pa.RecordBatch:
    """Seal events into rows of `PAGES`."""
    columns: dict[str, list[Any]] = {name: [] for name in PAGES.names}
    for event in events:
        row: dict[str, Any] = {
            **event.__dict__,
            "scan_generation": generation,
            "shard": shard,
            "facts": canonical_json(event.facts).decode(),
        }
        for name in SEALED_COLUMNS:
            if row[name] is not None:
                row[name] = sealer.seal(
                    row[name],
                    context=_context(scan, generation, shard, event.seq, name),
                    compress=name == "body",
                )
        for name, values in columns.items():
            values.append(row[name])
    return pa.RecordBatch.from_pydict(columns, schema=PAGES)


def read_events(table: Table, generation: str, *, shard: int) -> list[Event]:
    """Return the events of one walk of a generation in order, without bodies."""
    rows = table.read(generation, columns=LEDGER).sort_by("seq").to_pylist()
    return [_event(row) for row in rows if row["shard"] == shard]


def read_bodies(
    table: Table,
    *,
    scan: str,
    generation: str,
    shard: int,
    sealer: Sealer,
    past_erased: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Yield (page, body) of one walk of a generation, page by page in order, opening each.

    After compaction a generation lies in few files; each is read in row groups, and pages come in
    order because rows are appended in order and compaction keeps it.

    Args:
        table: of the events.
        scan: name of the scan.
        generation: which one.
        shard: of the walk.
        sealer: opens what was sealed.
        past_erased: whether pages whose body was taken out are passed by.

    Raises:
        TamperedError: a body is not the one that was sealed there.
        ErasedError: a body was taken out, by policy or on request.
    """
    columns = ("shard", "seq", "event", "page", "body")
    for batch in table.batches(generation, columns=columns):
        for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            of_shard, seq, event, page, body = row
            if event == "page" and of_shard == shard:
                if body is None:
                    if past_erased:
                        continue
                    raise ErasedError(
                        f"{scan} {generation}: the body of page {page} was dropped or erased; "
                        "expected one. The amendments beside its receipt say when and why"
                    )
                yield (
                    page,
                    sealer.open(body, context=_context(scan, generation, shard, seq, "body")),
                )


def open_token(
    event: Event, *, scan: str, generation: str, shard: int, sealer: Sealer, column: str
) -> str | None:
    """Return the plain continuation token of an event read back, None where it has none."""
    sealed = event.cursor_in if column == "cursor_in" else event.cursor_out
    if sealed is None:
        return None
    context = _context(scan, generation, shard, event.seq, column)
    return sealer.open(sealed, context=context).decode()


def _event(row: dict[str, Any]) -> Event:
    kept = {name: row[name] for name in Event.__dataclass_fields__ if name in row}
    return Event(**{**kept, "facts": parse_exact(row["facts"].encode()), "body": None})


def _facts_digest(facts: dict[str, Any]) -> bytes:
    return sha256(canonical_json(facts)).digest()


def _context(scan: str, generation: str, shard: int, seq: int, column: str) -> bytes:
    return f"{scan}/{generation}/{shard}/{seq}/{column}".encode()
