"""One connection to an MCP server, held open by a task and left in the same task.

The official SDK negotiates the protocol's era by itself: it asks `server/discover` and falls back
to the handshake of 2025-11-25 and before. Its response cache is off, since a page that is read
again must be read from the server.
"""

import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from mcp import Client, ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    ClientRequest,
    ListPromptsRequest,
    ListResourcesRequest,
    ListResourceTemplatesRequest,
    ListToolsRequest,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from scan_pipeline.core.errors import (
    ConfigurationError,
    DestinationRefusedError,
    ScanPipelineError,
)
from scan_pipeline.sources.http.addresses import origin_of, shown_link
from scan_pipeline.sources.http.exchange import MAX_BODY
from scan_pipeline.sources.http.responses import Answer
from scan_pipeline.sources.mcp.calls import McpCall, ToolCall
from scan_pipeline.sources.mcp.facts import HttpServer, ListMethod, McpTransport, StdioServer

RAW: Final[Any] = TypeAdapter(dict[str, Any])
"""Results are taken as the server sent them; the SDK's types would drop and default members."""

LISTS: Final[Mapping[ListMethod, type[Any]]] = {
    "tools/list": ListToolsRequest,
    "resources/list": ListResourcesRequest,
    "resources/templates/list": ListResourceTemplatesRequest,
    "prompts/list": ListPromptsRequest,
}

RELISTED_PAGES: Final = 100
"""Pages of the tool list that are read, at most, to learn which arguments go into headers."""


class McpConnection:
    """One connection, from opening to its end.

    Attributes:
        ready: set when calls can be made, or when there is no hope of it.
        ended: set when everything is closed: the child process has gone, the sockets are shut.
        failure: why it ended, where it was not asked to.
        answered: last answer of an HTTP server to a message of ours, without its body.

    Args:
        transport: how the server is reached.
        environ: where secrets are looked up.
        inner: the HTTP transport; None for the network.
        timeout_s: seconds after which a request counts as lost.
    """

    def __init__(
        self,
        transport: McpTransport,
        *,
        environ: Mapping[str, str],
        inner: httpx2.BaseTransport | None,
        timeout_s: float,
    ) -> None:
        self.ready, self.ended = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self.answered: Answer | None = None
        self._transport, self._environ, self._inner = transport, environ, inner
        self._timeout_s = timeout_s
        self._session: ClientSession | None = None
        self._leave: anyio.Event | None = None

    @property
    def handshake_era(self) -> bool:
        """Whether the server speaks a revision before 2026-07-28, whose cursors die with it."""
        version = self._session.protocol_version if self._session is not None else None
        return version not in MODERN_PROTOCOL_VERSIONS

    async def hold(self) -> None:
        """Open the connection, keep it until told to leave, and close it."""
        self._leave = anyio.Event()
        try:
            async with Client(
                self._streams(), cache=None, read_timeout_seconds=self._timeout_s
            ) as client:
                self._session = client.session
                self.ready.set()
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001  # told to whoever calls
            self.failure = _first_cause(error)
        finally:
            self._session = None
            self.ended.set()
            self.ready.set()

    async def leave(self) -> None:
        """Let `hold` end."""
        if self._leave is not None:
            self._leave.set()

    async def call(self, call: McpCall, done: threading.Event) -> dict[str, Any]:
        """Make one call and return its result as the server sent it.

        A server of 2026-07-28 may want arguments repeated in headers, and says so by an error
        (specification 2026-07-28, server/tools, "x-mcp-header", read 2026-11-30): the tool list
        is read then, and the call made once more.

        Args:
            call: what is called.
            done: set when the call has ended, also by cancellation: whatever there is to tell
                the server has been told by then.
        """
        try:
            session = self._session
            if session is None:
                raise ConnectionError("the connection has ended")
            try:
                return await session.send_request(_request(call), RAW)
            except MCPError as error:
                if error.code != HEADER_MISMATCH or not isinstance(call, ToolCall):
                    raise
            await _learn_headers(session, call.tool)
            return await session.send_request(_request(call), RAW)
        finally:
            done.set()

    def _streams(self) -> Any:
        if self._transport.stdio is not None:
            return _child(self._transport.stdio, self._environ)
        if self._transport.http is not None:
            return self._http(self._transport.http)
        raise ConfigurationError("transport names neither stdio nor http")

    @asynccontextmanager
    async def _http(self, server: HttpServer) -> AsyncGenerator[Any]:
        origin = origin_of(server.url)

        async def to_origin_alone(request: httpx2.Request) -> None:
            if origin_of(str(request.url)) != origin:
                raise DestinationRefusedError(
                    "destination_refused",
                    f"the next request would go to {shown_link(str(request.url))}; "
                    f"expected {origin}",
                )
            if server.auth is not None:
                request.headers.update(server.auth.headers(self._environ))

        async def remember(response: httpx2.Response) -> None:
            if response.request.method == "POST":
                self.answered = Answer(
                    status=response.status_code, headers=response.headers, body=b""
                )

        # A slow answer is bounded by the SDK's own timeout, which tells the server to stop.
        async with (
            httpx2.AsyncClient(
                transport=_lent(self._inner),
                headers=dict(server.headers),
                timeout=httpx2.Timeout(self._timeout_s, read=None),
                event_hooks={"request": [to_origin_alone], "response": [remember]},
                trust_env=self._inner is None,
            ) as client,
            streamable_http_client(
                server.url, http_client=client, max_sse_event_size=MAX_BODY
            ) as streams,
        ):
            yield streams


@asynccontextmanager
async def _child(server: StdioServer, environ: Mapping[str, str]) -> AsyncGenerator[Any]:
    """Start the server; what it writes to stderr is dropped, for it may show its secrets."""
    secrets = {name: secret.resolve(environ) for name, secret in server.env.items()}
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=secrets)
    started = False
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            async with stdio_client(parameters, errlog=nowhere) as streams:
                started = True
                yield streams
    except OSError as error:
        if started:
            raise
        raise ConfigurationError(
            f"the server {server.command!r} cannot be started: {error.strerror}; expected a "
            "program on PATH, or its whole path"
        ) from error


def _request(call: McpCall) -> ClientRequest:
    if isinstance(call, ToolCall):
        params = CallToolRequestParams(name=call.tool, arguments=dict(call.arguments))
        return CallToolRequest(params=params)
    return LISTS[call.method](params=PaginatedRequestParams(cursor=call.cursor))


async def _learn_headers(session: ClientSession, tool: str) -> None:
    cursor: str | None = None
    for _ in range(RELISTED_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        cursor = page.next_cursor
        if cursor is None or any(each.name == tool for each in page.tools):
            return


def _first_cause(error: BaseException) -> BaseException:
    """Return what went wrong first of all that went wrong together, our own words before others."""
    causes = list(_causes(error))
    return next((each for each in causes if isinstance(each, ScanPipelineError)), causes[0])


def _causes(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:  # pyright: ignore[reportUnknownVariableType]
            yield from _causes(each)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield error


def _lent(inner: httpx2.BaseTransport | None) -> httpx2.AsyncBaseTransport | None:
    if inner is None:
        return None
    if isinstance(inner, httpx2.AsyncBaseTransport):
        return _Lent(inner)
    raise ConfigurationError(
        f"{type(inner).__name__} cannot carry MCP; expected a transport that also answers "
        "asynchronously"
    )


class _Lent(httpx2.AsyncBaseTransport):
    """A transport that belongs to whoever handed it in: closing the client leaves it open."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._inner.handle_async_request(request)
