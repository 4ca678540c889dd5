"""Connections to MCP servers over streamable HTTP: rights, waits, redirects, sessions."""

from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
)
from scan_pipeline_tests.sources.mcp_servers import (
    CURSOR,
    ENDPOINT,
    ScriptedHttp,
    refuse,
    reply,
    structured,
)

PAGE = structured({"items": [1], "next": None})
BEARER = {"bearer": {"env": "TOKEN"}}


def http(**more: Any) -> dict[str, Any]:
    return {"http": {"url": ENDPOINT, **more}}


def test_token_goes_with_every_request(mcp_source):
    inner = ScriptedHttp(lambda *_: PAGE)
    source = mcp_source(http(auth=BEARER), next=CURSOR, inner=inner, environ={"TOKEN": "s3cr3t"})

    source.fetch()

    assert inner.methods() == ["server/discover", "tools/call"]
    assert {headers["authorization"] for _, headers in inner.requests} == {"Bearer s3cr3t"}


@pytest.mark.parametrize(
    ("status", "raised"), [(401, AccessRefusedError), (403, AccessRefusedError)]
)
@pytest.mark.parametrize("method", ["server/discover", "tools/call"])
def test_rights_that_http_refuses_are_told_as_such(mcp_source, status, raised, method):
    class Refusing(ScriptedHttp):
        def _handle(self, request: httpx2.Request) -> httpx2.Response:
            told = super()._handle(request)
            asked = self.requests[-1][0]["method"]
            refusing = asked == method or (asked == "initialize" and method != "tools/call")
            return httpx2.Response(status) if refusing else told

    source = mcp_source(http(), next=CURSOR, inner=Refusing(lambda *_: PAGE))

    with pytest.raises(raised):
        source.fetch()

    assert [(each.status, each.reason) for each in source.refusals] == [(status, "access_refused")]


def test_wait_that_http_asks_for_is_kept(mcp_source):
    def answer(message: dict[str, Any], time: int) -> Any:
        return PAGE if time > 1 else httpx2.Response(429, headers={"retry-after": "7"})

    source = mcp_source(http(), next=CURSOR, inner=ScriptedHttp(answer))

    assert source.fetch().attempts == 2
    assert (source.slept, source.source.waited) == ([7.0], 7.0)
    assert [(each.status, each.reason) for each in source.refusals] == [(429, "wait")]


def test_server_that_is_unwell_over_http_is_tried_again(mcp_source):
    source = mcp_source(http(), next=CURSOR, inner=ScriptedHttp(lambda *_: httpx2.Response(503)))

    with pytest.raises(SourceUnavailableError):
        source.fetch()

    assert [each.status for each in source.refusals] == [503, 503, 503]


@pytest.mark.parametrize(("status", "code"), [(200, -32602), (400, -32602)])
def test_json_rpc_error_says_more_than_the_status_beside_it(mcp_source, status, code):
    inner = ScriptedHttp(lambda message, _: refuse(message, code, status))
    source = mcp_source(
        http(), next=CURSOR, inner=inner, errors=[{"code": code, "means": "expired"}]
    )

    with pytest.raises(SnapshotExpiredError):
        source.fetch()

    assert [each.status for each in source.refusals] == [status]


@pytest.mark.parametrize(
    "target",
    [
        "https://elsewhere.example/mcp",
        "http://mcp.example/mcp",
        "https://mcp.example:444/",
        "https://elsewhere.example/told-path?told=query",
    ],
)
def test_redirect_elsewhere_is_not_followed(mcp_source, target):
    inner = ScriptedHttp(lambda *_: httpx2.Response(307, headers={"location": target}))
    source = mcp_source(http(auth=BEARER), next=CURSOR, inner=inner, environ={"TOKEN": "s3cr3t"})

    with pytest.raises(ProtocolError) as refused:
        source.fetch()

    assert refused.value.code == "destination_refused"
    assert "s3cr3t" not in str(refused.value)
    assert "told" not in str(refused.value)
    assert inner.methods().count("tools/call") == 1


def test_nobody_at_the_address_is_told_and_tried_again(mcp_source):
    def nobody(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    source = mcp_source(http(), next=CURSOR, inner=httpx2.MockTransport(nobody))

    with pytest.raises(SourceUnavailableError):
        source.fetch()

    assert source.reasons == ["not_connected"] * 3


def test_connection_that_breaks_in_a_call_is_opened_again(mcp_source):
    def answer(message: dict[str, Any], time: int) -> Any:
        if time == 1:
            raise httpx2.ReadError("broken")
        return PAGE

    inner = ScriptedHttp(answer)
    source = mcp_source(http(), next=CURSOR, inner=inner)

    assert source.fetch().attempts == 2
    assert source.reasons == ["connection_lost"]
    assert inner.methods() == ["server/discover", "tools/call"] * 2


def test_session_that_the_server_forgot_is_begun_again(mcp_source):
    """Handshake era: 404 to a request with a session id asks for a new session."""

    def answer(message: dict[str, Any], time: int) -> Any:
        match message["method"]:
            case "initialize":
                told = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "old", "version": "1"},
                }
                response = reply(message, told)
                response.headers["mcp-session-id"] = f"session-{time}"
                return response
            case "tools/call":
                return httpx2.Response(404) if time == 1 else PAGE
            case _:
                return httpx2.Response(405 if message["method"] in ("GET", "DELETE") else 202)

    class Old(ScriptedHttp):
        def _handle(self, request: httpx2.Request) -> httpx2.Response:
            told = super()._handle(request)
            message = self.requests[-1][0]
            return refuse(message, -32601) if message["method"] == "server/discover" else told

    inner = Old(answer)
    source = mcp_source(http(), next=CURSOR, inner=inner)

    assert source.fetch().attempts == 2
    assert [(each.status, each.reason) for each in source.refusals] == [(404, "session_gone")]
    sessions = [
        headers["mcp-session-id"]
        for message, headers in inner.requests
        if message["method"] == "tools/call"
    ]
    assert sessions == ["session-1", "session-2"]


def test_argument_that_is_wanted_in_a_header_too_is_put_there(mcp_source):
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region}}

    def answer(message: dict[str, Any], time: int) -> Any:
        if message["method"] == "tools/list":
            return {"tools": [{"name": "list", "inputSchema": schema}]}
        return PAGE if time > 1 else refuse(message, -32020, 400)

    inner = ScriptedHttp(answer)
    source = mcp_source(http(), next=CURSOR, inner=inner, arguments={"region": "eu"})

    assert source.fetch().attempts == 1
    assert inner.methods()[1:] == ["tools/call", "tools/list", "tools/call"]
    assert inner.requests[-1][1]["mcp-param-region"] == "eu"


def test_transport_that_cannot_wait_is_refused(mcp_source):
    class Sync(httpx2.BaseTransport):
        pass

    source = mcp_source(http(), next=CURSOR, inner=Sync())

    with pytest.raises(ConfigurationError, match="Sync"):
        source.fetch()
