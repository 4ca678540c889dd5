"""The registry as an MCP server: what its tools answer, read by the SDK's own client."""

import json
import os
import sys
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from scan_pipeline.simulator.answer_faults import (
    ConnectionCut,
    Delayed,
    ErrorEnvelope,
    Failing,
    LoginPage,
    MemberDoubled,
    ResponseLost,
)
from scan_pipeline.simulator.faults import Fault, SnapshotExpired
from scan_pipeline.simulator.mcp_server import create_mcp_server, running_mcp
from scan_pipeline.simulator.principals import ANALYST_TOKEN, AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.transport import SimulatorTransport

LIST = "customer-registry.list"


def ask(server: Any, *calls: tuple[str, dict[str, Any]], timeout_s: float | None = None) -> list:
    """Call tools one after another over one connection."""

    async def asking() -> list:
        async with Client(server, cache=None, read_timeout_seconds=timeout_s) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(asking)


def served(*faults: Fault, size: int = 1_000, token: str | None = AUDITOR_TOKEN, **script: Any):
    registry = Registry(size=size, script=Script(faults=faults, **script))
    return create_mcp_server(registry, token=token)


def test_page_is_that_of_the_http_face_and_says_what_it_represents():
    registry = Registry(size=1_000)
    client = httpx2.Client(
        transport=SimulatorTransport(registry),
        headers={"authorization": f"Bearer {AUDITOR_TOKEN}"},
        base_url="simulator://registry",
    )
    pinned = {"page_size": "3", "region": "eu"}
    snapshot = client.get("/v1/customers", params=pinned).json()["collection"]["snapshot_id"]
    body = client.get("/v1/customers", params={**pinned, "snapshot_id": snapshot}).content

    (result,) = ask(
        create_mcp_server(registry, token=AUDITOR_TOKEN),
        (LIST, {"page_size": 3, "region": "eu", "snapshot_id": snapshot}),
    )

    assert result.content[0].text.encode() == b'{"represents":"page",' + body[1:]
    assert result.structured_content == {"represents": "page", **json.loads(body)}
    assert not result.is_error


def test_every_page_is_reached_by_its_cursor_under_its_snapshot():
    async def walk() -> list[str]:
        seen: list[str] = []
        following: dict[str, Any] = {}
        async with Client(served(size=250), cache=None) as client:
            while True:
                result = await client.call_tool(LIST, {"page_size": 100, **following})
                content = result.structured_content
                seen += [item["customer_id"] for item in content["items"]]
                if content["page"]["next_cursor"] is None:
                    return seen
                following = {
                    "cursor": content["page"]["next_cursor"],
                    "snapshot_id": content["collection"]["snapshot_id"],
                }

    assert anyio.run(walk) == [f"customer-{number}" for number in range(1, 251)]


def test_tools_beside_the_list_answer_as_their_http_neighbours():
    counts, mark, who, cases = ask(
        served(size=100),
        ("customer-registry.partition_counts", {"by": "region", "status": "active"}),
        ("customer-registry.high_water_mark", {}),
        ("customer-registry.identity", {}),
        (LIST, {"collection": "support_cases", "page_size": 1}),
    )

    assert counts.structured_content["represents"] == "counts"
    total = sum(each["count"] for each in counts.structured_content["partitions"])
    assert counts.structured_content["collection"]["expected_count"] == total
    assert mark.structured_content == {"represents": "high_water_mark", "high_water_mark": 100}
    assert who.structured_content["principal"] == "auditor@registry.example"
    assert "case_id" in cases.structured_content["items"][0]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Failing(page=1), {"status": 503, "code": "service_unavailable"}),
        (
            Failing(page=1, status=429, retry_after_s=7),
            {"status": 429, "code": "too_many_requests", "retry_after_s": 7},
        ),
        (SnapshotExpired(page=1), {"status": 410, "code": "snapshot_expired"}),
    ],
)
def test_refusal_is_a_result_marked_as_an_error(fault, error):
    (result,) = ask(served(fault), (LIST, {}))

    assert result.is_error
    assert error.items() <= result.structured_content["error"].items()
    assert json.loads(result.content[0].text) == result.structured_content


def test_wait_told_as_a_date_comes_as_seconds_too():
    dated = Failing(page=1, status=429, retry_after_s=1_000, retry_after_form="http_date")

    (result,) = ask(served(dated), (LIST, {}))

    assert 990 < result.structured_content["error"]["retry_after_s"] <= 1_000


def test_arguments_that_the_registry_does_not_know_are_refused():
    unknown, bad = ask(served(), (LIST, {"page_size": "many"}), (LIST, {"cursor": "nonsense"}))

    assert unknown.structured_content["error"]["code"] == "invalid_parameter"
    assert bad.structured_content["error"]["status"] == 400


def test_answer_that_is_no_json_is_a_text_alone():
    (result,) = ask(served(LoginPage(page=1)), (LIST, {}))

    assert result.structured_content is None
    assert "<html" in result.content[0].text.lower()


def test_error_told_as_success_is_not_marked():
    (result,) = ask(served(ErrorEnvelope(page=1)), (LIST, {}))

    assert not result.is_error
    assert "error" in result.structured_content


def test_doubled_member_is_in_the_text_and_lost_in_the_structure():
    (result,) = ask(served(MemberDoubled(page=1)), (LIST, {}))

    assert result.content[0].text.count('"items":') == 2
    assert result.structured_content["items"] == []


@pytest.mark.parametrize("fault", [ConnectionCut(page=1), ResponseLost(page=1)])
def test_answer_that_is_lost_never_comes(fault):
    registry = Registry(size=10, script=Script(faults=(fault,)))

    with running_mcp(registry) as endpoint, pytest.raises(ExceptionGroup) as given_up:
        ask(WithToken(endpoint, AUDITOR_TOKEN), (LIST, {}), timeout_s=0.5)

    assert given_up.group_contains(MCPError, match="timed out")


def test_delayed_answer_comes_late():
    (result,) = ask(served(Delayed(page=1, seconds=0.01)), (LIST, {}))

    assert result.structured_content["represents"] == "page"


@pytest.mark.parametrize("json_response", [False, True])
def test_token_of_each_request_says_who_asks_over_http(json_response):
    with running_mcp(Registry(size=1_000), json_response=json_response) as endpoint:
        whole, part, none = (
            ask(WithToken(endpoint, token), (LIST, {}))[0]
            for token in (AUDITOR_TOKEN, ANALYST_TOKEN, None)
        )

    assert whole.structured_content["collection"]["expected_count"] == 1_000
    assert part.structured_content["collection"]["expected_count"] == 591
    assert none.structured_content["error"]["status"] == 401


def test_token_of_the_process_says_who_asks_over_stdio(tmp_path):
    script = tmp_path / "script.json"
    script.write_text('{"faults": [{"kind": "short_page", "page": 1, "rows": 3}]}')
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "scan_pipeline.simulator.mcp_server", "--size", "20", "--script", str(script)],
        env={"REGISTRY_TOKEN": ANALYST_TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    page, who = ask(command, (LIST, {}), ("customer-registry.identity", {}))

    assert len(page.structured_content["items"]) == 3
    assert who.structured_content["principal"] == "analyst@acme.example"


class WithToken:
    """A transport for one connection that sends a token along."""

    def __init__(self, endpoint: str, token: str | None) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._client = httpx2.AsyncClient(headers=headers, trust_env=False)
        self._streams = streamable_http_client(endpoint, http_client=self._client)

    async def __aenter__(self) -> Any:
        return await self._streams.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._streams.__aexit__(*error)
        await self._client.aclose()
