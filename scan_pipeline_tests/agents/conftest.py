"""A desk over a walked registry, with a policy of two tenants, and MCP clients in front of it."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.policy import load_policy
from scan_pipeline.agents.serving import create_desk, http_server
from scan_pipeline.simulator.server import running_app

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


@dataclass
class Readers:
    """A desk, its policy file, and ways to ask."""

    desk: Desk
    walked: Any
    path: Path

    def change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        """Edit the policy file in place."""
        policy = yaml.safe_load(self.path.read_text())
        edit(policy)
        self.path.write_text(yaml.safe_dump(policy))

    def over_http(self, asking: Callable[["Asked"], Awaitable[Any]], *, who: str = "ana") -> Any:
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


@pytest.fixture
def readers(bench, tmp_path) -> Iterator[Readers]:
    """A verified walk of 1,000 customers behind the policy."""
    walked = bench.walk()
    policy = {
        **POLICY,
        "principals": {name: dict(one) for name, one in POLICY["principals"].items()},
    }
    for name, token in TOKENS.items():
        policy["principals"][name]["token_sha256"] = [hashlib.sha256(token.encode()).hexdigest()]
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy))
    desk = create_desk(
        walked.workspace, find=lambda _: walked.scan, policy=lambda: load_policy(path)
    )
    return Readers(desk=desk, walked=walked, path=path)
