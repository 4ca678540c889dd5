"""What refusals of an MCP server mean."""

from typing import Any

import pytest

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
)
from scan_pipeline.core.page import Position
from scan_pipeline_tests.sources.mcp_servers import CURSOR, scripted, structured, textual


def marked(**error: Any) -> dict[str, Any]:
    return structured({"error": error}, isError=True)


@pytest.mark.parametrize(
    ("means", "raised"),
    [
        ("expired", SnapshotExpiredError),
        ("consumed", ContinuationConsumedError),
        ("refused", AccessRefusedError),
        ("window", SourceWindowError),
        ("retry", SourceUnavailableError),
        ("wait", SourceUnavailableError),
    ],
)
@pytest.mark.parametrize("how", ["structured", "text", "code"])
def test_refusal_means_what_the_scan_file_says(tmp_path, mcp_source, means, raised, how):
    said = {
        "structured": {"result": marked(code="gone")},
        "text": {"result": textual('{"error":{"code":"gone"}}', isError=True)},
        "code": {"error": {"code": -32042, "message": "gone"}},
    }[how]
    told = {"code": -32042} if how == "code" else {"at": "error.code", "equals": "gone"}
    source = mcp_source(scripted(tmp_path, said), next=CURSOR, errors=[{**told, "means": means}])

    with pytest.raises(raised):
        source.fetch()

    assert len(source.refusals) == (3 if means in ("retry", "wait") else 1)
    assert all(each.position == Position() for each in source.refusals)


def test_error_result_that_nobody_describes_is_refused_and_ends_the_walk(tmp_path, mcp_source):
    source = mcp_source(
        scripted(tmp_path, {"result": marked(code="odd", secret="s3cr3t")}), next=CURSOR
    )

    with pytest.raises(ProtocolError) as refused:
        source.fetch()

    assert refused.value.code == "tool_error"
    assert source.reasons == ["tool_error"]
    assert "s3cr3t" not in str(refused.value)


def test_wait_that_the_tool_asks_for_is_kept(tmp_path, mcp_source):
    limited = {"at": "error.code", "equals": "slow", "means": "wait", "wait_at": "error.after"}
    server = scripted(
        tmp_path,
        {"times": 1, "result": marked(code="slow", after=12.5)},
        {"result": structured({"items": [1], "next": None})},
    )
    source = mcp_source(server, next=CURSOR, errors=[limited])

    page = source.fetch()

    assert (page.attempts, source.slept, source.source.waited) == (2, [12.5], 12.5)
    assert source.reasons == ["wait"]


def test_trouble_of_the_server_itself_is_tried_again(tmp_path, mcp_source):
    server = scripted(
        tmp_path,
        {"times": 2, "error": {"code": -32603, "message": "Internal error"}},
        {"result": structured({"items": [1], "next": None})},
    )
    source = mcp_source(server, next=CURSOR)

    assert source.fetch().attempts == 3
    assert source.reasons == ["server_error", "server_error"]


def test_wrong_request_is_not_tried_again_and_its_message_not_repeated(tmp_path, mcp_source):
    wrong = {"error": {"code": -32602, "message": "unknown cursor s3cr3t"}}
    source = mcp_source(scripted(tmp_path, wrong), next=CURSOR)

    with pytest.raises(ProtocolError, match="error -32602") as refused:
        source.fetch('"s3cr3t"')

    assert refused.value.code == "request_rejected"
    assert "s3cr3t" not in str(refused.value)
    assert source.reasons == ["rejected"]


@pytest.mark.parametrize("result", [{"content": "no list"}, {"structuredContent": {}}])
def test_answer_that_is_no_result_is_no_page(tmp_path, mcp_source, result):
    source = mcp_source(scripted(tmp_path, {"result": result}), next=CURSOR)

    with pytest.raises(ProtocolError) as refused:
        source.fetch()

    assert refused.value.code == "body_unparsable"
