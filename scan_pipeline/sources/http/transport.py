"""One way to send a request: fixed origin, bounded retries, every refused answer told.

Retries belong to one request. A wait that the source asks for is never shortened, and counts apart.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Final, Generic, TypeVar

import httpx2
from pydantic import Field

from scan_pipeline.core.contract import Retries
from scan_pipeline.core.errors import (
    ContinuationConsumedError,
    ProtocolError,
    TransientSourceError,
)
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.content_coding import ASKED_FOR, decoded
from scan_pipeline.sources.http.destinations import Destinations, literal_only, look_up
from scan_pipeline.sources.http.envelope import parse_body
from scan_pipeline.sources.http.resending import Resending
from scan_pipeline.sources.http.responses import Answer, ResponseClass, declared_class, understand

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
    """Sends calls to one origin, and without credentials to others that its contract names.

    Args:
        origin: URL whose scheme, host and port every call must share.
        origins: other origins that a call may go to.
        credentials: makes the secret headers.
        retries: bounds of sending one request again.
        responses: what statuses mean at this source, looked up first.
        inner: the HTTP transport below; None for the network. It belongs to who made it and
            stays open.
        clock: time in UTC.
        sleep: waits so many seconds; may raise to end the walk.
    """

    def __init__(
        self,
        origin: str,
        *,
        origins: tuple[str, ...] = (),
        credentials: Credentials,
        retries: Retries,
        responses: tuple[ResponseClass, ...],
        inner: httpx2.BaseTransport | None,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        self._destinations = Destinations(
            origin, others=origins, resolve=look_up if inner is None else literal_only
        )
        self._origin = self._destinations.origin
        self._credentials, self._retries, self._responses = credentials, retries, responses
        self._clock, self._sleep = clock, sleep
        self._inner = inner
        self._resending = Resending(retries, sleep=sleep)

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._resending.waited

    @cached_property
    def _client(self) -> httpx2.Client:
        """The client, made for the first request: later stages open sources and ask nothing."""
        return httpx2.Client(
            transport=None if self._inner is None else _Lent(self._inner),
            timeout=self._retries.timeout,
            follow_redirects=False,
            trust_env=self._inner is None,
        )

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
        at_home = self._destinations.is_home(call.url)
        return self._resending.send(
            lambda attempt: self._once(
                call, read=read, refused=refused, repeatable=repeatable, at_home=at_home, n=attempt
            )
        )

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def _once(
        self,
        call: Call,
        *,
        read: Callable[[Answer], T],
        refused: Refused,
        repeatable: bool,
        at_home: bool,
        n: int,
    ) -> Sent[T]:
        requested_at = self._clock()
        try:
            answer = self._exchange(call, at_home=at_home)
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
        except ProtocolError as error:
            refused(None, error.code, sha256().digest(), self._clock())
            raise
        received_at = self._clock()
        broken: ProtocolError | None = None
        if 200 <= answer.status < 300:
            try:
                value = read(answer)
            except ProtocolError as error:
                broken = error
            else:
                return Sent(
                    value=value, attempts=n, requested_at=requested_at, received_at=received_at
                )
        digest = sha256(answer.body).digest()
        if broken is not None and declared_class(answer, self._responses) is None:
            refused(answer.status, broken.code, digest, received_at)
            raise broken
        told = understand(
            answer,
            origin=self._origin,
            responses=self._responses,
            repeatable=repeatable,
            now=received_at,
        )
        refused(answer.status, told.reason, digest, received_at)
        raise told.error from broken

    def _exchange(self, call: Call, *, at_home: bool) -> Answer:
        secret = self._credentials() if at_home else {}
        try:
            url = httpx2.URL(call.url)
            request = self._client.build_request(
                call.method,
                url.copy_merge_params(list(call.params)) if call.params else url,
                headers={"accept-encoding": ASKED_FOR, **dict(call.headers), **secret},
                content=call.content,
            )
        except (httpx2.InvalidURL, UnicodeError) as error:
            # A token, pin or link of the source's may be no text that HTTP can carry.
            raise ProtocolError(
                "continuation_invalid",
                f"what the source gave to go on with makes no request: {type(error).__name__}",
            ) from None
        response = self._client.send(request, stream=True)
        try:
            chunks, size = [], 0
            for chunk in decoded(response):
                size += len(chunk)
                if size > MAX_BODY:
                    raise ProtocolError(
                        "body_unparsable", f"the answer is larger than {MAX_BODY} bytes"
                    )
                chunks.append(chunk)
        finally:
            response.close()
        return Answer(status=response.status_code, headers=response.headers, body=b"".join(chunks))


def read_json(answer: Answer) -> Any:
    """Read an answer as exact JSON; raises ProtocolError."""
    return parse_body(answer.body)


class _Lent(httpx2.BaseTransport):
    """A transport that belongs to whoever handed it in: closing the client leaves it open."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._inner.handle_request(request)
