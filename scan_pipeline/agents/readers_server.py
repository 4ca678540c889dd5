"""The SDK's server, with arguments taken strictly and every failure typed."""

from collections.abc import Callable
from typing import Any, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from scan_pipeline.agents.answering import Answering
from scan_pipeline.agents.failures import ReaderError, failure_of

C = TypeVar("C", bound=Callable[..., Any])

_TOLD = 5
"""Most arguments whose faults a failure names."""


class ReadersServer(MCPServer[Any]):
    """An MCP server whose tools refuse arguments they do not know.

    The SDK passes over those (mcp 2.3, `ArgModelBase`): a caller who writes `filter` for `where`
    would be given an exact count of everything, and quote it.

    Args:
        answering: shapes and logs failures.
        settings: of the SDK's server.
    """

    def __init__(self, answering: Answering, **settings: Any) -> None:
        self._answering, self._known = answering, dict[str, Tool]()
        super().__init__(**settings)

    def reader(self, *, name: str, annotations: ToolAnnotations | None = None) -> Callable[[C], C]:
        """Return what adds a function as a tool of that name."""

        def add(function: C) -> C:
            tool = self._tool_manager.add_tool(function, name=name, annotations=annotations)
            arguments = tool.fn_metadata.arg_model
            arguments.model_config["extra"] = "forbid"
            arguments.model_rebuild(force=True)
            tool.parameters = arguments.model_json_schema(by_alias=True)
            self._known[name] = tool
            return function

        return add

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Answer a call; what the SDK refuses, or breaks over, is a failure like any other."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if name not in self._known:
                raise
            return self._answering.refused(name, _failure(error.__cause__))


def _failure(cause: BaseException | None) -> ReaderError:
    if not isinstance(cause, ValidationError):
        return failure_of(cause if isinstance(cause, Exception) else RuntimeError())
    faults = [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg'].lower()}"
        for each in cause.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f"; and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
    return ReaderError("narrow", "arguments_unfit", "; ".join(faults[:_TOLD]) + more)
