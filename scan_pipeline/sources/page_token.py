"""The `page_token` protocol: the next request repeats the first one and adds an opaque token.

The shape is that of AIP-158 (google.aip.dev/158, read 2026-11-30): pages may be short or empty
before the end, tokens are opaque, and every parameter but the page size stays as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, Literal

import httpx2

from scan_pipeline.core.canonical import digest_of, leaf_hashes
from scan_pipeline.core.contract import FieldPath, PositiveInt, Retries, SourceFacts
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Opening, Page, Position, Refusal, Reported
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.end_signals import NextFacts, continuation
from scan_pipeline.sources.envelope import ABSENT, Envelope, open_envelope, split_records, value_at
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.transport import (
    Answer,
    Call,
    ResponseClass,
    Sent,
    Transport,
    read_json,
)

REVISION = "page_token/1"


@record
class PageSize:
    """How many records a page is asked to hold; the source may send fewer."""

    send_as: str
    value: PositiveInt


@record
class IdentityFacts:
    """Where the source says who we are."""

    url: str
    at: FieldPath
    tenant_at: FieldPath | None = None


@record
class PartitionCountsFacts:
    """Where the source counts by partition.

    At `at` stands an object from value to number, or a list of rows whose members `value` and
    `count` name the two.
    """

    url: str
    at: FieldPath
    value: str | None = None
    count: str | None = None


@record
class PageTokenSource(SourceFacts):
    """The facts of one collection behind a page token.

    Attributes:
        url: the collection.
        params: filter, order and projection, sent with every request.
        headers: headers without secrets, sent with every request.
        auth: how to prove who we are; secrets are references.
        records_at: where the records lie.
        page_size: how many to ask for.
        next: where the token lies and what says the end.
        identity: where the source says who we are.
        partition_counts: where it counts by partition.
        errors_at: fields whose presence says that an answer is an error whatever its status.
        responses: what statuses mean here, where they differ from HTTP.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth")

    protocol: Literal["page_token"]
    url: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Auth | None = None
    records_at: FieldPath
    page_size: PageSize | None = None
    next: NextFacts
    identity: IdentityFacts | None = None
    partition_counts: PartitionCountsFacts | None = None
    errors_at: tuple[FieldPath, ...] = (("error",), ("errors",))
    responses: tuple[ResponseClass, ...] = ()

    @property
    def tool(self) -> str:
        """Return the collection's address without its query."""
        return f"GET {httpx2.URL(self.url).copy_with(query=None)}"


class PageToken(Source):
    """Walks a `PageTokenSource`.

    Args:
        facts: the collection.
        retries: bounds of sending one request again.
        environ: where secrets are looked up when sending.
        inner: the HTTP transport; None for the network.
        clock: time in UTC.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        facts: PageTokenSource,
        *,
        retries: Retries,
        environ: Mapping[str, str],
        inner: httpx2.BaseTransport | None,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        self._facts = facts
        self.adapter = AdapterRevision(name="page_token", revision=REVISION)
        self._clock = clock
        self._transport = Transport(
            facts.url,
            credentials=lambda: facts.auth.headers(environ) if facts.auth else {},
            retries=retries,
            responses=facts.responses,
            inner=inner,
            clock=clock,
            sleep=sleep,
        )

    @property
    def facts(self) -> PageTokenSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._transport.waited

    def opening(self) -> Opening:
        """Return identity and high-water mark."""
        bound = self.facts.high_water_mark
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
            principal=principal,
            tenant=tenant,
            partition_counts=self._partition_counts(position),
        )

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`."""
        single = self.facts.continuation != "repeatable" and position.token is not None

        def read(answer: Answer) -> tuple[bytes, Envelope]:
            envelope = open_envelope(answer.body, records_at=self.facts.records_at)
            self._refuse_errors(envelope.around)
            return answer.body, envelope

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        sent = self._transport.send(
            self._call(position), read=read, refused=tell, repeatable=not single
        )
        try:
            return self._page(position, sent)
        except ProtocolError as error:
            tell(200, error.code, sha256(sent.value[0]).digest(), sent.received_at)
            raise

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return split_records(body, records_at=self.facts.records_at)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _page(self, position: Position, sent: Sent[tuple[bytes, Envelope]]) -> Page:
        body, envelope = sent.value
        return Page(
            position=position,
            fingerprint=self._fingerprint(position),
            continuation=continuation(
                envelope.around, self.facts.next, records=len(envelope.records)
            ),
            body=body,
            records=len(envelope.records),
            leaf_hashes=leaf_hashes(envelope.records),
            reported=self._reported(envelope.around),
            attempts=sent.attempts,
            requested_at=sent.requested_at,
            received_at=sent.received_at,
        )

    def _call(self, position: Position) -> Call:
        facts, params = self.facts, dict(self.facts.params)
        if facts.page_size is not None:
            params[facts.page_size.send_as] = str(facts.page_size.value)
        params |= self._held_still(position)
        token = position.token if position.token is not None else facts.next.first
        if token is not None:
            params[facts.next.send_as] = token
        return Call(
            url=facts.url, params=tuple(params.items()), headers=tuple(facts.headers.items())
        )

    def _held_still(self, position: Position) -> dict[str, str]:
        """Return the parameters that hold the collection still."""
        params: dict[str, str] = {}
        if self.facts.snapshot is not None and position.pin is not None:
            params[self.facts.snapshot.send_as] = position.pin
        if self.facts.high_water_mark is not None and position.high_water_mark is not None:
            params[self.facts.high_water_mark.send_as] = position.high_water_mark
        return params

    def _fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every request: all but cursor, pin and page size."""
        facts = self.facts
        auth = None if facts.auth is None else facts.auth.scheme
        return digest_of(
            {
                "method": "GET",
                "url": facts.url,
                "params": dict(facts.params),
                "headers": dict(facts.headers),
                "auth": auth,
                "high_water_mark": position.high_water_mark,
            }
        )

    def _refuse_errors(self, around: Any) -> None:
        for path in self.facts.errors_at:
            if path == self.facts.records_at[: len(path)]:
                continue
            value = value_at(around, path)
            if value is not ABSENT and value not in (None, False, "", [], {}):
                raise ProtocolError(
                    "error_envelope",
                    f"the answer holds an error at {'.'.join(path)} although its status says "
                    "success; expected records alone",
                )

    def _reported(self, around: Any) -> Reported:
        facts = self.facts
        counted = None if facts.count is None else self._count(around, facts.count.at)
        pin = None if facts.snapshot is None else value_at(around, facts.snapshot.at)
        if pin is ABSENT:
            pin = None
        if pin is not None and not isinstance(pin, str | int):
            raise ProtocolError("reported_invalid", "the version at snapshot.at is not a text")
        means = None if facts.count is None else facts.count.means
        return Reported(
            total=counted if means == "total" else None,
            remaining=counted if means == "remaining" else None,
            page=counted if means == "page" else None,
            pin=None if pin is None else str(pin),
        )

    def _count(self, around: Any, path: FieldPath) -> int | None:
        value = value_at(around, path)
        if value is ABSENT or value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ProtocolError(
                "reported_invalid",
                f"the count at {'.'.join(path)} is not a number of records",
            )
        return value

    def _identity(self) -> tuple[str | None, str | None]:
        facts = self.facts.identity
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
        facts = self.facts.partition_counts
        if facts is None:
            return None
        params = {**self.facts.params, **self._held_still(position)}
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
            headers=tuple(self.facts.headers.items()),
        )
        return self._transport.send(call, read=read_json, refused=_untold).value


def _untold(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
    """Leave refusals of side questions out of the walk's events."""
