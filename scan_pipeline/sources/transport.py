"""One way to send a request: fixed origin, bounded retries, every refused answer told.

Retries belong to one request. A wait that the source asks for is never shortened, and counts apart.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Generic, TypeVar

import httpx2
from pydantic import Field
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from scan_pipeline.core.contract import Retries
from scan_pipeline.core.errors import (
    ContinuationConsumedError,
    DestinationRefusedError,
    ProtocolError,
    SourceUnavailableError,
    TransientSourceError,
)
from scan_pipeline.core.value import record
from scan_pipeline.sources.addresses import origin_of, shown
from scan_pipeline.sources.envelope import parse_body
from scan_pipeline.sources.responses import Answer, ResponseClass, understand

T = TypeVar("T")

MAX_BODY: Final = 256 * 2**20
"""Largest answer that is read, in bytes."""


@record
class Call:
    """One HTTP request without its credentials."""

    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    method: Annotated[str, Field(pattern="^(GET|POST)$")] = "GET"
    content: bytes | None = None


@record
class Sent(Generic[T]):
    """What came of a call: the value read from its answer, sends, and times in UTC."""

    value: T
    attempts: int
    requested_at: datetime
    received_at: datetime


Refused = Callable[[int | None, str, bytes, datetime], None]
"""Told of each refused answer: status, reason, SHA-256 of its body, time."""

Credentials = Callable[[], Mapping[str, str]]
"""Makes the headers that carry secrets, when sending and not before."""


class Transport:
    """Sends calls to one origin.

    Args:
        origin: URL whose scheme, host and port every call must share.
        credentials: makes the secret headers.
        retries: bounds of sending one request again.
        responses: what statuses mean at this source, looked up first.
        inner: the HTTP transport below; None for the network.
        clock: time in UTC.
        sleep: waits so many seconds; may raise to end the walk.
    """

    def __init__(
        self,
        origin: str,
        *,
        credentials: Credentials,
        retries: Retries,
        responses: tuple[ResponseClass, ...],
        inner: httpx2.BaseTransport | None,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        self._origin = origin_of(origin)
        self._credentials, self._retries, self._responses = credentials, retries, responses
        self._clock, self._sleep = clock, sleep
        self._client = httpx2.Client(
            transport=None if inner is None else _Lent(inner),
            timeout=retries.timeout,
            follow_redirects=False,
            trust_env=inner is None,
        )
        self.waited = 0.0

    def send(
        self,
        call: Call,
        *,
        read: Callable[[Answer], T],
        refused: Refused,
        repeatable: bool = True,
    ) -> Sent[T]:
        """Send a call until it is answered, and read the answer.

        Args:
            call: the request.
            read: takes a successful answer apart; raises ProtocolError where it is none.
            refused: told of each refused answer.
            repeatable: whether the call may be sent again once bytes have left.

        Raises:
            DestinationRefusedError: the call or a redirect leaves the origin; nothing was sent
                there.
            SourceUnavailableError, AccessRefusedError, SnapshotExpiredError,
            ContinuationConsumedError, ProtocolError: see `Source.fetch`.
        """
        if origin_of(call.url) != self._origin:
            raise DestinationRefusedError(
                "destination_refused",
                f"the next request would go to {shown(call.url)}; expected {self._origin}",
            )
        attempts = 0

        def once() -> Sent[T]:
            nonlocal attempts
            attempts += 1
            return self._once(call, read, refused, repeatable, attempts)

        retrying = Retrying(
            sleep=self._sleep,
            stop=stop_after_attempt(self._retries.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(TransientSourceError),
            reraise=True,
        )
        try:
            return retrying(once)
        except TransientSourceError as error:
            raise SourceUnavailableError(
                f"{error}; gave up after {attempts} sends of one request"
            ) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _once(
        self,
        call: Call,
        read: Callable[[Answer], T],
        refused: Refused,
        repeatable: bool,
        attempts: int,
    ) -> Sent[T]:
        requested_at = self._clock()
        try:
            answer = self._exchange(call)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            refused(None, "not_connected", sha256().digest(), self._clock())
            raise TransientSourceError(
                "not_connected", f"no connection to {self._origin}: {type(error).__name__}"
            ) from error
        except httpx2.HTTPError as error:
            refused(None, "connection_lost", sha256().digest(), self._clock())
            if not repeatable:
                raise ContinuationConsumedError(
                    f"the answer of {self._origin} was lost after the request had left "
                    f"({type(error).__name__}), and its continuation works only once"
                ) from error
            raise TransientSourceError(
                "connection_lost", f"the answer of {self._origin} was lost: {type(error).__name__}"
            ) from error
        received_at = self._clock()
        digest = sha256(answer.body).digest()
        if not 200 <= answer.status < 300:
            told = understand(
                answer,
                origin=self._origin,
                responses=self._responses,
                repeatable=repeatable,
                now=received_at,
            )
            refused(answer.status, told.reason, digest, received_at)
            raise told.error
        try:
            value = read(answer)
        except ProtocolError as error:
            refused(answer.status, error.code, digest, received_at)
            raise
        return Sent(
            value=value, attempts=attempts, requested_at=requested_at, received_at=received_at
        )

    def _exchange(self, call: Call) -> Answer:
        request = self._client.build_request(
            call.method,
            httpx2.URL(call.url).copy_merge_params(list(call.params)) if call.params else call.url,
            headers={**dict(call.headers), **self._credentials()},
            content=call.content,
        )
        response = self._client.send(request, stream=True)
        try:
            chunks, size = [], 0
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > MAX_BODY:
                    raise ProtocolError(
                        "body_unparsable", f"the answer is larger than {MAX_BODY} bytes"
                    )
                chunks.append(chunk)
        finally:
            response.close()
        return Answer(status=response.status_code, headers=response.headers, body=b"".join(chunks))

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientSourceError) and error.wait is not None:
            self.waited += error.wait
            return error.wait
        return wait_random_exponential(multiplier=0.2, max=self._retries.max_wait)(state)


def read_json(answer: Answer) -> Any:
    """Read an answer as exact JSON; raises ProtocolError."""
    return parse_body(answer.body)


class _Lent(httpx2.BaseTransport):
    """A transport that belongs to whoever handed it in: closing the client leaves it open."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._inner.handle_request(request)
