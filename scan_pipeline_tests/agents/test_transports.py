"""The official client in front of `scan-pipeline serve` as a process: over stdio and over HTTP."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from scan_pipeline.agents.authentication import launching_user
from scan_pipeline_tests.agents.conftest import TOKENS, Asked, client_at, failure, rows_of

pytestmark = pytest.mark.long

COMMAND = ("-c", "from scan_pipeline.cli.main import main; main()")
SAYS = "serving agents at "


@dataclass
class Served:
    """A project whose server is a process, and who asks it."""

    folder: Path
    policy: dict[str, Any]
    over: str
    url: str | None = None

    @property
    def path(self) -> Path:
        return self.folder / "policy.yaml"

    def arguments(self, *options: str) -> list[str]:
        return [*COMMAND, "--project", str(self.folder), "serve", *options]

    def write(self, edit: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        """Put the policy, edited, in the place of the one that is there."""
        edit(self.policy)
        fresh = self.folder / "fresh.yaml"
        fresh.write_text(yaml.safe_dump(self.policy))
        fresh.replace(self.path)

    @asynccontextmanager
    async def asked_by(self, who: str, **environ: str) -> AsyncIterator[Asked]:
        """Connect as somebody: over stdio the launching user is theirs, over HTTP the token."""
        if self.over == "http":
            async with client_at(str(self.url), token=TOKENS[who]) as client:
                yield Asked(client)
            return

        def launched_by(policy: dict[str, Any]) -> None:
            for name, one in policy["principals"].items():
                one["local_users"] = [launching_user()] if name == who else [name]

        self.write(launched_by)
        async with self.launched("--policy", str(self.path), **environ) as ask:
            yield ask

    @asynccontextmanager
    async def launched(self, *options: str, **environ: str) -> AsyncIterator[Asked]:
        """Launch a server over stdio."""
        server = StdioServerParameters(
            command=sys.executable,
            args=self.arguments(*options),
            env={**os.environ, **environ},
            cwd=self.folder,
        )
        async with Client(stdio_client(server)) as client:
            yield Asked(client)


@pytest.fixture
def project(customers, policy, tmp_path) -> Served:
    """A project over the walked lake, with keys, ledger and log of its own."""
    walked = customers.workspace.project
    shutil.copytree(walked.keys, tmp_path / "data" / "keys")
    lines = {
        "lake": walked.lake,
        "keys": "data/keys",
        "trust": str(walked.trust),
        "dagster_home": "data/home",
    }
    told = "".join(f'{name} = "{value}"\n' for name, value in lines.items())
    (tmp_path / "pyproject.toml").write_text(f"[tool.scan_pipeline]\n{told}")
    served = Served(folder=tmp_path, policy=deepcopy(policy), over="stdio")
    served.policy["limits"] = {"page_size": 10, "response_bytes": 16_000}
    served.write()
    return served


@pytest.fixture(params=["stdio", "http"])
def served(project, request) -> Iterator[Served]:
    """The project served over either transport."""
    project.over = request.param
    if project.over == "stdio":
        yield project
        return
    arguments = project.arguments("--http", "--port", "0", "--policy", str(project.path))
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=project.folder, stderr=subprocess.PIPE, text=True
    )
    try:
        said = iter(process.stderr or ())
        project.url = next(line for line in said if SAYS in line).split(SAYS)[1].strip()
        yield project
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_pages_of_zero_one_exactly_a_page_and_one_over(served):
    async def asking():
        found = {}
        async with served.asked_by("eve") as ask:
            for count in (0, 1, 10, 11):
                ids = [f"customer-{n}" for n in range(1, count + 1)] or ["customer-0"]
                where = [{"field": "customer_id", "op": "in", "value": ids}]
                opened = await ask("open_query", scan="customers", where=where)
                items = await rows_of(ask, opened)
                told = await ask("conclude", handle=opened["result_handle"])
                found[count] = (
                    len({each["values"]["customer_id"] for each in items}),
                    told["claim"],
                )
        return found

    assert asyncio.run(asking()) == {
        0: (0, "complete_no_match"),
        1: (1, "verified_match"),
        10: (10, "verified_match"),
        11: (11, "verified_match"),
    }


def test_ties_across_pages_are_each_row_once(served):
    async def asking():
        order = [{"field": "region", "descending": True}, {"field": "status"}]
        async with served.asked_by("ana") as ask:
            opened = await ask("open_query", scan="customers", view="active", order=order)
            return opened["summary"]["matching_count"], await rows_of(ask, opened)

    count, items = asyncio.run(asking())
    regions = [each["values"]["region"] for each in items]

    assert len({each["values"]["customer_id"] for each in items}) == len(items) == count > 10
    assert regions == sorted(regions, reverse=True)


def test_nothing_of_one_principal_works_for_another_and_revocation_acts_at_once(served):
    async def asking():
        async with served.asked_by("ana") as ask:
            opened = await ask("open_query", scan="customers", view="screening")
            first = await ask("read_page", cursor=opened["first_cursor"])
        async with served.asked_by("bob") as ask:
            other = await ask("open_query", scan="customers", view="screening")
            stolen = [
                await ask("read_page", cursor=first["page"]["next_cursor"]),
                await ask("read_record", handle=opened["result_handle"], row=1),
                await ask("judge", handle=opened["result_handle"], verdicts={"1": "match"}),
                await ask("conclude", handle=opened["result_handle"]),
            ]
        async with served.asked_by("ana") as ask:
            second = await ask("read_page", cursor=first["page"]["next_cursor"])
            served.write(lambda policy: policy["principals"]["ana"].update(views={}))
            revoked = await ask("read_page", cursor=second["page"]["next_cursor"])
        return opened, other, stolen, second, revoked

    opened, other, stolen, second, revoked = asyncio.run(asking())

    assert opened["summary"]["population"] + other["summary"]["population"] == 1_000
    assert [failure(each) for each in stolen] == [("restart", "handle_unknown")] * 4
    assert second["page"]["number"] == 2
    assert failure(revoked) == ("ask_for_access", "not_granted")


def test_judgement_is_partial_before_the_contradiction_and_right_after_it(served):
    async def asking():
        told = []
        async with served.asked_by("ana") as ask:
            where = [{"field": "region", "value": "eu"}]
            opened = await ask("open_query", scan="customers", view="screening", where=where)
            handle, count = opened["result_handle"], opened["summary"]["matching_count"]
            cursor = opened["first_cursor"]
            while cursor:
                page = await ask("read_page", cursor=cursor)
                rows = [each["row"] for each in page["page"]["items"]]
                verdicts = {str(row): "match" if row == count else "no_match" for row in rows}
                await ask("judge", handle=handle, verdicts=verdicts)
                if page["page"]["number"] == 1 or rows[-1] == count:
                    told.append(await ask("conclude", handle=handle))
                cursor = page["page"]["next_cursor"]
        return told

    first, last = asyncio.run(asking())

    assert (first["claim"], first["inspected"]) == ("partial_no_match", 10)
    assert (last["claim"], last["matches"]) == ("verified_match", 1)


def test_five_pages_that_fit_and_a_sixth_that_does_not(served):
    limits = {"response_bytes": 4_000, "run_bytes": 23_000}
    served.write(lambda policy: policy.update(limits=limits))

    async def asking():
        given = []
        async with served.asked_by("ana") as ask:
            opened = await ask("open_query", scan="customers", view="screening")
            cursor = opened["first_cursor"]
            while not given or "page" in given[-1]:
                given.append(await ask("read_page", cursor=cursor))
                cursor = given[-1].get("page", {}).get("next_cursor")
        return given

    *pages, refused = asyncio.run(asking())

    assert len(pages) == 5
    assert failure(refused) == ("narrow", "run_budget_exhausted")


def test_without_a_policy_the_launching_user_reads_everything(project):
    async def asking():
        async with project.launched() as ask:
            listed = await ask("list_scans")
            opened = await ask("open_query", scan="customers")
            return listed, opened, await ask("read_page", cursor=opened["first_cursor"])

    listed, opened, page = asyncio.run(asking())

    assert "customers" in [each["scan"] for each in listed["scans"]]
    assert opened["summary"]["population"] == 1_000
    assert "email" in page["page"]["items"][0]["values"]


def test_launching_user_is_not_whom_the_environment_names(project):
    """LOGNAME and USER are whoever launches the server says; eve reads everything."""

    async def asking():
        async with project.asked_by("ana", LOGNAME="eve", USER="eve") as ask:
            return await ask("open_query", scan="customers", view="whole")

    assert failure(asyncio.run(asking())) == ("ask_for_access", "not_granted")
