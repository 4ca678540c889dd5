"""A desk over a walked registry, with a policy of two tenants, and MCP clients in front of it."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.policy import load_policy
from scan_pipeline.agents.serving import create_desk, http_server, stdio_server
from scan_pipeline.simulator.server import running_app
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import SteppingClock

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)

TOKENS = {"ana": "ana-secret-token", "bob": "bob-secret-token", "eve": "eve-secret-token"}

POLICY: dict[str, Any] = {
    "tenants": ["acme", "globex"],
    "scans": {
        "customers": {
            "tenant_field": "tenant",
            "views": {
                "screening": {"hide": ["email", "notes"]},
                "active": {"rows": [{"field": "status", "value": "active"}]},
                "bounded": {"needs_one_of": ["customer_id", "region"]},
                "whole": {},
            },
        }
    },
    "principals": {
        "ana": {"tenant": "acme", "views": {"customers": ["screening", "active"]}},
        "bob": {"tenant": "globex", "views": {"customers": ["screening", "bounded"]}},
        "eve": {"views": {"customers": ["whole"]}},
    },
}


Asking = Callable[["Asked"], Awaitable[Any]]


@dataclass
class Readers:
    """A desk, its policy file, and ways to ask."""

    desk: Desk
    walked: Any
    path: Path

    @property
    def clock(self) -> SteppingClock:
        return self.desk.workspace.clock

    @property
    def folder(self) -> Path:
        """Where ledger and log lie."""
        return self.desk.workspace.project.agents

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of the log of calls."""
        lines = (self.folder / "audit.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        """Edit the policy file in place."""
        policy = yaml.safe_load(self.path.read_text())
        edit(policy)
        self.path.write_text(yaml.safe_dump(policy))

    def ask(self, asking: Asking, *, who: str = "ana") -> Any:
        """Ask as a user of this machine, in this process."""

        async def session() -> Any:
            async with Client(stdio_server(self.desk, user=who)) as client:
                return await asking(Asked(client))

        return asyncio.run(session())

    def over_http(self, asking: Asking, *, who: str = "ana") -> Any:
        """Ask over streamable HTTP as somebody."""

        async def session(url: str) -> Any:
            async with client_at(url, token=TOKENS.get(who, who)) as client:
                return await asking(Asked(client))

        app = http_server(self.desk, url="http://readers.example/mcp").streamable_http_app()
        with running_app(app, lifespan="on") as base_url:
            return asyncio.run(session(f"{base_url}/mcp"))


@dataclass
class Asked:
    """One client; a call gives structured content, a failure its remedy and code."""

    client: Client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(tool, arguments)
        assert answer.structured_content is not None, answer.content
        assert answer.is_error == ("failure" in answer.structured_content)
        return answer.structured_content


@asynccontextmanager
async def client_at(url: str, *, token: str):
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def failure(answer: dict[str, Any]) -> tuple[str, str]:
    """Return remedy and code of a failure."""
    return answer["failure"]["remedy"], answer["failure"]["code"]


def policy_of(scan: str) -> dict[str, Any]:
    """Return a policy that lets eve read a scan whole."""
    return {
        "scans": {scan: {"views": {"whole": {}}}},
        "principals": {"eve": {"local_users": ["eve"], "views": {scan: ["whole"]}}},
    }


def readers_of(walked: Any, policy: dict[str, Any], folder: Path) -> Readers:
    """Return a desk over what was walked, with a ledger, a log and a policy of its own."""
    project = walked.workspace.project
    keys = folder / "home" / "keys"
    shutil.copytree(project.keys, keys)
    workspace = Workspace(
        replace(project, keys=keys),
        environ={},
        clock=SteppingClock(NOW),
        sleep=lambda _: None,
    )
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(policy))
    desk = create_desk(workspace, find=lambda _: walked.scan, policy=lambda: load_policy(path))
    return Readers(desk=desk, walked=walked, path=path)


@pytest.fixture(scope="module")
def customers(shared_bench):
    """A verified walk of 1,000 customers, which the tests of a module only read."""
    return shared_bench.walk()


@pytest.fixture
def policy() -> dict[str, Any]:
    """The policy, with everybody's token and name on this machine."""
    policy = deepcopy(POLICY)
    for name, one in policy["principals"].items():
        one["token_sha256"] = [hashlib.sha256(TOKENS[name].encode()).hexdigest()]
        one["local_users"] = [name]
    return policy


@pytest.fixture
def readers(customers, policy, tmp_path) -> Readers:
    """A desk over the walk that the module shares."""
    return readers_of(customers, policy, tmp_path)


@pytest.fixture
def own_readers(bench, policy, tmp_path) -> Readers:
    """A desk over a walk of the test's own, which it may add to or spoil."""
    return readers_of(bench.walk(), policy, tmp_path)


@pytest.fixture
def things(bench, tmp_path) -> Callable[..., Readers]:
    """Makes a desk over records that a test lays down, all of which eve sees."""

    def make(pages: Sequence[Sequence[bytes]], edits: Any = None, **changes: Any) -> Readers:
        walked = bench.walk_records(pages, edits)
        return readers_of(walked, {**policy_of("things"), **changes}, tmp_path)

    return make


async def rows_of(ask: Asked, opened: dict[str, Any], page_size: int | None = None) -> list[Any]:
    """Return all items of a question, page by page."""
    cursor, items = opened["first_cursor"], list[Any]()
    while cursor:
        page = await ask("read_page", cursor=cursor, page_size=page_size)
        assert "page" in page, page
        items += page["page"]["items"]
        cursor = page["page"]["next_cursor"]
    return items
