"""One way to send a request: fixed origin, bounded retries, every refused answer told.

Retries belong to one request. `Retry-After` is honoured in both its forms (RFC 9110, section
10.2.3, read 2026-11-30); a wait the source asks for is never shortened: past
`MAX_DECLARED_WAIT` the request fails instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import httpx2
from pydantic import Field
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from scan_pipeline.core.contract import FieldPath, Retries
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ContinuationConsumedError,
    DestinationRefusedError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    TransientSourceError,
)
from scan_pipeline.core.value import record
from scan_pipeline.sources.envelope import parse_body, value_at

T = TypeVar("T")

MAX_DECLARED_WAIT: Final = 3600.0
"""Longest wait a source may ask of us, in seconds."""

MAX_BODY: Final = 256 * 2**20
"""Largest answer that is read, in bytes."""

Means = Literal["wait", "retry", "refused", "expired", "consumed"]


@record
class BodyMatch:
    """A value in an error body that tells one refusal from another."""

    at: FieldPath
    equals: str | int | bool


@record
class ResponseClass:
    """What a status means at this source, where it differs from HTTP's own meaning.

    Attributes:
        status: HTTP status.
        header: headers that must have these values too.
        body: value in the error body that must be there too.
        means: `wait` and `retry` send again, `refused` ends for lack of rights, `expired` ends
            the generation, `consumed` says a single-use continuation is spent.
        wait_until: header with the epoch second until which to wait, e.g. `x-ratelimit-reset`.
    """

    status: int
    header: Mapping[str, str] = field(default_factory=dict[str, str])
    body: BodyMatch | None = None
    means: Means
    wait_until: str | None = None


@record
class Call:
    """One HTTP request without its credentials."""

    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    method: Annotated[str, Field(pattern="^(GET|POST)$")] = "GET"
    content: bytes | None = None


@record
class Answer:
    """One complete HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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
        self._origin = _origin(origin)
        self._credentials, self._retries, self._responses = credentials, retries, responses
        self._clock, self._sleep = clock, sleep
        self._client = httpx2.Client(
            transport=inner,
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
        if _origin(call.url) != self._origin:
            raise DestinationRefusedError(
                "destination_refused",
                f"the next request would go to {_shown(call.url)}; expected {self._origin}",
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
            reason, error = self._refusal(answer, repeatable)
            refused(answer.status, reason, digest, received_at)
            raise error
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

    def _refusal(self, answer: Answer, repeatable: bool) -> tuple[str, Exception]:
        """Return the reason word and the error for an answer without success."""
        status, means, until = answer.status, _http_meaning(answer.status), None
        for each in self._responses:
            if _matches(each, answer):
                means, until = each.means, each.wait_until
                break
        where = f"{self._origin} answered {status}"
        match means:
            case "wait":
                wait = _declared_wait(answer.headers, until, self._clock())
                if wait is not None and wait > MAX_DECLARED_WAIT:
                    return "wait", SourceUnavailableError(
                        f"{where} and asks for a wait of {wait:.0f} s; expected at most "
                        f"{MAX_DECLARED_WAIT:.0f} s. Begin a new generation after that time"
                    )
                return "wait", TransientSourceError("wait", where, wait=wait)
            case "retry" if repeatable:
                wait = _declared_wait(answer.headers, until, self._clock())
                return "server_error", TransientSourceError("server_error", where, wait=wait)
            case "retry":
                return "server_error", ContinuationConsumedError(
                    f"{where}, and the continuation it was asked with works only once"
                )
            case "refused":
                return "access_refused", AccessRefusedError(
                    f"{where}; expected rights to read. Check the credentials the scan file names"
                )
            case "expired":
                return "expired", SnapshotExpiredError(
                    f"{where}: the version or continuation is gone; a new generation must begin"
                )
            case "consumed":
                return "consumed", ContinuationConsumedError(f"{where}: the continuation is spent")
            case "redirect":
                return "redirect", DestinationRefusedError(
                    "destination_refused",
                    f"{where} and points to {_shown(answer.headers.get('location', ''))}; "
                    "redirects are not followed. Name the right address in the scan file",
                )
            case _:
                return "rejected", ProtocolError(
                    "request_rejected", f"{where} to a request that should be right"
                )

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientSourceError) and error.wait is not None:
            self.waited += error.wait
            return error.wait
        return wait_random_exponential(multiplier=0.2, max=self._retries.max_wait)(state)


def read_json(answer: Answer) -> Any:
    """Read an answer as exact JSON; raises ProtocolError."""
    return parse_body(answer.body)


def _http_meaning(status: int) -> str:
    if 300 <= status < 400:
        return "redirect"
    known = {
        401: "refused",
        403: "refused",
        408: "retry",
        410: "expired",
        425: "retry",
        429: "wait",
    }
    return known.get(status, "retry" if status in (500, 502, 503, 504) else "rejected")


def _matches(each: ResponseClass, answer: Answer) -> bool:
    if each.status != answer.status:
        return False
    if any(answer.headers.get(name) != value for name, value in each.header.items()):
        return False
    if each.body is None:
        return True
    try:
        return value_at(parse_body(answer.body), each.body.at) == each.body.equals
    except ProtocolError:
        return False


def _declared_wait(headers: Mapping[str, str], until: str | None, now: datetime) -> float | None:
    """Return the wait a source asks for, in seconds, None where it names none."""
    if until is not None and (epoch := headers.get(until)):
        try:
            return max(0.0, float(epoch) - now.timestamp())
        except ValueError:
            return None
    after = headers.get("retry-after")
    if after is None:
        return None
    if after.strip().isdigit():
        return float(after)
    try:
        when = parsedate_to_datetime(after)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


def _origin(url: str) -> str:
    parsed = httpx2.URL(url)
    if not parsed.scheme or not parsed.host:
        raise ConfigurationError(
            f"{_shown(url)!r} is not an absolute URL; expected scheme://host/path"
        )
    ports = {"http": 80, "https": 443}
    port = parsed.port or ports.get(parsed.scheme)
    return f"{parsed.scheme}://{parsed.host}" + (f":{port}" if port else "")


def _shown(url: str) -> str:
    """Return a URL fit for messages: no query, no user, no fragment."""
    parsed = httpx2.URL(url)
    return str(parsed.copy_with(query=None, fragment=None, userinfo=b""))
