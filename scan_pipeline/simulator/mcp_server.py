"""The registry as an MCP server, over stdio or streamable HTTP: the same population and script.

`python -m scan_pipeline.simulator.mcp_server` speaks over stdin and stdout;
`python -m scan_pipeline.simulator.mcp_server --http` on a port, whose URL it prints.

Tools: `customer-registry.list` answers with a page in the shape of the HTTP answer, which says of
itself `represents: page`; `customer-registry.partition_counts`, `.high_water_mark` and `.identity`
answer as their HTTP neighbours do. Every answer is structured content, and the same JSON as text.

What the script does to an HTTP answer it does here as far as there is such a thing: a refusal is a
result marked as an error, with status, code and wait; an answer that is no JSON is a text alone; an
answer that is cut or lost never comes, until whoever waits for it gives up.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent

from scan_pipeline.simulator.answers import Answer, compact
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.rows import CollectionName
from scan_pipeline.simulator.scenario import SMALL, Scenario, registry_for
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import parse_script
from scan_pipeline.simulator.server import running_app, serve_app

NAME: Final = "customer-registry"
PATH: Final = "/mcp"
TOKEN: Final = "REGISTRY_TOKEN"  # noqa: S105  # the name of a variable

Number = int | str
"""A parameter that is a number: a caller may send it as one or as its digits."""


def create_mcp_server(registry: Registry, *, token: str | None = None) -> MCPServer:
    """Return the registry as an MCP server.

    Args:
        registry: what answers.
        token: says who asks where the transport has no headers, as over stdio.
    """
    server = MCPServer(name=NAME, version="1", log_level="CRITICAL")

    def asking(context: Context[Any, Any]) -> str | None:
        headers = context.headers
        if headers is not None:
            return headers.get("authorization")
        return None if token is None else f"Bearer {token}"

    @server.tool(name=f"{NAME}.list", structured_output=False)
    async def list_page(
        context: Context[Any, Any],
        *,
        collection: CollectionName = "customers",
        cursor: str | None = None,
        snapshot_id: str | None = None,
        page_size: Number | None = None,
        order: str | None = None,
        tie_breaker: str | None = None,
        view: str | None = None,
        count: str | None = None,
        up_to: Number | None = None,
        region: str | None = None,
        schema_version: Number | None = None,
        status: str | None = None,
        tenant: str | None = None,
    ) -> CallToolResult:
        """List a collection by pages; page.next_cursor leads on, null is the end."""
        params = _params(
            cursor=cursor,
            snapshot_id=snapshot_id,
            page_size=page_size,
            order=order,
            tie_breaker=tie_breaker,
            view=view,
            count=count,
            up_to=up_to,
            region=region,
            schema_version=schema_version,
            status=status,
            tenant=tenant,
        )
        answer = registry.list_page(collection, params=params, authorization=asking(context))
        return await _result(answer, registry, represents="page")

    @server.tool(name=f"{NAME}.partition_counts", structured_output=False)
    async def partition_counts(
        context: Context[Any, Any],
        *,
        by: str,
        collection: CollectionName = "customers",
        snapshot_id: str | None = None,
        view: str | None = None,
        up_to: Number | None = None,
        region: str | None = None,
        schema_version: Number | None = None,
        status: str | None = None,
        tenant: str | None = None,
    ) -> CallToolResult:
        """Count a collection by the values of one field."""
        params = _params(
            by=by,
            snapshot_id=snapshot_id,
            view=view,
            up_to=up_to,
            region=region,
            schema_version=schema_version,
            status=status,
            tenant=tenant,
        )
        answer = registry.partition_counts(collection, params=params, authorization=asking(context))
        return await _result(answer, registry, represents="counts")

    @server.tool(name=f"{NAME}.high_water_mark", structured_output=False)
    async def high_water_mark(
        context: Context[Any, Any], collection: CollectionName = "customers"
    ) -> CallToolResult:
        """Tell the newest number of the append-only sequence."""
        answer = registry.high_water_mark(collection, authorization=asking(context))
        return await _result(answer, registry, represents="high_water_mark")

    @server.tool(name=f"{NAME}.identity", structured_output=False)
    async def identity(context: Context[Any, Any]) -> CallToolResult:
        """Tell whose token was sent."""
        answer = registry.identity(authorization=asking(context))
        return await _result(answer, registry, represents="identity")

    return server


@contextmanager
def running_mcp(registry: Registry, *, json_response: bool = False) -> Iterator[str]:
    """Serve a registry over streamable HTTP from a thread of its own.

    Args:
        registry: what answers.
        json_response: answers as JSON instead of event streams.

    Yields:
        The endpoint, e.g. `http://127.0.0.1:40123/mcp`.
    """
    app = create_mcp_server(registry).streamable_http_app(
        streamable_http_path=PATH, json_response=json_response
    )
    with running_app(app, lifespan="on") as base_url:
        yield f"{base_url}{PATH}"


async def _result(
    answer: Answer,
    registry: Registry,
    *,
    represents: Literal["page", "counts", "high_water_mark", "identity"],
) -> CallToolResult:
    """Turn an HTTP answer into a result."""
    if answer.delay_s:
        await anyio.sleep(answer.delay_s)
    if answer.wire != "whole":
        await anyio.sleep_forever()
    try:
        content: Any = json.loads(answer.body)
    except ValueError:
        return CallToolResult(content=[_text(answer.body)])
    if answer.status != HTTPStatus.OK:
        error = {**content["error"], "status": answer.status}
        wait = _wait(answer, registry)
        content = {"error": error if wait is None else {**error, "retry_after_s": wait}}
        return CallToolResult(
            content=[_text(compact(content))], structured_content=content, is_error=True
        )
    # The text keeps the bytes of the page, a doubled member too, which parsers drop.
    told = b'{"represents":%s,%b' % (compact(represents), answer.body[1:])
    return CallToolResult(
        content=[_text(told)], structured_content={"represents": represents, **content}
    )


def _text(body: bytes) -> TextContent:
    return TextContent(type="text", text=body.decode(errors="backslashreplace"))


def _wait(answer: Answer, registry: Registry) -> float | None:
    """Return the seconds of `Retry-After` in either of its forms."""
    after = answer.headers.get("retry-after")
    if after is None:
        return None
    if after.isdigit():
        return float(after)
    return max(0.0, (parsedate_to_datetime(after) - registry.clock()).total_seconds())


def _params(**given: Number | None) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in given.items() if value is not None]


def main(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    announce: Callable[[str], None] = lambda url: print(url, file=sys.stderr, flush=True),
) -> None:
    """Serve the registry until the client or the user ends it."""
    parser = argparse.ArgumentParser(prog="python -m scan_pipeline.simulator.mcp_server")
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP on a port")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 for a free one")
    parser.add_argument("--scenario", default="clean", help="what happens, by name")
    parser.add_argument("--script", type=Path, help="a file of mutations and faults, JSON")
    parser.add_argument("--size", type=int, help="how many customers there are")
    told = parser.parse_args(arguments)
    registry = registry_for(_scenario(told.scenario, script=told.script, size=told.size))
    server = create_mcp_server(registry, token=environ.get(TOKEN))
    if not told.http:
        server.run("stdio")
        return
    app = server.streamable_http_app(streamable_http_path=PATH, host=told.host)
    serve_app(
        app,
        host=told.host,
        port=told.port,
        announce=lambda base_url: announce(f"{base_url}{PATH}"),
        lifespan="on",
    )


def _scenario(name: str, *, script: Path | None, size: int | None) -> Scenario:
    happening = scenario(name)
    if script is not None:
        raw = json.loads(script.read_text(encoding="utf-8"))
        happening = replace(happening, script=parse_script(raw), size=SMALL)
    return happening if size is None else replace(happening, size=size)


if __name__ == "__main__":
    main(sys.argv[1:], environ=os.environ)
