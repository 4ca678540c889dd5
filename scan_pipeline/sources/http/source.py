"""A source behind HTTP and JSON: everything but how to advance."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from scan_pipeline.core.canonical import canonical_json, leaf_hashes
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, Opening, Page, Position, Refusal
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import (
    ABSENT,
    Envelope,
    open_envelope,
    parse_body,
    split_records,
    value_at,
)
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.held_credentials import HeldCredentials
from scan_pipeline.sources.http.nested_lists import cut_lists
from scan_pipeline.sources.http.network import Network
from scan_pipeline.sources.http.record_formats import records_of
from scan_pipeline.sources.http.reported import reported
from scan_pipeline.sources.http.request import FrozenRequest
from scan_pipeline.sources.http.responses import Answer
from scan_pipeline.sources.http.same_identity import SameIdentity
from scan_pipeline.sources.http.side_questions import SideQuestions
from scan_pipeline.sources.http.signing_in import open_transport
from scan_pipeline.sources.http.transport import Call, Sent, read_json
from scan_pipeline.sources.source import Noticed, RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings


@record
class Received:
    """A successful answer taken apart.

    Attributes:
        answer: as it came.
        records: each record's bytes, in page order.
        around: the parsed body, its record list empty.
    """

    answer: Answer
    records: Sequence[bytes]
    around: Any


class HttpSource(Source):
    """Asks for pages over HTTP; a protocol says how to ask for one and what follows it.

    Args:
        facts: the collection.
        surroundings: the world around it.
        origins: origins that links may lead to, beside the source's own.
        credentials: makes the secret headers; None for those that the facts name.
        network: the ways out of here; None for the common ones.
    """

    def __init__(
        self,
        facts: HttpFacts,
        surroundings: Surroundings,
        *,
        origins: tuple[str, ...] = (),
        credentials: HeldCredentials | None = None,
        network: Network | None = None,
    ) -> None:
        self._http, self._environ = facts, surroundings.environ
        self.request = FrozenRequest(facts)
        self._transport = open_transport(
            facts.url,
            surroundings,
            auth=facts.auth,
            credentials=credentials,
            responses=facts.responses,
            network=network or facts.network,
            origins=origins,
        )
        self._aside = SideQuestions(facts, self._transport, refused=self.refused_aside)
        self._identity = SameIdentity(
            self._aside.identity,
            changes=lambda: self._transport.credential_changes,
            credential=self.principal,
        )

    @property
    def credential_changes(self) -> int:
        """Return how often the secret headers have become others since the first request."""
        return self._transport.credential_changes

    @abstractmethod
    def call(self, position: Position) -> Call:
        """Return the request for a page."""

    @abstractmethod
    def follows(self, received: Received, position: Position) -> Continuation:
        """Return what follows a page.

        Raises:
            ProtocolError: the answer says neither that something follows nor that nothing does.
        """

    def unrepeated(self, continuation: Continuation) -> tuple[str, ...]:
        """Return the parameters of ours that a continuation, an address, does not repeat."""
        del continuation
        return ()

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._transport.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; see `Source.allow`."""
        self._transport.allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what the scan's credential says of who asks."""
        auth = self._http.auth
        return None if auth is None else auth.principal_bytes(self._environ)

    def opening(self) -> Opening:
        """Return the change token, and what else is to be known before the first page."""
        token, is_number = self._aside.change_token()  # first: what is asked after it lies within
        principal, tenant = self._identity.opened()
        return Opening(
            principal=principal,
            tenant=tenant,
            high_water_mark=self._aside.high_water_mark(),
            change_token=token,
            change_token_is_number=is_number,
        )

    def closing(self, position: Position) -> Opening:
        """Return identity, counts by partition under the same pin, and the change token."""
        principal, tenant = self._aside.identity()
        counts = self._aside.partition_counts(self.request.held_still(position))
        token, is_number = self._aside.change_token()  # last: what was asked before it lies within
        return Opening(
            principal=principal,
            tenant=tenant,
            partition_counts=counts,
            change_token=token,
            change_token_is_number=is_number,
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
        self._identity.check()
        try:
            return self._page(position, sent)
        except ProtocolError as error:
            body = sent.value.answer.body
            tell(sent.value.answer.status, error.code, sha256(body).digest(), sent.received_at)
            raise

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        if self._http.records_format != "json":
            return self._kept(records_of(body, self._http.records_format))
        try:
            return self._kept(split_records(body, records_at=self._http.records_at))
        except ProtocolError as error:
            if error.code == "records_missing" and self._omitted(parse_body(body)):
                return ()
            raise

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield each list inside a record that the source may have cut."""
        return cut_lists(records, self._http.nested)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _read(self, answer: Answer) -> Received:
        if self._http.records_format != "json":
            return Received(answer=answer, records=self.records(answer.body), around={})
        try:
            envelope = open_envelope(answer.body, records_at=self._http.records_at)
        except ProtocolError as error:
            if error.code != "records_missing":
                raise
            around = read_json(answer)
            self._refuse_errors(around)  # an error in their place says more
            if not self._omitted(around):
                raise
            envelope = Envelope(records=(), around=around)
        self._refuse_errors(envelope.around)
        return Received(answer=answer, records=self._kept(envelope.records), around=envelope.around)

    def _omitted(self, around: Any) -> bool:
        """Say whether an answer leaves out its list of records in the documented way."""
        path = self._http.records_at
        if not self._http.records_omitted_when_empty or not path:
            return False
        return isinstance(value_at(around, path[:-1]), dict) and value_at(around, path) is ABSENT

    def _kept(self, records: Sequence[bytes]) -> Sequence[bytes]:
        """Return records as they are kept: bare values become objects of one field."""
        name = self._http.record_field
        if name is None:
            return records
        before = b"{" + canonical_json(name) + b":"
        return [before + each + b"}" for each in records]

    def _page(self, position: Position, sent: Sent[Received]) -> Page:
        received = sent.value
        continuation = self.follows(received, position)
        told = reported(received.around, received.answer.headers, self._http)
        return Page(
            position=replace(position, pin=self.request.named_pin(position)),
            fingerprint=self.request.fingerprint(position),
            continuation=continuation,
            body=received.answer.body,
            records=len(received.records),
            leaf_hashes=leaf_hashes(received.records),
            reported=replace(
                told,
                unrepeated=self.unrepeated(continuation),
                from_cache=received.answer.from_cache,
                credential_changed=self._identity.lost,
            ),
            attempts=sent.attempts,
            requested_at=sent.requested_at,
            received_at=sent.received_at,
        )

    def _refuse_errors(self, around: Any) -> None:
        success = self._http.success
        if success is not None and value_at(around, success.at) != success.equals:
            raise ProtocolError(
                "error_envelope",
                f"{'.'.join(success.at)} does not say success although the status does; expected "
                f"{success.equals!r}",
            )
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
