"""The pages of a walk that broke off, read back as the walk admitted them."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from scan_pipeline.core.canonical import items_digest, leaf_hashes
from scan_pipeline.core.chain import checkpoint_digest, cursor_digest, end_digest
from scan_pipeline.core.checkpoint import CHECKPOINT
from scan_pipeline.core.errors import EvidenceError, TamperedError
from scan_pipeline.core.page import Continuation, End, Next, Page, Position, Reported
from scan_pipeline.sources.source import Source
from scan_pipeline.store.events import Event, open_token
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.sealing import Sealer


class StoredPages:
    """Reads the admitted pages of one shard of one generation, bodies and tokens opened.

    Args:
        store: the generation's tables.
        source: knows how to take a body apart; nothing is asked of it.
        shard: shard of the walk.
        since: checkpoint at which it began, None where it asked for everything.
    """

    def __init__(
        self, store: GenerationStore, *, source: Source, shard: int, since: str | None = None
    ) -> None:
        self._store, self._source, self._shard = store, source, shard
        self._since = since

    def pages(self, events: Sequence[Event]) -> Iterator[Page]:
        """Yield the pages of these events, in order.

        Raises:
            TamperedError: a page is missing or moved, or its body, records, counts or end are not
                those that its event was linked with.
        """
        sealer = self._store.sealer()
        bodies = self._store.bodies(self._shard)
        for event in events:
            number, body = next(bodies, (None, b""))
            if number != event.page:
                raise TamperedError(
                    "pages", f"found the body of page {number}; expected that of page {event.page}"
                )
            yield self._page(event, body, sealer)

    def position(self, event: Event) -> Position:
        """Return what was asked for to get a page."""
        return self._position(event, self._store.sealer())

    def token_after(self, event: Event) -> str | None:
        """Return the continuation that a page named, None where it named none."""
        return self._token(event, self._store.sealer(), "cursor_out")

    def _page(self, event: Event, body: bytes, sealer: Sealer) -> Page:
        if sha256(body).digest() != event.body_digest:
            raise TamperedError("pages", f"the body of page {event.page} is not the admitted one")
        try:
            leaves = leaf_hashes(self._source.records(body))
        except EvidenceError as error:
            raise TamperedError(
                "pages", f"page {event.page} is no longer a page: {error}"
            ) from error
        facts = event.facts
        counted = (event.returned, len(leaves), event.body_bytes)
        expected = (facts["returned"], facts["returned"], len(body))
        if items_digest(leaves) != event.items_digest or counted != expected:
            raise TamperedError("pages", f"the records of page {event.page} are not its own")
        position = self._position(event, sealer)
        return Page(
            position=position,
            fingerprint=bytes.fromhex(facts["fingerprint"]),
            continuation=self._continuation(event, sealer, body, position),
            body=body,
            records=len(leaves),
            leaf_hashes=leaves,
            reported=Reported(
                total=facts["total"],
                remaining=facts["remaining"],
                page=facts["page"],
                pin=facts["pin"],
                pin_is_number=facts.get("pin_is_number", False),
            ),
            attempts=event.attempts or 1,
            requested_at=event.requested_at or event.received_at,
            received_at=event.received_at,
        )

    def _position(self, event: Event, sealer: Sealer) -> Position:
        return Position(
            token=self._token(event, sealer, "cursor_in"),
            pin=event.facts["sent_pin"],
            since=self._since,
        )

    def _continuation(
        self, event: Event, sealer: Sealer, body: bytes, position: Position
    ) -> Continuation:
        token, signal = self._token(event, sealer, "cursor_out"), event.end_signal
        match token, signal:
            case None, str() if end_digest(signal) == event.cursor_out_digest:
                return End(signal=signal, checkpoint=self._checkpoint(event, body, position))
            case str(), None if cursor_digest(token) == event.cursor_out_digest:
                return Next(token=token)
            case _:
                pass
        raise TamperedError("pages", f"what follows page {event.page} is not what was admitted")

    def _checkpoint(self, event: Event, body: bytes, position: Position) -> str | None:
        found = self._source.checkpoint_in(body, position)
        digest = None if found is None else checkpoint_digest(found)
        if digest != event.facts.get(CHECKPOINT):
            raise TamperedError("pages", f"page {event.page} names another checkpoint than it did")
        return found

    def _token(self, event: Event, sealer: Sealer, column: str) -> str | None:
        return open_token(
            event,
            scan=self._store.scan,
            generation=self._store.generation,
            shard=self._shard,
            sealer=sealer,
            column=column,
        )
