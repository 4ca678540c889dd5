"""Servers that somebody might write with the SDK: one list of customers, told in several ways.

`python mcp_customers_server.py tools|resources stdio|http SIZE NOTES`: over HTTP the endpoint is
printed. What happens to calls of `slow` is appended to NOTES.
"""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolResult,
    ListResourcesResult,
    PaginatedRequestParams,
    Resource,
    TextContent,
)

from scan_pipeline.simulator.population import population


def tools(customers: list[dict[str, Any]], notes: Path) -> MCPServer:
    server, size = MCPServer("customers", log_level="CRITICAL"), len(customers)

    @server.tool()
    def window(offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Show a window of the customers; no more than 250 at once, whatever was asked for."""
        shown = customers[offset : offset + min(limit, 250)]
        return {"customers": shown, "total": size}

    @server.tool()
    def leaf(page: int = 1) -> dict[str, Any]:
        """Show one leaf of 100 customers."""
        shown = customers[(page - 1) * 100 : page * 100]
        return {"customers": shown, "has_more": page * 100 < size}

    @server.tool()
    def newest() -> list[dict[str, Any]]:
        """Show the newest customers, as many as there is room for."""
        return customers[:50]

    @server.tool(structured_output=False)
    def newest_as_text() -> CallToolResult:
        """Show the newest customers as one text."""
        text = json.dumps(customers[:50], ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)])

    @server.tool()
    async def slow(cursor: str | None = None) -> dict[str, Any]:
        """Show 100 customers at once, and never come to an end with the second hundred."""
        if cursor is None:
            return {"customers": customers[:100], "next": "more"}
        note(notes, "begun")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            note(notes, "cancelled")
            raise
        return {}

    return server


def resources(customers: list[dict[str, Any]]) -> Server:
    async def list_resources(
        _: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        first = int(params.cursor) if params is not None and params.cursor else 0
        shown = [
            Resource(uri=f"customer://{each['customer_id']}", name=each["customer_id"])
            for each in customers[first : first + 1_000]
        ]
        more = str(first + 1_000) if first + 1_000 < len(customers) else None
        return ListResourcesResult(resources=shown, next_cursor=more)

    return Server("customers", on_list_resources=list_resources)


def note(notes: Path, word: str) -> None:
    with notes.open("a", encoding="utf-8") as file:
        file.write(f"{word}\n")


async def speak(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    kind, over, size, notes = sys.argv[1:]
    customers = [json.loads(row.raw) for row in population("customers", int(size))]
    server = tools(customers, Path(notes)) if kind == "tools" else resources(customers)
    if over == "http":
        listener = socket.create_server(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
        uvicorn.Server(config).run(sockets=[listener])
    elif isinstance(server, MCPServer):
        server.run("stdio")
    else:
        anyio.run(speak, server)


if __name__ == "__main__":
    main()
