"""The `aws` protocol: any paginated operation of AWS, one page a call.

How an operation advances is taken from botocore's own paginator models, and the loop over the pages
is ours; `amazon.advancing` tells why. A position is the canonical JSON of the parameters that carry
the continuation (`{"ExclusiveStartKey": {...}}`, `{"KeyMarker": ..., "VersionIdMarker": ...}`).

Nothing of AWS holds a listing still, and no count it gives is one of the whole: `Count` and
`ScannedCount` of DynamoDB and `KeyCount` of S3 are of the page (API references of Scan and
ListObjectsV2 in botocore's models, 1.44.8, read 2026-11-30). Such a walk is `live`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.core.canonical import CanonicalFormError, leaf_hashes
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ContinuationConsumedError,
    ContractError,
    ProtocolError,
    TransientSourceError,
)
from scan_pipeline.core.page import Opening, Page, Position, Refusal
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.sources.amazon import advancing, pages
from scan_pipeline.sources.amazon.facts import AwsSource
from scan_pipeline.sources.amazon.operation import Operation, checked
from scan_pipeline.sources.amazon.pages import Reading
from scan_pipeline.sources.amazon.refusals import understand
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.resending import Resending
from scan_pipeline.sources.http.transport import Refused
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import Beside, RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

if TYPE_CHECKING:
    from scan_pipeline.sources.amazon.client import AwsClient, Called

REVISION = "aws/1"


class Aws(Source):
    """Walks an `AwsSource`."""

    def __init__(self, facts: AwsSource, surroundings: Surroundings) -> None:
        self._facts, self._surroundings = facts, surroundings
        self.adapter = AdapterRevision(name="aws", revision=REVISION)
        self._allowance = Allowance(clock=surroundings.clock)
        self._resending = Resending(
            surroundings.retries, sleep=surroundings.sleep, allowance=self._allowance
        )
        self._clients: dict[str, AwsClient] = {}
        self._checked: Operation | None = None
        self._last: tuple[bytes, tuple[Any, Reading]] | None = None

    @property
    def facts(self) -> AwsSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._allowance.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; see `Source.allow`.

        A call that was sent is bounded by `operation.retries.timeout`, between two of its bytes.
        """
        self._allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what tells one way of signing from another; STS tells the rest."""
        auth = self._facts.auth
        if auth is None:
            return None
        return auth.principal_bytes(self._surroundings.environ)

    def opening(self) -> Opening:
        """Hold the scan file against the operation's model, and return who STS says we are.

        Raises:
            ContractError: the operation is none, does not page, or does not take these parameters.
        """
        self._walkable()
        return self._identity()

    def closing(self, position: Position) -> Opening:
        """Return who STS says we are."""
        del position
        return self._identity()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`."""

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        return self._resending.send(lambda attempt: self._fetch(position, attempt, tell))

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        said, reading = self._opened(body)
        return pages.records_in(said, reading, record_field=self._facts.record_field)

    def beside(self, body: bytes) -> Iterator[Beside]:
        """Yield kinds of results that came beside the records and are not walked."""
        return pages.beside(*self._opened(body))

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            client.close()

    def _opened(self, body: bytes) -> tuple[Any, Reading]:
        """Take a body apart; one is asked for its records and then for what lies beside them."""
        if self._last is None or self._last[0] is not body:
            self._last = body, pages.opened(body)
        return self._last[1]

    def _fetch(self, position: Position, attempt: int, tell: Refused) -> Page:
        facts, clock, walkable = self._facts, self._surroundings.clock, self._walkable()
        params = dict(walkable.params)
        if position.token is not None:
            params |= advancing.asked_with(position.token, walkable.input)
        requested_at = clock()
        called = self._ask(
            self._client(facts.service, facts.endpoint_url),
            facts.operation,
            params,
            with_token=position.token is not None,
            tell=tell,
        )
        received_at = clock()
        try:
            following = advancing.continuation(
                called.parsed, paginator=walkable.paginator, facts=facts
            )
            body = pages.body_of(
                called.parsed,
                answer=walkable.output,
                reading=walkable.reading,
                paginator=walkable.paginator,
                parser=walkable.parser,
            )
            said, reading = pages.opened(body)
            self._check_shown(said)
            records = pages.records_in(said, reading, record_field=facts.record_field)
            told = pages.reported(said, reading, facts)
        except CanonicalFormError as error:
            tell(called.status, "body_unparsable", called.body_digest, received_at)
            raise ProtocolError("body_unparsable", f"the answer is no JSON: {error}") from error
        except ProtocolError as error:
            tell(called.status, error.code, called.body_digest, received_at)
            raise
        return Page(
            position=position,
            fingerprint=walkable.fingerprint,
            continuation=following,
            body=body,
            records=len(records),
            leaf_hashes=leaf_hashes(records),
            reported=replace(told, from_cache=called.from_cache),
            attempts=attempt,
            requested_at=requested_at,
            received_at=received_at,
        )

    def _ask(
        self,
        client: "AwsClient",
        operation: str,
        params: Mapping[str, Any],
        *,
        with_token: bool,
        tell: Refused,
    ) -> "Called":
        """Make a call once and return its answer, if it is no error."""
        from scan_pipeline.sources.amazon.client import AwsRefusedError  # noqa: PLC0415  # heavy

        clock = self._surroundings.clock
        self._allowance.check()
        try:
            return client.call(operation, params)
        except AwsRefusedError as error:
            meant = understand(error.error, facts=self._facts, with_token=with_token)
            tell(error.error.status or None, meant.reason, error.body_digest, clock())
            raise meant.error from None
        except TransientSourceError as error:
            tell(*self._answered(client, error.reason), clock())
            once_only = self._facts.continuation != "repeatable" and with_token
            if once_only and error.reason != "not_connected":
                raise ContinuationConsumedError(
                    f"{error}, and the continuation it was asked with works only once"
                ) from error
            raise
        except ProtocolError as error:
            tell(*self._answered(client, error.code), clock())
            raise
        except ContractError as error:
            if not with_token or isinstance(error, ConfigurationError):
                raise
            # The message would show the token; the rest of the request was taken before.
            tell(*self._answered(client, "continuation_invalid"), clock())
            raise ProtocolError(
                "continuation_invalid", "what the service gave to go on with makes no request"
            ) from None

    def _answered(self, client: "AwsClient", reason: str) -> tuple[int | None, str, bytes]:
        status, digest = client.refused_with()
        return status, reason, digest

    def _check_shown(self, said: Any) -> None:
        """Hold an answer against the values that every one must show."""
        for at, value in self._facts.shows.items():
            found = advancing.search(at, said)
            if type(found) is not type(value) or found != value:
                raise ProtocolError(
                    "request_changed",
                    f"the answer does not show {value!r} at {at}; expected it on every page",
                )

    def _walkable(self) -> Operation:
        """Return the operation, held against its model once."""
        if self._checked is None:
            client = self._client(self._facts.service, self._facts.endpoint_url)
            self._checked = checked(self._facts, client)
        return self._checked

    def _identity(self) -> Opening:
        asked = self._facts.identity
        if asked is None:
            return Opening()
        client = self._client("sts", asked.endpoint_url or self._facts.endpoint_url)
        try:
            said = self._resending.send(
                lambda _: self._ask(
                    client, "get_caller_identity", {}, with_token=False, tell=self.refused_aside
                )
            ).parsed
        except (AccessRefusedError, ProtocolError) as error:
            told = f"STS does not say who we are: {error}"
            told += ". Where there is no STS, write identity: null"
            if isinstance(error, AccessRefusedError):
                raise AccessRefusedError(told) from error
            raise ProtocolError(error.code, told) from error
        principal, tenant = said.get("Arn"), said.get("Account")
        if not isinstance(principal, str) or not principal or not isinstance(tenant, str):
            raise ProtocolError("reported_invalid", "STS names no Arn or no Account")
        principal = without_session(principal)
        if asked.expect is not None and principal != asked.expect:
            raise ProtocolError(
                "principal_changed",
                f"STS sees {principal}; expected {asked.expect}, as the scan file declares",
            )
        return Opening(principal=principal, tenant=tenant)

    def _client(self, service: str, endpoint_url: str | None) -> "AwsClient":
        """Return a client, made when first needed: later stages open sources and ask nothing.

        Raises:
            ConfigurationError: botocore is not installed.
        """
        if service not in self._clients:
            try:
                from scan_pipeline.sources.amazon.client import AwsClient  # noqa: PLC0415  # heavy
            except ModuleNotFoundError as error:
                raise ConfigurationError(
                    f"protocol aws needs {error.name}, which is not installed; expected "
                    "pip install 'scan-pipeline[aws]'"
                ) from error
            self._clients[service] = AwsClient(
                self._facts,
                service=service,
                endpoint_url=endpoint_url,
                surroundings=self._surroundings,
            )
        return self._clients[service]


def without_session(arn: str) -> str:
    """Return a principal without the name of its session.

    `arn:aws:sts::111122223333:assumed-role/Auditor/i-0123` is the role `Auditor`, as an instance or
    process calls itself; another process of the same role has the same rights
    (docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers, known, not opened).
    """
    head, role, rest = arn.partition(":assumed-role/")
    return f"{head}{role}{rest.rpartition('/')[0] or rest}" if role else arn


PROTOCOL: Final = Protocol(facts=AwsSource, open=Aws)
