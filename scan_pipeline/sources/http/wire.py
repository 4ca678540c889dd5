"""The network below a client: every read and write ends by the deadline of the answer it serves.

The timeouts of httpx2 2.16 bound one read each. A server that sends one byte a minute outlives them
for as long as it likes, in its headers too, so that the deadline is kept below, at the socket.
"""

import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import httpcore2
import httpx2

from scan_pipeline.sources.http.allowance import Deadline
from scan_pipeline.sources.http.network import Network

CONNECTIONS = 4
"""Most connections that are kept; one walk asks one thing at a time."""

SHORTEST = 0.001
"""Least time that a socket is given, in seconds: zero would mean without blocking."""

_RAISED_BELOW = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
"""What httpcore2 2.16 raises of a request; each has a namesake in httpx2."""


class Wire(httpx2.BaseTransport):
    """Carries requests over the network, one at a time.

    Attributes:
        deadline: by when the answer of the request in hand must be whole, None for no such moment.

    Args:
        network: the ways out of here.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._pools: dict[str, httpcore2.ConnectionPool] = {}
        self.deadline: Deadline | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its answer, the body still to come."""
        pool = self._pool(request.url)
        extensions = dict(request.extensions)
        if self._network.server_name is not None:
            extensions["sni_hostname"] = self._network.server_name
        with _told_alike(request):
            answer = pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=_url(request.url),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=extensions,
                )
            )
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer, request),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close the connections."""
        for pool in self._pools.values():
            pool.close()

    def bounded(self, timeout: float | None) -> float | None:
        """Return a timeout of one read that does not outlast the deadline."""
        if self.deadline is None:
            return timeout
        left = max(SHORTEST, self.deadline.left)
        return left if timeout is None else min(timeout, left)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._network.tls()

    def _pool(self, url: httpx2.URL) -> httpcore2.ConnectionPool:
        proxy = self._network.proxy(url)
        # A password that was changed makes another pool.
        key = "" if proxy is None else f"{proxy.url} {proxy.raw_auth}"
        pool = self._pools.get(key)
        if pool is None:
            common: dict[str, Any] = {
                "ssl_context": self._tls,
                "max_connections": CONNECTIONS,
                "network_backend": _Backend(self),
            }
            if proxy is None:
                pool = httpcore2.ConnectionPool(**common)
            else:
                pool = httpcore2.HTTPProxy(
                    _url(proxy.url),
                    proxy_auth=proxy.raw_auth,
                    proxy_ssl_context=self._tls if proxy.url.scheme == "https" else None,
                    **common,
                )
            self._pools[key] = pool
        return pool


class _Backend(httpcore2.SyncBackend):
    """Opens sockets whose every read and write is bounded."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        bounded = self._wire.bounded(timeout)
        stream = super().connect_tcp(host, port, bounded, local_address, socket_options)
        return _Stream(stream, self._wire)


class _Stream(httpcore2.NetworkStream):
    """A socket whose every read and write is bounded; the handshake of TLS is bounded as one."""

    def __init__(self, stream: httpcore2.NetworkStream, wire: Wire) -> None:
        self._stream, self._wire = stream, wire

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        deadline = self._wire.deadline
        if deadline is not None and deadline.left <= 0:
            raise httpcore2.ReadTimeout("the answer was not whole by its deadline")
        return self._stream.read(max_bytes, self._wire.bounded(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._wire.bounded(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        bounded = self._wire.bounded(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, bounded), self._wire)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Body(httpx2.SyncByteStream):
    """The body of an answer as it comes, once: httpcore2 2.16 reads a consumed one without end."""

    def __init__(self, answer: httpcore2.Response, request: httpx2.Request) -> None:
        self._answer, self._request = answer, request
        self._begun = False

    def __iter__(self) -> Iterator[bytes]:
        if self._begun:
            raise httpx2.StreamConsumed
        self._begun = True
        with _told_alike(self._request):
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _told_alike(request: httpx2.Request) -> Iterator[None]:
    """Raise the errors of httpcore2 as the errors of httpx2 that bear the same names."""
    try:
        yield
    except _RAISED_BELOW as error:
        kinds = (each.__name__ for each in type(error).__mro__)
        same = next(getattr(httpx2, each) for each in kinds if hasattr(httpx2, each))
        raise same(str(error), request=request) from error


def _url(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )
