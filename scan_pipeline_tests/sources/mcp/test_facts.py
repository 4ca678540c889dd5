"""Facts of MCP sources that contradict themselves."""

import json

import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.errors import ContractError
from scan_pipeline.sources.mcp.facts import McpToolSource
from scan_pipeline_tests.sources.mcp_servers import CURSOR, ENDPOINT

TOOL = {"tool": "list", "records_at": "items", "next": CURSOR}
NONE = {"tool": "list", "records_at": "items", "pages": "none"}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({**TOOL, "method": "tools/list"}, "exactly one of: tool, method"),
        ({"records_at": "items", "next": CURSOR}, "exactly one of: tool, method"),
        ({"tool": "list", "next": CURSOR}, "records_at"),
        ({"tool": "list", "records_at": "items"}, "exactly one of: next"),
        ({**TOOL, "pages": "none"}, "exactly one of: next"),
        ({**TOOL, "whole_when": [{"at": "more", "is": "false"}]}, "whole_when"),
        ({**NONE, "whole_when": [{"is": "null"}]}, "whole_when"),
        ({**NONE, "whole_when": [{"at": "items", "is": "empty_page"}]}, "empty answer"),
        ({**TOOL, "next": {**CURSOR, "by": "offset"}}, "no next.at"),
        ({**TOOL, "next": {"send_as": "c", "ends_when": [{"is": "null"}]}}, "next.at"),
        (
            {**TOOL, "next": {"by": "page", "send_as": "p", "ends_when": [{"is": "null"}]}},
            "needs at",
        ),
        (
            {**TOOL, "next": {**CURSOR, "ends_when": [{"at": "n", "is": "total_reached"}]}},
            "total_reached",
        ),
        (
            {
                **TOOL,
                "next": {
                    "by": "page",
                    "send_as": "p",
                    "first": "one",
                    "ends_when": [{"is": "empty_page"}],
                },
            },
            "first is a text",
        ),
        (
            {**TOOL, "next": {**CURSOR, "send_as": "filter.after"}, "arguments": {"filter": "x"}},
            "no object",
        ),
        ({"method": "tools/list", "records_at": "tools"}, "records_at"),
        ({"method": "tools/list", "count": {"at": "n", "exactness": "exact"}}, "count"),
        ({"method": "tools/list", "content": "text"}, "content"),
        ({**TOOL, "errors": [{"means": "retry"}]}, "errors"),
        ({**TOOL, "transport": {}}, "exactly one of: stdio, http"),
        ({**TOOL, "transport": {"http": {"url": "https://me:pw@mcp.example/"}}}, "credentials"),
        ({**TOOL, "transport": {"http": {"url": "mcp.example"}}}, "absolute"),
    ],
)
def test_facts_that_contradict_themselves_are_refused(facts, told):
    source = {"protocol": "mcp_tool", "transport": {"http": {"url": ENDPOINT}}, **facts}

    with pytest.raises(ContractError, match=told) as refused:
        TypeAdapter(McpToolSource).validate_json(json.dumps(source))

    assert "me:pw" not in str(refused.value)
