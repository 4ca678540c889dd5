"""The registry on a port, where a broken connection is a broken TCP connection."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from scan_pipeline.simulator.app import DISCONNECT, create_app
from scan_pipeline.simulator.registry import Registry

Lifespan: TypeAlias = Literal["on", "off"]

STOP_WITHIN_S = 5
"""How long a server is given to finish what it is sending when it is told to stop."""


def serve(
    registry: Registry,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a registry until the process is asked to end (SIGINT, SIGTERM).

    Args:
        registry: what answers.
        host: address to listen on.
        port: port to listen on; 0 for any free one.
        announce: is told the base URL as soon as connections are accepted.
    """
    serve_app(create_app(registry), host=host, port=port, announce=announce)


def serve_app(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    announce: Callable[[str], None] = lambda _: None,
    lifespan: Lifespan = "off",
) -> None:
    """Serve any application; as `serve`.

    Args:
        app: what answers.
        host: address to listen on.
        port: port to listen on; 0 for any free one.
        announce: is told the base URL as soon as connections are accepted.
        lifespan: whether the application wants to be told of start and end.
    """
    with _listening(host, port) as listener:
        announce(_base_url(listener))
        _server(app, lifespan).run(sockets=[listener])


@contextmanager
def running(registry: Registry, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve a registry from a thread of its own for the length of a `with` block.

    Yields:
        The base URL, e.g. `http://127.0.0.1:40123`.
    """
    with running_app(create_app(registry), host=host, port=port) as base_url:
        yield base_url


@contextmanager
def running_app(
    app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0, lifespan: Lifespan = "off"
) -> Iterator[str]:
    """Serve any application; as `running`."""
    with _listening(host, port) as listener:
        server = _server(app, lifespan)
        # A daemon: should the block never be left, the interpreter still ends.
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="registry", daemon=True
        )
        thread.start()
        try:
            yield _base_url(listener)
        finally:
            server.should_exit = True
            thread.join(STOP_WITHIN_S)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    # Listening before the server runs: a client may connect at once and is served later.
    listener = socket.create_server((host, port), backlog=128)
    try:
        yield listener
    finally:
        listener.close()


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"


def _server(app: ASGIApp, lifespan: Lifespan) -> uvicorn.Server:
    transports: dict[tuple[str, int], asyncio.Transport] = {}
    config = uvicorn.Config(
        _breakable(app, transports),
        http=_protocol(transports),
        loop="asyncio",
        ws="none",
        lifespan=lifespan,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _protocol(transports: dict[tuple[str, int], asyncio.Transport]) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, keeping the open transports by the client's address."""

    class KeepingProtocol(AutoHTTPProtocol):
        def connection_made(self, transport: Any) -> None:
            # asyncio switches Nagle's algorithm off for sockets that name TCP as their protocol
            # only; with it on, head and body wait 40 ms for each other.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client = transport.get_extra_info("peername")[:2]
            transports[self._client] = transport
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            transports.pop(self._client, None)
            super().connection_lost(exc)

    return KeepingProtocol


def _breakable(app: ASGIApp, transports: dict[tuple[str, int], asyncio.Transport]) -> ASGIApp:
    async def breakable(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_or_break(message: Message) -> None:
            if message["type"] != DISCONNECT:
                await send(message)
                return
            # What was written is flushed; then the connection ends, and uvicorn hears of it.
            transports[tuple(scope["client"][:2])].close()
            while (await receive())["type"] != "http.disconnect":
                pass

        scope["extensions"] = {**(scope.get("extensions") or {}), DISCONNECT: {}}
        await app(scope, receive, send_or_break)

    return breakable
