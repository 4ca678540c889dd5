"""Opens MCP sources on scripted servers."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Next, Page, Position, Refusal
from scan_pipeline.sources.mcp.facts import McpToolSource
from scan_pipeline.sources.mcp_tool import McpTool
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline_tests.sources.mcp_servers import Scripted

SURROUNDINGS = ("environ", "inner", "sleep", "retries")


class Opened:
    """An open source, and what it told of refusals and slept."""

    def __init__(self, facts: McpToolSource, **surroundings: Any) -> None:
        self.slept: list[float] = []
        self.refusals: list[Refusal] = []
        kept = {
            "environ": {},
            "inner": None,
            "clock": lambda: datetime(2026, 11, 30, tzinfo=UTC),
            "sleep": self.sleep,
            "retries": Retries(attempts=3, timeout=20.0),
            **surroundings,
        }
        self.source = McpTool(facts, Surroundings(**kept))

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.slept.append(seconds)

    def fetch(self, token: str | None = None, **position: Any) -> Page:
        return self.source.fetch(Position(token=token, **position), refused=self.refusals.append)

    def walk(self) -> list[Page]:
        pages = [self.fetch()]
        while isinstance(pages[-1].continuation, Next):
            pages.append(self.fetch(pages[-1].continuation.token))
        return pages

    @property
    def reasons(self) -> list[str]:
        return [each.reason for each in self.refusals]


@pytest.fixture
def mcp_source() -> Iterator[Callable[..., Opened]]:
    """Opens sources on facts, and closes them."""
    with ExitStack() as stack:

        def open_(transport: Scripted | dict[str, Any], /, **facts: Any) -> Opened:
            told = transport.transport if isinstance(transport, Scripted) else transport
            surroundings = {name: facts.pop(name) for name in SURROUNDINGS if name in facts}
            source = {"protocol": "mcp_tool", "transport": told, "records_at": "items", **facts}
            if not {"method", "tool"} & source.keys():
                source["tool"] = "list"
            if "method" in source:
                del source["records_at"]
            one = Opened(
                TypeAdapter(McpToolSource).validate_json(json.dumps(source)), **surroundings
            )
            stack.callback(one.source.close)
            return one

        yield open_
