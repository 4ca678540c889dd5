"""A source behind HTTP and JSON: everything but how to advance."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from scan_pipeline.core.canonical import digest_of, leaf_hashes
from scan_pipeline.core.contract import FieldPath
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, Opening, Page, Position, Refusal, Reported
from scan_pipeline.core.value import record
from scan_pipeline.sources.envelope import (
    ABSENT,
    Envelope,
    open_envelope,
    split_records,
    value_at,
)
from scan_pipeline.sources.http_facts import HttpFacts
from scan_pipeline.sources.responses import Answer
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.sources.transport import Call, Sent, Transport, read_json


@record
class Received:
    """A successful answer taken apart."""

    answer: Answer
    envelope: Envelope


class HttpSource(Source):
    """Asks for pages over HTTP; a protocol says how to ask for one and what follows it.

    Args:
        facts: the collection.
        surroundings: the world around it.
    """

    def __init__(self, facts: HttpFacts, surroundings: Surroundings) -> None:
        auth, environ = facts.auth, surroundings.environ
        self._http = facts
        self._transport = Transport(
            facts.url,
            credentials=lambda: auth.headers(environ) if auth else {},
            retries=surroundings.retries,
            responses=facts.responses,
            inner=surroundings.inner,
            clock=surroundings.clock,
            sleep=surroundings.sleep,
        )

    @abstractmethod
    def call(self, position: Position) -> Call:
        """Return the request for a page."""

    @abstractmethod
    def follows(self, received: Received, position: Position) -> Continuation:
        """Return what follows a page.

        Raises:
            ProtocolError: the answer says neither that something follows nor that nothing does.
        """

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._transport.waited

    def opening(self) -> Opening:
        """Return identity and high-water mark."""
        bound = self._http.high_water_mark
        principal, tenant = self._identity()
        return Opening(
            principal=principal,
            tenant=tenant,
            high_water_mark=None if bound is None else self._text(bound.url, bound.at),
        )

    def closing(self, position: Position) -> Opening:
        """Return identity, and the source's counts by partition under the same pin."""
        principal, tenant = self._identity()
        return Opening(
            principal=principal, tenant=tenant, partition_counts=self._partition_counts(position)
        )

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`."""
        once_only = self._http.continuation != "repeatable" and position.token is not None

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        sent = self._transport.send(
            self.call(position), read=self._read, refused=tell, repeatable=not once_only
        )
        try:
            return self._page(position, sent)
        except ProtocolError as error:
            body = sent.value.answer.body
            tell(sent.value.answer.status, error.code, sha256(body).digest(), sent.received_at)
            raise

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return split_records(body, records_at=self._http.records_at)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def frozen_params(self, position: Position) -> dict[str, str]:
        """Return the parameters that stand on every request: filter, page size, pin and bound."""
        params = dict(self._http.params)
        if self._http.page_size is not None:
            params[self._http.page_size.send_as] = str(self._http.page_size.value)
        return params | self._held_still(position)

    def _read(self, answer: Answer) -> Received:
        envelope = open_envelope(answer.body, records_at=self._http.records_at)
        self._refuse_errors(envelope.around)
        return Received(answer=answer, envelope=envelope)

    def _page(self, position: Position, sent: Sent[Received]) -> Page:
        envelope = sent.value.envelope
        return Page(
            position=position,
            fingerprint=self._fingerprint(position),
            continuation=self.follows(sent.value, position),
            body=sent.value.answer.body,
            records=len(envelope.records),
            leaf_hashes=leaf_hashes(envelope.records),
            reported=self._reported(envelope.around),
            attempts=sent.attempts,
            requested_at=sent.requested_at,
            received_at=sent.received_at,
        )

    def _held_still(self, position: Position) -> dict[str, str]:
        """Return the parameters that hold the collection still."""
        params: dict[str, str] = {}
        if self._http.snapshot is not None and position.pin is not None:
            params[self._http.snapshot.send_as] = position.pin
        if self._http.high_water_mark is not None and position.high_water_mark is not None:
            params[self._http.high_water_mark.send_as] = position.high_water_mark
        return params

    def _fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every request: all but cursor, pin and page size."""
        facts = self._http
        return digest_of(
            {
                "method": "GET",
                "url": facts.url,
                "params": dict(facts.params),
                "headers": dict(facts.headers),
                "auth": None if facts.auth is None else facts.auth.scheme,
                "high_water_mark": position.high_water_mark,
            }
        )

    def _refuse_errors(self, around: Any) -> None:
        for path in self._http.errors_at:
            if path == self._http.records_at[: len(path)]:
                continue
            value = value_at(around, path)
            if value is not ABSENT and value not in (None, False, "", [], {}):
                raise ProtocolError(
                    "error_envelope",
                    f"the answer holds an error at {'.'.join(path)} although its status says "
                    "success; expected records alone",
                )

    def _reported(self, around: Any) -> Reported:
        facts = self._http
        counted = None if facts.count is None else _count(around, facts.count.at)
        pin = None if facts.snapshot is None else value_at(around, facts.snapshot.at)
        if pin is ABSENT:
            pin = None
        if isinstance(pin, bool) or (pin is not None and not isinstance(pin, str | int)):
            raise ProtocolError("reported_invalid", "the version at snapshot.at is not a text")
        means = None if facts.count is None else facts.count.means
        return Reported(
            total=counted if means == "total" else None,
            remaining=counted if means == "remaining" else None,
            page=counted if means == "page" else None,
            pin=None if pin is None else str(pin),
        )

    def _identity(self) -> tuple[str | None, str | None]:
        facts = self._http.identity
        if facts is None:
            return None, None
        around = self._get(facts.url)
        principal = value_at(around, facts.at)
        tenant = ABSENT if facts.tenant_at is None else value_at(around, facts.tenant_at)
        if not isinstance(principal, str) or not principal:
            raise ProtocolError(
                "reported_invalid", f"no principal at {'.'.join(facts.at)} of {facts.url}"
            )
        return principal, tenant if isinstance(tenant, str) else None

    def _partition_counts(self, position: Position) -> dict[str, int] | None:
        facts = self._http.partition_counts
        if facts is None:
            return None
        params = {**self._http.params, **self._held_still(position)}
        counts = value_at(self._get(facts.url, params), facts.at)
        if isinstance(counts, list) and facts.value is not None and facts.count is not None:
            rows = [row for row in counts if isinstance(row, dict)]
            counts = {row.get(facts.value): row.get(facts.count) for row in rows}
        found: dict[str, int] = {}
        for value, number in counts.items() if isinstance(counts, dict) else [(None, None)]:
            if isinstance(number, bool) or not isinstance(number, int):
                raise ProtocolError(
                    "reported_invalid", f"no counts by partition at {'.'.join(facts.at)}"
                )
            found[str(value)] = number
        return found

    def _text(self, url: str, path: FieldPath) -> str:
        value = value_at(self._get(url), path)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise ProtocolError("reported_invalid", f"no value at {'.'.join(path)} of {url}")
        return str(value)

    def _get(self, url: str, params: Mapping[str, str] | None = None) -> Any:
        call = Call(
            url=url,
            params=tuple((params or {}).items()),
            headers=tuple(self._http.headers.items()),
        )
        return self._transport.send(call, read=read_json, refused=_untold).value


def _count(around: Any, path: FieldPath) -> int | None:
    value = value_at(around, path)
    if value is ABSENT or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ProtocolError(
            "reported_invalid", f"the count at {'.'.join(path)} is not a number of records"
        )
    return value


def _untold(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
    """Leave refusals of side questions out of the walk's events."""
