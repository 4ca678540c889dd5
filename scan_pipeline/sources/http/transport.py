"""One way to send a request: fixed origin, bounded retries, every refused answer told.

Retries belong to one request. A wait that the source asks for is never shortened, and counts apart;
see `allowance` for how long it may be. Only a status of 200 is a page: the others that mean success
say that the answer is none (202, 204), was changed on the way (203) or is a part of one (206; RFC
9110, section 15.3, read 2026-11-30). Credentials that a source calls worn out are made anew, once a
request.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Generic, TypeVar

import httpx2

from scan_pipeline.core.errors import (
    ContinuationConsumedError,
    ProtocolError,
    ScanPipelineError,
    StaleCredentialsError,
    TransientSourceError,
)
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.connecting import not_connected
from scan_pipeline.sources.http.destinations import Destinations, literal_only, look_up
from scan_pipeline.sources.http.envelope import parse_body
from scan_pipeline.sources.http.exchange import Call, Exchange
from scan_pipeline.sources.http.held_credentials import HeldCredentials
from scan_pipeline.sources.http.network import Network
from scan_pipeline.sources.http.resending import Resending
from scan_pipeline.sources.http.responses import Answer, ResponseClass, declared_class, understand

T = TypeVar("T")


@record
class Sent(Generic[T]):
    """What came of a call: the value read from its answer, sends, and times in UTC."""

    value: T
    attempts: int
    requested_at: datetime
    received_at: datetime

    def after(self, attempts: int) -> "Sent[T]":
        """Return the same, as what came of so many sends."""
        return replace(self, attempts=attempts)


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
        network: the ways out of here; None for what the variables of this process say.
        allowance: how long the walk may still ask; None for one of its own.
        pace: seconds to wait before the next request to a host, by a budget; None for none.
    """

    def __init__(
        self,
        origin: str,
        *,
        origins: tuple[str, ...] = (),
        credentials: Credentials | HeldCredentials,
        retries: Retries,
        responses: tuple[ResponseClass, ...],
        inner: httpx2.BaseTransport | None,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
        network: Network | None = None,
        allowance: Allowance | None = None,
        pace: Callable[[str], float] | None = None,
    ) -> None:
        self._destinations = Destinations(
            origin, others=origins, resolve=look_up if inner is None else literal_only
        )
        self._origin = self._destinations.origin
        self._held = _held(credentials)
        self._responses, self._clock, self._sleep, self._pace = responses, clock, sleep, pace
        self.allowance = allowance or Allowance(clock=clock)
        self._exchange = Exchange(
            retries=retries, inner=inner, network=network, allowance=self.allowance
        )
        self._resending = Resending(retries, sleep=sleep, allowance=self.allowance)

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self.allowance.waited

    @property
    def credential_changes(self) -> int:
        """Return how often the secret headers have become others since the first request."""
        return self._held.changes

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
            ContinuationConsumedError, ProtocolError, TimeLimitError: see `Source.fetch`.
        """
        at_home = self._destinations.is_home(call.url)
        renewed = 0

        def once(attempt: int) -> Sent[T]:
            nonlocal renewed
            try:
                return self._once(
                    call, read=read, refused=refused, repeatable=repeatable, at_home=at_home
                ).after(attempt + renewed)
            except StaleCredentialsError:
                # Refused before it was looked at: no continuation is used up by that.
                if renewed or not at_home or not self._held.renew():
                    raise
                renewed = 1
                return once(attempt)

        return self._resending.send(once)

    def close(self) -> None:
        """Close the connections."""
        self._exchange.close()
        self._held.close()

    def _once(
        self,
        call: Call,
        *,
        read: Callable[[Answer], T],
        refused: Refused,
        repeatable: bool,
        at_home: bool,
    ) -> Sent[T]:
        secret = self._held.headers() if at_home else {}
        self._keep_pace(call)
        self.allowance.check()
        requested_at = self._clock()
        try:
            answer = self._exchange.ask(call, secret=secret)
        except httpx2.HTTPError as error:
            raise self._lost(error, refused=refused, repeatable=repeatable) from error
        except ProtocolError as error:
            refused(None, error.code, sha256().digest(), self._clock())
            raise
        received_at = self._clock()
        broken: ProtocolError | None = None
        if answer.status in call.success:
            try:
                value = read(answer)
            except ProtocolError as error:
                broken = error
            else:
                return Sent(
                    value=value, attempts=1, requested_at=requested_at, received_at=received_at
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

    def _keep_pace(self, call: Call) -> None:
        wait = 0.0 if self._pace is None else self._pace(httpx2.URL(call.url).host)
        if wait > 0:
            self.allowance.declared_wait(wait, told="operation.rate")
            self._sleep(wait)

    def _lost(
        self, error: httpx2.HTTPError, *, refused: Refused, repeatable: bool
    ) -> ScanPipelineError:
        """Tell of an answer that never came whole, and return the error that it comes to."""
        before = not_connected(error, origin=self._origin)
        reason = "not_connected" if before is not None else "connection_lost"
        refused(None, reason, sha256().digest(), self._clock())
        self.allowance.check()
        if before is not None:
            return before
        if not repeatable:
            return ContinuationConsumedError(
                f"the answer of {self._origin} was lost after the request had left "
                f"({type(error).__name__}), and its continuation works only once"
            )
        return TransientSourceError(
            reason, f"the answer of {self._origin} was lost: {type(error).__name__}"
        )


def _held(credentials: Credentials | HeldCredentials) -> HeldCredentials:
    if isinstance(credentials, HeldCredentials):
        return credentials
    return HeldCredentials(lambda _: credentials())


def read_json(answer: Answer) -> Any:
    """Read an answer as exact JSON; raises ProtocolError."""
    return parse_body(answer.body)
