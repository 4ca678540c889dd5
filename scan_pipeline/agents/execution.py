"""Towards the source: is the version still there, and the one request, sent once.

Nothing here is tried again and no redirect is followed. What an answer means for a request that
changes something is HTTP's own (RFC 9110, sections 9.2.2 and 15; RFC 6585, section 3 for 428; read
2026-11-30): only an answer that says that nothing was done lets anyone think so.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

import httpx2

from scan_pipeline.agents.actions import Action
from scan_pipeline.agents.addressing import address
from scan_pipeline.agents.admitted import Admitted
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.proposals import ProposalState
from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.connecting import not_connected
from scan_pipeline.sources.http.destinations import Destinations, look_up
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.exchange import Call, Exchange
from scan_pipeline.sources.http.network import Network
from scan_pipeline.stages.workspace import Workspace

BOUNDS: Final = Retries(attempts=1, timeout=30.0, whole_timeout=60.0)
"""How long one answer is waited for, in seconds."""

_STRONG: Final = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')
"""A strong entity tag (RFC 9110, section 8.8.3); If-Match never holds for a weak one."""

_UNTOUCHED: Final = frozenset({307, 308})
"""Redirects that ask for the same request elsewhere; after 301 to 303 it may have been done."""


class StaleError(ReaderError):
    """The source has another version of the record than the one that was read."""

    def __init__(self, message: str) -> None:
        super().__init__("restart", "version_changed", message)


@record
class Outcome:
    """What became of a request that was sent, or that could not leave."""

    state: ProposalState
    reason: str


class Executor:
    """Talks to the source of one action about one record; credentials go to its origin alone.

    Args:
        action: the action.
        key: the record's key fields by name.
        admitted: the record as it was admitted.
        workspace: the world around.
    """

    def __init__(
        self,
        action: Action,
        *,
        key: Mapping[str, str | int],
        admitted: Admitted,
        workspace: Workspace,
    ) -> None:
        self._action, self._key, self._admitted = action, key, admitted
        self._workspace = workspace
        self._url = address(action.request.url, key)
        self._destinations = Destinations(self._url, others=(), resolve=look_up)

    def condition(self) -> Mapping[str, str]:
        """Ask the source for the version where it is read again; return what makes it certain.

        Returns:
            The `If-Match` header, or nothing where the source gives no tag that was asked for.

        Raises:
            StaleError: the source has another version.
            ReaderError: it cannot be known; nothing was changed.
        """
        again, own = self._action.re_read, self._action.if_match
        if own is not None:
            tag = value_at(self._admitted.value, own.field)
            if tag is ABSENT or not isinstance(tag, str | int) or isinstance(tag, bool):
                raise _unfit(f"the record holds no tag at {'.'.join(own.field)}")
            return {"if-match": _strong(f'"{tag}"' if own.form == "bare" else str(tag))}
        if again is None:
            raise _unfit("the action names no way to compare versions")
        call = Call(url=address(again.url, self._key), headers=(("accept", "application/json"),))
        with self._exchange() as exchange:
            try:
                answer = exchange.ask(call, secret=self.secret(call.url))
            except (httpx2.HTTPError, ProtocolError) as error:
                raise _later(
                    f"the record could not be read again: {type(error).__name__}"
                ) from error
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise StaleError(f"the source has the record no more ({answer.status})")
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise ReaderError(
                "ask_for_access", "source_refused", f"the source refused to read ({answer.status})"
            )
        if answer.status != HTTPStatus.OK:
            raise _later(f"reading the record again was answered {answer.status}; expected 200")
        if _form_at(answer.body, again.record_at) != self._admitted.form:
            raise StaleError("read again, the record differs from the one that was read in full")
        if not again.send_etag:
            return {}
        return {"if-match": _strong(answer.headers.get("etag", ""))}

    def call(self, condition: Mapping[str, str], *, idempotency_key: str) -> Call:
        """Return the request, without its credentials.

        Raises:
            ReaderError: the record holds no such field as the body is to hold.
        """
        request = self._action.request
        headers = dict(request.headers) | dict(condition)
        if request.idempotency_header is not None:
            headers[request.idempotency_header] = idempotency_key
        body: dict[str, Any] = dict(request.body)
        for name, path in request.fields.items():
            value = value_at(self._admitted.value, path)
            if value is ABSENT:
                raise _unfit(f"the record holds nothing at {'.'.join(path)}")
            body[name] = value
        content = canonical_json(body) if body else None
        if content is not None:
            headers["content-type"] = "application/json"
        return Call(
            url=self._url, method=request.method, headers=tuple(headers.items()), content=content
        )

    def secret(self, url: str) -> Mapping[str, str]:
        """Return the headers that carry the secret; read now, and kept nowhere.

        Raises:
            DestinationRefusedError: the address lies where no request may go.
            ConfigurationError: the secret is missing.
        """
        auth = self._action.request.auth
        at_home = self._destinations.is_home(url)
        return auth.headers(self._workspace.environ) if auth is not None and at_home else {}

    def send(self, call: Call, *, secret: Mapping[str, str]) -> Outcome:
        """Send the request, once, and return what is known of its end."""
        with self._exchange() as exchange:
            try:
                answer = exchange.ask(call, secret=secret)
            except httpx2.HTTPError as error:
                if not_connected(error, origin=self._destinations.origin) is not None:
                    return Outcome(
                        state="proposed",
                        reason=f"no connection came about ({type(error).__name__}); nothing was "
                        "sent",
                    )
                return Outcome(
                    state="unknown", reason=f"the answer was lost ({type(error).__name__})"
                )
            except ProtocolError as error:
                return Outcome(state="unknown", reason=f"the answer was none ({error.code})")
        return outcome_of(answer.status, success=self._action.request.success)

    @contextmanager
    def _exchange(self) -> Iterator[Exchange]:
        workspace = self._workspace
        exchange = Exchange(
            retries=BOUNDS,
            inner=None,
            network=Network(self._action.request.network, workspace.environ),
            allowance=Allowance(clock=workspace.clock),
        )
        try:
            yield exchange
        finally:
            exchange.close()


def outcome_of(status: int, *, success: tuple[int, ...]) -> Outcome:
    """Return what an answer says of a request that was to change something.

    Args:
        status: its status.
        success: statuses that the action calls done.
    """
    if status in success:
        return Outcome(state="done", reason=f"answered {status}")
    if status == HTTPStatus.PRECONDITION_FAILED:
        return Outcome(state="stale", reason="the source has another version (412)")
    if status == HTTPStatus.PRECONDITION_REQUIRED:
        return Outcome(
            state="failed",
            reason="the source does nothing without If-Match (428); expected if_match or "
            "re_read.send_etag in the policy",
        )
    if status in _UNTOUCHED:
        return Outcome(state="failed", reason=f"answered {status}; redirects are not followed")
    refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    if refused and status != HTTPStatus.REQUEST_TIMEOUT:
        return Outcome(state="failed", reason=f"the source refused it ({status})")
    return Outcome(
        state="unknown", reason=f"answered {status}, which does not say whether it was done"
    )


def _form_at(body: bytes, path: FieldPath) -> bytes:
    try:
        found = value_at(parse_exact(body), path)
    except CanonicalFormError as error:
        raise _later("reading the record again gave no JSON") from error
    if found is ABSENT:
        raise _later("reading the record again gave none where re_read.record_at says")
    return canonical_json(found)


def _strong(tag: str) -> str:
    if not _STRONG.fullmatch(tag):
        raise _unfit("there is no strong entity tag to send as If-Match")
    return tag


def _later(message: str) -> ReaderError:
    return ReaderError("retry", "version_unknown", f"{message}; nothing was sent")


def _unfit(message: str) -> ReaderError:
    return ReaderError("stop", "action_unfit", f"{message}; expected the action to fit the record")
