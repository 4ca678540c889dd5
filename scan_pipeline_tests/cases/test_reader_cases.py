"""The cases of the family `agent`, from the source's answer to what a reader may say of it.

The source is a scripted MCP server, walked to a receipt; the reader is an MCP client of the
readers' face over that receipt. What a case calls its reader's budget is the policy's page size.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from scan_pipeline.agents.policy import Limits, Policy, Principal, ScanPolicy, View
from scan_pipeline.agents.serving import create_desk, http_server
from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.server import running_app
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.readers.inclusion import prove_key
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.cases import field_styles
from scan_pipeline_tests.cases.replay import LIVE, field_case
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.sources.mcp_cases import played
from scan_pipeline_tests.sources.mcp_servers import scripted

TOKEN = "a reader's token"
COMPLETE = {"complete_no_match", "complete_aggregate"}

Ask = Callable[..., Awaitable[dict[str, Any]]]


def walked(identity: str, folder: Path) -> tuple[Scan, Workspace]:
    """Walk the scripted server of a case to its receipt."""
    case = next(each for each in played() if each.name == identity)
    server = scripted(folder, *case.answers)
    scan = parse_scan(
        {
            "name": "replayed",
            "source": {"protocol": "mcp_tool", "transport": server.transport, **case.source},
            "contract": {"key": [case.key], "consistency": "live", "accept": {"scope": LIVE}},
        }
    )
    workspace = Workspace(
        find_project(lake=str(folder / "lake"), cwd=folder, environ={}), environ={}
    )
    run_scan(scan, workspace=workspace)
    return scan, workspace


def told_to_a_reader(
    scan: Scan,
    workspace: Workspace,
    asking: Callable[[Ask], Awaitable[Any]],
    *,
    page_size: int = 50,
) -> Any:
    """Serve a project's receipts and ask over streamable HTTP, as one reader of everything."""
    reader = Principal(
        views={scan.name: ("whole",)}, token_sha256=(hashlib.sha256(TOKEN.encode()).hexdigest(),)
    )
    policy = Policy(
        principals={"reader": reader},
        scans={scan.name: ScanPolicy(views={"whole": View()}, shared=True)},
        limits=Limits(page_size=page_size),
    )
    desk = create_desk(workspace, find=lambda _: scan, policy=lambda: policy)

    async def session(url: str) -> Any:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):

            async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
                answer = await client.call_tool(tool, {**arguments})
                assert answer.structured_content is not None, answer.content
                return answer.structured_content

            return await asking(ask)

    app = http_server(desk, url="http://readers.example/mcp").streamable_http_app()
    with running_app(app, lifespan="on") as base_url:
        return asyncio.run(session(f"{base_url}/mcp"))


def refused(answer: dict[str, Any]) -> tuple[str, str] | None:
    """Return remedy and code of a failure, None for an answer."""
    failure = answer.get("failure")
    return None if failure is None else (failure["remedy"], failure["code"])


def test_c040_count_of_a_clamped_page_is_no_total(tmp_path: Path) -> None:
    """Rows, limit and total agree because all are the page: the whole opens to nobody."""
    told = field_case("C040")
    scan, workspace = walked("C040", tmp_path)

    async def asking(ask: Ask) -> tuple[Any, ...]:
        counted = await ask("aggregate", scan=scan.name, accept="observed_pages_only")
        return (
            await ask("aggregate", scan=scan.name),
            await ask("aggregate", scan=scan.name, accept=LIVE),
            counted,
            await ask("conclude", handle=counted["result_handle"]),
        )

    whole, live, counted, concluded = told_to_a_reader(scan, workspace, asking)

    assert told["expected"]["gate"] == "closed"
    assert refused(whole) == refused(live) == ("stop", "not_proven")
    assert counted["summary"]["population"] == told["expected"]["effective"]
    assert concluded["claim"] == "partial_aggregate"
    assert "no proven whole" in concluded["statement"]


def test_c122_what_is_stored_and_what_was_shown_are_two_facts(tmp_path: Path) -> None:
    told = field_case("C122")
    reader, budget = told["expected"]["reader"], told["scenario"]["config"]["reader_budget_rows"]
    scan, workspace = walked("C122", tmp_path)

    async def asking(ask: Ask) -> tuple[Any, ...]:
        opened = await ask("open_query", scan=scan.name, accept=LIVE, order=[{"field": "id"}])
        first = await ask("read_page", cursor=opened["first_cursor"], page_size=50)
        seen = {str(item["row"]): "no_match" for item in first["page"]["items"]}
        await ask("judge", handle=opened["result_handle"], verdicts=seen)
        concluded = await ask("conclude", handle=opened["result_handle"])
        rest = await ask("read_page", cursor=first["page"]["next_cursor"])
        return opened, first, concluded, rest

    opened, first, concluded, rest = told_to_a_reader(scan, workspace, asking, page_size=budget)

    shown = [item["values"]["id"] for item in first["page"]["items"]]
    following = [item["values"]["id"] for item in rest["page"]["items"]]
    assert opened["summary"]["matching_count"] == first["summary"]["matching_count"] == reader["of"]
    assert len(shown) == first["summary"]["returned_count"] == reader["shown"]
    assert first["summary"]["has_more"] is not reader["complete_view"]
    assert not first["limits"]["truncated"]
    assert following[0] == reader["next"]
    assert shown + following == told["expected"]["ids"]
    assert concluded["claim"] == "partial_no_match"
    assert f"{reader['shown']} of the {reader['of']}" in concluded["statement"]


@pytest.mark.parametrize("accept", [None, LIVE, "observed_pages_only"])
def test_c125_history_that_cannot_page_supports_no_word_of_absence(
    tmp_path: Path, accept: str | None
) -> None:
    """The agent wrote that a first message had never been sent; here nothing opens to it."""
    told = field_case("C125")
    scan, workspace = walked("C125", tmp_path)

    async def asking(ask: Ask) -> Any:
        more = {} if accept is None else {"accept": accept}
        first = [{"field": "id", "value": "1"}]
        return await ask("open_query", scan=scan.name, where=first, **more)

    answer = told_to_a_reader(scan, workspace, asking)

    assert told["expected"]["absence_claims"] is False
    assert refused(answer) == ("stop", "not_proven")


def test_c126_nothing_in_the_newest_rows_is_not_told_as_nothing(tmp_path: Path) -> None:
    told = field_case("C126")
    scan, workspace = walked("C126", tmp_path)

    async def asking(ask: Ask) -> tuple[Any, ...]:
        opened = await ask("open_query", scan=scan.name, accept="observed_pages_only")
        return (
            await ask("open_query", scan=scan.name),
            await ask("open_query", scan=scan.name, accept=LIVE),
            opened,
            await ask("conclude", handle=opened["result_handle"]),
        )

    whole, live, opened, concluded = told_to_a_reader(scan, workspace, asking)

    assert refused(whole) == refused(live) == ("stop", "not_proven")
    assert opened["summary"]["matching_count"] == len(told["expected"]["ids"])
    assert (concluded["claim"] in COMPLETE) is told["expected"]["absence_claims"]
    assert concluded["claim"] == "partial_no_match"


def absence_of(pending: str, scan: Scan, workspace: Workspace, *, accept: str | None) -> Any:
    async def asking(ask: Ask) -> Any:
        more = {} if accept is None else {"accept": accept}
        where = [{"field": "id", "value": pending}]
        opened = await ask("open_query", scan=scan.name, where=where, **more)
        return await ask("conclude", handle=opened["result_handle"])

    return told_to_a_reader(scan, workspace, asking)


def test_c101_live_walk_does_not_close_a_pending_row_as_absent(tmp_path: Path) -> None:
    """The walk finished and did not meet it; of a source that pins nothing that is all."""
    told = field_case("C101")
    (pending,) = told["scenario"]["previous_pending"]
    replay = field_styles.replays(told)[0]
    scan = parse_scan(dict(replay.attributes))
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    workspace = Workspace(project, environ={}, inner=replay.script)
    run_scan(scan, workspace=workspace)

    assert absence_of(pending, scan, workspace, accept=LIVE)["claim"] == "partial_no_match"
    with pytest.raises(GateClosedError):
        Collection(scan, workspace=workspace).latest()


def test_c101_complete_walk_closes_it_and_proves_the_absence(bench: Bench) -> None:
    told = field_case("C101")
    (pending,) = told["scenario"]["previous_pending"]
    records = told["scenario"]["responses"][0]["body"]["data"]
    night = bench.walk_records([[canonical_json(each) for each in records]])

    concluded = absence_of(pending, night.scan, night.workspace, accept=None)
    opened = night.collection.latest()
    proof = prove_key(opened, [pending], scan=night.scan, workspace=night.workspace)

    assert told["expected"]["pending_resolved"] == {pending: "absent_in_complete_scan"}
    assert concluded["claim"] == "complete_no_match"
    assert proof.result == "absent"
