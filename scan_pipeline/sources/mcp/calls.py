"""Calls of an MCP server, and its refusals, without the SDK."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.value import record
from scan_pipeline.sources.mcp.facts import ListMethod


@record
class ToolCall:
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, JsonValue]

    @property
    def words(self) -> str:
        """Name the call, without its arguments."""
        return f"tools/call of {self.tool}"


@record
class ListCall:
    """One call of a list method; a cursor of None asks for the first page."""

    method: ListMethod
    cursor: str | None

    @property
    def words(self) -> str:
        """Name the call, without its cursor."""
        return self.method


McpCall = ToolCall | ListCall


class ServerRefusedError(ProtocolError):
    """The server answered with a JSON-RPC error.

    Its message is not repeated: servers put cursors and arguments into it.

    Attributes:
        number: the error's code.
        data: what stands beside it.
    """

    def __init__(self, message: str, *, number: int, data: Any) -> None:
        super().__init__("request_rejected", message)
        self.number, self.data = number, data
