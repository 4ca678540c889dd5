"""The synchronous face of the asynchronous SDK: one background loop, one connection at a time."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, Final, TypeVar

import anyio
import httpx2
from anyio.from_thread import BlockingPortal
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from scan_pipeline.core.errors import (
    ProtocolError,
    ScanPipelineError,
    TransientSourceError,
)
from scan_pipeline.sources.http.responses import Answer
from scan_pipeline.sources.mcp.calls import McpCall, ServerRefusedError
from scan_pipeline.sources.mcp.connection import McpConnection
from scan_pipeline.sources.mcp.facts import McpTransport

T = TypeVar("T")

POLL_S: Final = 0.1
"""How often a call under way looks whether the walk was asked to end, in seconds."""

GRACE_S: Final = 5.0
"""How long a cancelled call is given to tell the server, in seconds."""

CAUSE_WITHIN_S: Final = 1.0
"""How long a connection that broke is given to say why."""

LOGGERS: Final = ("client", "mcp.client", "mcp.shared")
"""Loggers of the SDK that show messages, and with them records and cursors."""

CLOSES_WITHIN_S: Final = 15.0
"""How long a connection is given to close; the SDK kills a child that does not end before."""


class McpSession:
    """Makes calls, one at a time; opens a connection for the first and again after one is lost.

    The loop runs in a daemon thread, so that nothing that is left open keeps the interpreter.

    Attributes:
        connections: how many connections were opened so far; the number of the present one.

    Args:
        transport: how the server is reached.
        environ: where secrets are looked up.
        inner: the HTTP transport; None for the network.
        timeout_s: seconds after which a request counts as lost.
        pause: called with 0 while a call is under way; may raise to end the walk.
    """

    def __init__(
        self,
        transport: McpTransport,
        *,
        environ: Mapping[str, str],
        inner: httpx2.BaseTransport | None,
        timeout_s: float,
        pause: Callable[[float], None],
    ) -> None:
        self._transport, self._environ, self._inner = transport, environ, inner
        self._timeout_s, self._pause = timeout_s, pause
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None
        self._connection: McpConnection | None = None
        self._held: Future[None] | None = None
        self.connections = 0

    @property
    def answered(self) -> Answer | None:
        """Return the last answer of an HTTP server, without its body; None of a child."""
        return None if self._connection is None else self._connection.answered

    @property
    def handshake_era(self) -> bool:
        """Whether the server speaks a revision before 2026-07-28."""
        return self._connection is not None and self._connection.handshake_era

    def connect(self) -> int:
        """Make sure of a connection and return its number.

        Raises:
            TransientSourceError: there is none to be had now.
            ServerRefusedError: the server wants no handshake.
            ConfigurationError: a secret is missing, or the program is.
        """
        connection = self._connection
        if connection is not None and not connection.ended.is_set():
            return self.connections
        self._connection = connection = McpConnection(
            self._transport,
            environ=self._environ,
            inner=self._inner,
            timeout_s=self._timeout_s,
        )
        self.connections += 1
        self._held = self._running().start_task_soon(connection.hold)
        while not connection.ready.wait(POLL_S):
            self._pause(0.0)
        if connection.ended.is_set():
            raise self._told(connection.failure, "opening a connection")
        return self.connections

    def call(self, call: McpCall) -> dict[str, Any]:
        """Make one call over the present connection and return its result as it was sent.

        Where the walk is asked to end while the call is under way, the server is told that it is
        cancelled, and the wish to end is raised.

        Raises:
            TransientSourceError: `connection_lost`, `timed_out` or `not_connected`; the
                connection is dropped.
            ServerRefusedError: the server answered with an error.
            ProtocolError: what it answered is no result of this method.
        """
        connection = self._connection
        if connection is None:
            raise TransientSourceError("not_connected", "there is no connection to the server")
        connection.answered = None
        done = threading.Event()
        future: Future[dict[str, Any]] = self._running().start_task_soon(
            connection.call, call, done
        )
        try:
            return self._result(future, done)
        except (MCPError, ConnectionError) as error:
            told = self._told(error, call.words)
        except ValidationError as error:
            told = ProtocolError(
                "body_unparsable",
                f"the answer to {call.words} is no result of that method: "
                f"{error.error_count()} members are not what the protocol says",
            )
        if isinstance(told, TransientSourceError):
            self.drop()
        raise told

    def drop(self) -> None:
        """Close the present connection; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is None or self._portal is None or self._held is None:
            return
        if connection.ready.is_set():
            self._portal.start_task_soon(connection.leave)
        else:
            self._held.cancel()
        if not connection.ended.wait(CLOSES_WITHIN_S):
            self._held.cancel()

    def close(self) -> None:
        """Close the connection and end the loop."""
        try:
            self.drop()
        finally:
            portal, self._portal = self._portal, None
            if portal is not None and self._thread is not None:
                portal.start_task_soon(portal.stop, True)
                self._thread.join(CLOSES_WITHIN_S)

    def _result(self, future: "Future[T]", done: threading.Event) -> T:
        try:
            while not wait([future], timeout=POLL_S).done:
                self._pause(0.0)
        except BaseException:
            future.cancel()
            done.wait(GRACE_S)
            raise
        return future.result()

    def _told(self, error: BaseException | None, doing: str) -> ScanPipelineError:
        """Turn what the SDK raised into what the project says of it."""
        connection = self._connection
        if isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT:
            return TransientSourceError(
                "timed_out", f"{doing}: no answer within {self._timeout_s:g} s"
            )
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            return ServerRefusedError(
                f"{doing}: the server answered with error {error.code}",
                number=error.code,
                data=error.data,
            )
        # The connection closed under the call: why, its own task knows as soon as it has ended. A
        # child's does not end by itself, and has nothing to tell.
        patience = CAUSE_WITHIN_S if self._transport.http is not None else 0.0
        if connection is not None and connection.ended.wait(patience):
            error = connection.failure or error
        if isinstance(error, ScanPipelineError):
            return error
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
            return TransientSourceError(
                "not_connected", f"{doing}: no connection ({type(error).__name__})"
            )
        what = "the server ended" if error is None else type(error).__name__
        return TransientSourceError("connection_lost", f"{doing}: the connection was lost ({what})")

    def _running(self) -> BlockingPortal:
        """Return the background loop, started for the first call."""
        if self._portal is None:
            _keep_to_themselves()
            started: Future[BlockingPortal] = Future()

            async def run() -> None:
                async with BlockingPortal() as portal:
                    started.set_result(portal)
                    await portal.sleep_until_stopped()

            self._thread = threading.Thread(
                target=anyio.run, args=(run,), name="mcp session", daemon=True
            )
            self._thread.start()
            self._portal = started.result()
        return self._portal


def _keep_to_themselves() -> None:
    """Keep what the SDK logs of messages away from everyone who did not ask for just that."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
