"""Servers of the official MCP SDK over both transports, walked by scan files of users."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
import yaml

from scan_pipeline.core.errors import CancelledError, GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.real.datasette_server import need
from scan_pipeline_tests.sources.child_processes import processes, wait_for_word

pytestmark = pytest.mark.long

SERVER: Final = Path(__file__).with_name("mcp_customers_server.py")
LIVE: Final = "records_encountered_in_live_traversal"

REGISTRY: Final = """
name: customers
source:
  protocol: mcp_tool
  transport:
    stdio:
      command: {python}
      args: [-m, scan_pipeline.simulator.mcp_server]
      env: {{REGISTRY_TOKEN: {{env: REGISTRY_TOKEN}}}}
  tool: customer-registry.list
  records_at: items
  page_size: {{send_as: page_size, value: 500}}
  next: {{at: page.next_cursor, send_as: cursor, ends_when: [{{is: "null"}}]}}
  snapshot: {{at: collection.snapshot_id, send_as: snapshot_id}}
  count: {{at: collection.expected_count, exactness: exact}}
  identity: {{tool: customer-registry.identity, at: principal, tenant_at: tenant}}
  partition_counts:
    tool: customer-registry.partition_counts
    arguments: {{by: region}}
    at: partitions
    value: value
    count: count
contract:
  key: [customer_id]
  consistency: snapshot
  partition_by: region
  limits: {{over_count: 0.1}}
  expect:
    id_sequence: {{field: customer_id, prefix: customer-, last: count}}
    partition_counts: source
record_schema: scan_pipeline.defs.customers.schema.Customer
"""

CUSTOMERS_SERVER: Final = """
name: customers
source:
  protocol: mcp_tool
  transport:
    stdio: {{command: {python}, args: [{server}, tools, stdio, "{size}", {notes}]}}
  tool: {tool}
  records_at: {records_at}
{more}
contract:
  key: [customer_id]
  consistency: live
  accept: {{scope: records_encountered_in_live_traversal}}
"""

SLOWLY: Final = 'next: {at: next, send_as: cursor, ends_when: [{is: "null"}]}'


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need("mcp", environ=os.environ)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    return Workspace(project, environ={"REGISTRY_TOKEN": AUDITOR_TOKEN})


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Scan]:
    """Write a scan file and read it, changed here and there."""

    def written(text: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Scan:
        raw = yaml.safe_load(text)
        change(raw)
        path = tmp_path / "scan.yaml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False), encoding="utf-8")
        return read_scan_file(path).parse()

    return written


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start the customers' server over HTTP."""
    with ExitStack() as stack:

        def started(kind: str, size: int = 1_000) -> str:
            told = [kind, "http", str(size), str(tmp_path / "notes")]
            command = [sys.executable, str(SERVER), *told]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(process.terminate)
            if process.stdout is None:
                raise RuntimeError("the server's output is not piped; expected its endpoint there")
            return process.stdout.readline().decode().strip()

        yield started


@pytest.fixture
def of_customers(
    tmp_path: Path, read: Callable[..., Scan], endpoint: Callable[..., str]
) -> Callable[..., Scan]:
    """A scan file for one tool of the customers' server."""

    def written(
        tool: str,
        more: str,
        *,
        records_at: str = "customers",
        size: int = 1_000,
        over: str = "stdio",
    ) -> Scan:
        text = CUSTOMERS_SERVER.format(
            python=sys.executable,
            server=SERVER,
            notes=tmp_path / "notes",
            size=size,
            tool=tool,
            records_at=records_at,
            more="".join(f"  {line}\n" for line in more.strip().splitlines()),
        )

        def reached(raw: dict[str, Any]) -> None:
            if over == "http":
                raw["source"]["transport"] = {"http": {"url": endpoint("tools", size)}}

        return read(text, reached)

    return written


def registry_over_http(raw: dict[str, Any], endpoint: str) -> None:
    auth = {"bearer": {"env": "REGISTRY_TOKEN"}}
    raw["source"]["transport"] = {"http": {"url": endpoint, "auth": auth}}


def keys(frame: pl.LazyFrame) -> list[str]:
    return sorted(frame.select("customer_id").collect()["customer_id"])


def known(size: int) -> list[str]:
    return sorted(json.loads(row.raw)["customer_id"] for row in population("customers", size))


def test_registry_is_proven_whole_over_both_transports(workspace, read):
    """8,742 customers, the same tree over a pipe and over HTTP."""
    from scan_pipeline.simulator.mcp_server import running_mcp

    text = REGISTRY.format(python=sys.executable)
    piped = read(text)
    over_stdio = run_scan(piped, workspace=workspace).stored.receipt
    with running_mcp(Registry()) as url:
        over_http = run_scan(
            read(text, lambda raw: registry_over_http(raw, url)), workspace=workspace
        ).stored.receipt

    for receipt in (over_stdio, over_http):
        assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
            "verified",
            "all_records_in_snapshot",
            True,
        )
        assert receipt.unique_ids_observed == receipt.records_expected == CUSTOMERS
        assert {each.result for each in receipt.expectations} == {"met"}
        assert receipt.tool == "customer-registry.list"
        assert receipt.merkle.leaf_encoding == "canonical-json/v1"
        assert Audit("customers", receipt.scan_generation, workspace=workspace).run().agrees
    assert over_stdio.merkle.root == over_http.merkle.root
    whole = Collection(piped, workspace=workspace).generation(over_stdio.scan_generation).frame()
    assert keys(whole) == known(CUSTOMERS)


@pytest.mark.parametrize(
    ("tool", "more", "pages"),
    [
        (
            "window",
            """
page_size: {send_as: limit, value: 500}
next: {by: offset, send_as: offset, ends_when: [{at: total, is: total_reached}]}
count: {at: total, exactness: exact}
""",
            35,
        ),
        (
            "leaf",
            'next: {by: page, send_as: page, ends_when: [{at: has_more, is: "false"}]}',
            88,
        ),
    ],
)
def test_offsets_and_pages_reach_every_customer_and_promise_no_whole(
    workspace, of_customers, tool, more, pages
):
    """The window is clipped to 250 without a word, and nothing is lost."""
    scan = of_customers(tool, more, size=CUSTOMERS)

    receipt = run_scan(scan, workspace=workspace).stored.receipt
    collection = Collection(scan, workspace=workspace)

    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "unknown",
        LIVE,
        True,
    )
    assert receipt.pages_observed == pages
    opened = collection.partial(receipt.scan_generation, accept=LIVE).labelled_frame()
    assert keys(opened) == known(CUSTOMERS)
    with pytest.raises(GateClosedError):
        collection.generation(receipt.scan_generation)
    assert Audit("customers", receipt.scan_generation, workspace=workspace).run().agrees


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_list_method_is_followed_to_its_end(tmp_path, workspace, read, endpoint, over):
    args = [str(SERVER), "resources", "stdio", str(CUSTOMERS), str(tmp_path / "notes")]
    transport = (
        {"stdio": {"command": sys.executable, "args": args}}
        if over == "stdio"
        else {"http": {"url": endpoint("resources", CUSTOMERS)}}
    )
    facts = {
        "name": "resources",
        "source": {"protocol": "mcp_tool", "transport": transport, "method": "resources/list"},
        "contract": {"key": ["uri"], "consistency": "live", "accept": {"scope": LIVE}},
    }
    scan = read(yaml.safe_dump(facts))

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "unknown",
        LIVE,
        True,
    )
    assert (receipt.unique_ids_observed, receipt.pages_observed) == (CUSTOMERS, 9)
    assert receipt.tool == "resources/list"


@pytest.mark.parametrize(
    ("tool", "records_at", "more"),
    [("newest", "result", "pages: none"), ("newest_as_text", "$", "pages: none\ncontent: text")],
)
def test_bare_array_is_observed_pages_and_nothing_more(
    workspace, of_customers, tool, records_at, more
):
    scan = of_customers(tool, more, records_at=records_at)

    receipt = run_scan(scan, workspace=workspace).stored.receipt
    collection, generation = Collection(scan, workspace=workspace), receipt.scan_generation

    assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
        "unknown",
        "observed_pages_only",
        False,
    )
    assert (receipt.traversal, receipt.stop_reason) == ("interrupted", "source_window")
    assert not receipt.terminal_cursor_observed
    for closed in (
        lambda: collection.generation(generation),
        lambda: collection.partial(generation, accept=LIVE),
    ):
        with pytest.raises(GateClosedError):
            closed()
    rows = collection.partial(generation, accept="observed_pages_only").labelled_frame().collect()
    assert rows.height == 50


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_walk_cancelled_in_mid_call_is_told_to_the_server(tmp_path, of_customers, workspace, over):
    """The server's tool is cancelled, the walk ends with a receipt, and no child is left."""
    notes = tmp_path / "notes"
    scan = of_customers("slow", SLOWLY, over=over)

    def wishing(_: float) -> None:
        if notes.exists() and "begun" in notes.read_text(encoding="utf-8"):
            raise CancelledError("asked to end")

    cancelling = Workspace(workspace.project, environ={}, sleep=wishing)
    receipt = run_scan(scan, workspace=cancelling).stored.receipt

    assert (receipt.traversal, receipt.stop_reason) == ("cancelled", "cancelled")
    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", "observed_pages_only")
    assert receipt.pages_observed == 1
    wait_for_word(notes, "cancelled")
    assert not (over == "stdio" and processes(SERVER.name, str(notes)))


def test_signal_in_mid_call_leaves_a_receipt_and_no_child(tmp_path, of_customers):
    """The command line, asked to end while the server will not answer."""
    of_customers("slow", SLOWLY)
    notes = tmp_path / "notes"
    environ = {**os.environ, "SCAN_PIPELINE_LAKE": str(tmp_path / "lake")}
    run = "from scan_pipeline.cli.main import main; main()"
    command = [sys.executable, "-c", run, "run", "--json", "scan.yaml"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for_word(notes, "begun")
        process.send_signal(signal.SIGTERM)
        told, words = process.communicate(timeout=120)

    assert process.returncode == 1, words
    assert json.loads(told)["receipt"]["stop_reason"] == "cancelled"
    wait_for_word(notes, "cancelled")
    assert not processes(SERVER.name, str(notes))


@pytest.mark.long
def test_child_that_is_killed_in_mid_walk_is_started_again(workspace, read):
    """The registry's cursors say everything: the next child goes on where the last one was."""
    killed: list[int] = []

    def kill(told: Any) -> None:
        if told["pages"] == 5 and not killed:
            killed.extend(processes("simulator.mcp_server", parent=os.getpid()))
            for each in killed:
                os.kill(each, signal.SIGKILL)

    scan = read(REGISTRY.format(python=sys.executable))
    receipt = run_scan(scan, workspace=workspace, progress=kill).stored.receipt

    assert len(killed) == 1
    assert receipt.coverage_status == "verified"
    assert receipt.unique_ids_observed == CUSTOMERS
    assert receipt.refused_responses == 1


@pytest.mark.long
def test_walk_that_broke_off_is_taken_up_by_another_process(workspace, read):
    """A new source and a new child go on from the stored cursor, to the same tree."""

    class BrokenOffError(Exception):
        pass

    def break_off(told: Any) -> None:
        if told["pages"] == 7:
            raise BrokenOffError

    scan = read(REGISTRY.format(python=sys.executable))
    with pytest.raises(BrokenOffError):
        run_scan(scan, workspace=workspace, progress=break_off)
    taken_up = run_scan(scan, workspace=workspace).stored.receipt
    undisturbed = run_scan(scan, workspace=workspace).stored.receipt

    assert taken_up.coverage_status == undisturbed.coverage_status == "verified"
    assert taken_up.merkle.root == undisturbed.merkle.root
    assert taken_up.pages_observed == undisturbed.pages_observed == 18
