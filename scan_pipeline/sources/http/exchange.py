"""One request and its whole answer: bounded in bytes and in time, its content coding undone."""

import os
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Final

import httpx2
from pydantic import Field

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.allowance import Allowance, Deadline
from scan_pipeline.sources.http.content_coding import ASKED_FOR, decoded
from scan_pipeline.sources.http.network import Network
from scan_pipeline.sources.http.responses import Answer
from scan_pipeline.sources.http.wire import Wire

MAX_BODY: Final = 256 * 2**20
"""Largest answer that is read, in bytes."""


@record
class Call:
    """One HTTP request without its credentials."""

    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    method: Annotated[str, Field(pattern="^(GET|POST|PUT|PATCH|DELETE)$")] = "GET"
    content: bytes | None = field(default=None, repr=False)
    success: tuple[int, ...] = (HTTPStatus.OK,)
    """Statuses that say that the answer is there, and whole."""


class Exchange:
    """Sends requests, each once, and reads their answers whole.

    Args:
        retries: its timeouts.
        inner: the HTTP transport below; None for the network. It belongs to who made it and
            stays open.
        network: the ways out of here; None for what the variables of this process say.
        allowance: how long the walk may still ask.
    """

    def __init__(
        self,
        *,
        retries: Retries,
        inner: httpx2.BaseTransport | None,
        network: Network | None,
        allowance: Allowance,
    ) -> None:
        self._retries, self._allowance = retries, allowance
        self._inner = inner
        self._wire = None if inner is not None else Wire(network or Network(None, os.environ))

    def ask(self, call: Call, *, secret: Mapping[str, str]) -> Answer:
        """Send a request with its secret headers and return the answer, whatever it says.

        Raises:
            ProtocolError: no request can be made of it, or the answer is too large or cut.
            httpx2.HTTPError: no connection came about, or the answer was lost.
        """
        deadline = self._allowance.deadline(self._retries.whole_timeout)
        try:
            url = httpx2.URL(call.url)
            request = self._client.build_request(
                call.method,
                url.copy_merge_params(list(call.params)) if call.params else url,
                headers={**_headers(call), **secret},
                content=call.content,
                timeout=max(0.001, min(self._retries.timeout, deadline.left)),
            )
        except (httpx2.InvalidURL, UnicodeError) as error:
            # A token, pin or link of the source's may be no text that HTTP can carry.
            raise ProtocolError(
                "continuation_invalid",
                f"what the source gave to go on with makes no request: {type(error).__name__}",
            ) from None
        if self._wire is not None:
            self._wire.deadline = deadline
        response = self._client.send(request, stream=True)
        try:
            body = _whole(response, deadline)
        finally:
            response.close()
        return Answer(status=response.status_code, headers=response.headers, body=body)

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _client(self) -> httpx2.Client:
        """The client, made for the first request: later stages open sources and ask nothing."""
        below = self._wire if self._inner is None else _Lent(self._inner)
        return httpx2.Client(transport=below, follow_redirects=False, trust_env=False)


def _headers(call: Call) -> dict[str, str]:
    """Return the headers of a call, with those that every request has.

    A cache on the way may answer with what it kept: a token of a state that has moved, or the first
    walk for the second. RFC 9111, section 5.2.1.4 (read 2026-11-30): `no-cache` asks it not to
    before the source has said that what it kept still holds.
    """
    own = dict(call.headers)
    given = {name.lower() for name in own}
    ours = {"accept-encoding": ASKED_FOR, "cache-control": "no-cache"}
    return {name: value for name, value in ours.items() if name not in given} | own


def _whole(response: httpx2.Response, deadline: Deadline) -> bytes:
    chunks, size = list[bytes](), 0
    for chunk in decoded(response):
        size += len(chunk)
        if size > MAX_BODY:
            raise ProtocolError("body_unparsable", f"the answer is larger than {MAX_BODY} bytes")
        if deadline.left <= 0:
            raise httpx2.ReadTimeout("the answer was not whole by its deadline")
        chunks.append(chunk)
    return b"".join(chunks)


class _Lent(httpx2.BaseTransport):
    """A transport that belongs to whoever handed it in: closing the client leaves it open."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._inner.handle_request(request)
