"""The registry in process, with real HTTP semantics and without a port.

The application is driven by hand: it never waits for anything but what is handed to it, so no
event loop, no thread and no socket is needed, and none can be left behind.
"""

import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final

import httpx2

from scan_pipeline.simulator.app import DISCONNECT, SLEEP, create_app
from scan_pipeline.simulator.registry import Registry

SCHEME: Final = "simulator"
HOST: Final = "registry"


class SimulatorTransport(httpx2.BaseTransport):
    """Serves `simulator://registry/...` to a synchronous client.

    A cut or lost connection surfaces as `httpx2.RemoteProtocolError`, a delay longer than the
    client's read timeout as `httpx2.ReadTimeout`: as over a socket.
    """

    def __init__(self, registry: Registry, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Put a transport before a registry.

        Args:
            registry: what answers.
            sleep: waits so many seconds, where the script delays an answer.
        """
        self._app = create_app(registry)
        self._sleep = sleep
        self._closed = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request.

        Raises:
            httpx2.UnsupportedProtocol: the scheme is not `simulator`.
            httpx2.ConnectError: there is no such host, or the transport is closed.
            httpx2.RemoteProtocolError: the script loses the answer.
            httpx2.ReadTimeout: the script delays it for longer than the client waits.
        """
        if request.url.scheme != SCHEME:
            raise httpx2.UnsupportedProtocol(
                f"found scheme {request.url.scheme!r}, expected {SCHEME!r}", request=request
            )
        if request.url.host != HOST or self._closed:
            reason = "the transport is closed" if self._closed else "there is no such host"
            raise httpx2.ConnectError(f"{request.url.host}: {reason}", request=request)
        exchange = _Exchange(request, self._sleep)
        coroutine = self._app(exchange.scope(), exchange.receive, exchange.send)
        try:
            coroutine.send(None)
        except StopIteration:
            return exchange.response()
        coroutine.close()
        raise RuntimeError("the application waited for an event loop; serve it on a port instead")

    def close(self) -> None:
        """Refuse every further request."""
        self._closed = True


class _Exchange:
    """One request and what came of it."""

    def __init__(self, request: httpx2.Request, sleep: Callable[[float], None]) -> None:
        self._request = request
        self._sleep = sleep
        self._body_in = request.read()
        self._status: int | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._broken = False

    def scope(self) -> MutableMapping[str, Any]:
        url = self._request.url
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": "http",
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "client": ("in-process", 0),
            "server": (HOST, 0),
            "extensions": {DISCONNECT: {}, SLEEP: self.wait},
        }

    async def receive(self) -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": self._body_in, "more_body": False}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        match message["type"]:
            case "http.response.start":
                self._status, self._headers = message["status"], list(message["headers"])
            case "http.response.body" if self._request.method != "HEAD":
                self._parts.append(message.get("body", b""))
            case "simulator.disconnect":
                self._broken = True
            case _:
                pass

    async def wait(self, seconds: float) -> None:
        patience = self._request.extensions.get("timeout", {}).get("read")
        if patience is None or seconds <= patience:
            self._sleep(seconds)
            return
        self._sleep(patience)
        raise httpx2.ReadTimeout("timed out", request=self._request)

    def response(self) -> httpx2.Response:
        if self._status is None:
            raise httpx2.RemoteProtocolError(
                "Server disconnected without sending a response.", request=self._request
            )
        body = b"".join(self._parts)
        stream = _CutStream(body, self._request) if self._broken else httpx2.ByteStream(body)
        return httpx2.Response(
            self._status, headers=self._headers, stream=stream, request=self._request
        )


class _CutStream(httpx2.SyncByteStream):
    """A body whose connection breaks after its last byte."""

    def __init__(self, body: bytes, request: httpx2.Request) -> None:
        self._body = body
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        raise httpx2.RemoteProtocolError(
            "peer closed connection without sending complete message body "
            f"(received {len(self._body)} bytes)",
            request=self._request,
        )
