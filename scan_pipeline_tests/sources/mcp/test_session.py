"""Connections to MCP servers over stdio: lost, cancelled, closed, forgotten."""

import json
import subprocess
import sys
import threading

import pytest

from scan_pipeline.core.errors import (
    CancelledError,
    ConfigurationError,
    ContinuationConsumedError,
    SourceUnavailableError,
)
from scan_pipeline.core.operation import Retries
from scan_pipeline_tests.sources.child_processes import alive, wait_for
from scan_pipeline_tests.sources.mcp_servers import CURSOR, scripted, structured

ENDS = {"times": 1, "action": "exit"}
LAST = {"result": structured({"items": [2], "next": None})}


def test_child_that_ends_in_a_call_is_started_again(tmp_path, mcp_source):
    source = mcp_source(server := scripted(tmp_path, ENDS, LAST), next=CURSOR)

    page = source.fetch()

    assert (page.attempts, source.reasons) == (2, ["connection_lost"])
    assert len(server.children) == 2


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [("single_use", ["connection_lost"]), ("connection_bound", ["connection_lost"])],
)
def test_continuation_that_a_lost_answer_may_have_used_up_ends_the_walk(
    tmp_path, mcp_source, kind, reasons
):
    first = {"when": {"cursor": None}, "result": structured({"items": [1], "next": "a"})}
    server = scripted(tmp_path, first, ENDS, LAST)
    source = mcp_source(server, next=CURSOR, continuation=kind)

    with pytest.raises(ContinuationConsumedError):
        source.walk()

    assert source.reasons == reasons


def test_cursor_of_an_older_list_method_dies_with_its_session(tmp_path, mcp_source):
    """Before revision 2026-07-28 cursors were not to be kept across sessions."""
    first = {"when": {"cursor": None}, "result": {"resources": [], "nextCursor": "a"}}
    server = scripted(tmp_path, first, ENDS, {"result": {"resources": []}})
    source = mcp_source(server, method="resources/list")

    with pytest.raises(ContinuationConsumedError, match="has ended"):
        source.walk()


def test_answer_that_never_comes_is_told_to_the_server_and_asked_for_again(tmp_path, mcp_source):
    server = scripted(tmp_path, {"times": 1, "action": "hang"}, LAST)
    source = mcp_source(server, next=CURSOR, retries=Retries(attempts=2, timeout=1.0))

    page = source.fetch()

    assert (page.attempts, source.reasons) == (2, ["timed_out"])
    assert len(server.told("notifications/cancelled")) == 1


def test_server_that_does_not_speak_the_protocol_is_not_to_be_had(tmp_path, mcp_source):
    quits = {"stdio": {"command": sys.executable, "args": ["-c", "print('hello')"]}}
    source = mcp_source(quits, next=CURSOR)

    with pytest.raises(SourceUnavailableError, match="gave up after 3"):
        source.fetch()

    assert source.reasons == ["connection_lost"] * 3


def test_program_that_is_not_there_is_named(mcp_source):
    source = mcp_source({"stdio": {"command": "no-such-program-here"}}, next=CURSOR)

    with pytest.raises(ConfigurationError, match="no-such-program-here"):
        source.fetch()


# --------------------------------------------------------------------- secrets and ends


def test_secret_is_resolved_when_the_child_starts_and_not_before(tmp_path, mcp_source):
    server = scripted(tmp_path, LAST)
    transport = server.transport
    transport["stdio"]["env"] = {"TOKEN": {"env": "SERVER_TOKEN"}}
    source = mcp_source(transport, next=CURSOR, environ={"SERVER_TOKEN": "s3cr3t"})

    source.fetch()

    assert server.lines[0]["token"] == "s3cr3t"
    assert "s3cr3t" not in repr(source.source.facts)


def test_missing_secret_starts_nothing(tmp_path, mcp_source):
    server = scripted(tmp_path, LAST)
    transport = server.transport
    transport["stdio"]["env"] = {"TOKEN": {"env": "SERVER_TOKEN"}}
    source = mcp_source(transport, next=CURSOR)

    with pytest.raises(ConfigurationError, match="SERVER_TOKEN"):
        source.fetch()

    assert server.lines == []


@pytest.mark.parametrize("wish", [CancelledError("asked to end"), KeyboardInterrupt()])
def test_walk_cancelled_in_mid_call_tells_the_server_and_leaves_no_child(
    tmp_path, mcp_source, wish
):
    server = scripted(tmp_path, {"action": "hang"})

    def pause(seconds: float) -> None:
        if server.asked:
            raise wish

    source = mcp_source(server, next=CURSOR, sleep=pause)
    with pytest.raises(type(wish)):
        source.fetch()
    source.source.close()

    (cancelled,) = server.told("notifications/cancelled")
    assert "requestId" in cancelled
    assert source.reasons == []
    assert not alive(server.children[0])


def test_closing_ends_the_child_and_the_loop(tmp_path, mcp_source):
    source = mcp_source(server := scripted(tmp_path, LAST), next=CURSOR)
    source.fetch()

    source.source.close()
    source.source.close()

    assert server.lines[-1] == {"eof": server.children[0]}
    assert not alive(server.children[0])
    assert not [each for each in threading.enumerate() if each.name == "mcp session"]


@pytest.mark.long
def test_child_that_will_not_end_is_ended(tmp_path, mcp_source):
    source = mcp_source(server := scripted(tmp_path, LAST, stubborn=True), next=CURSOR)
    source.fetch()

    source.source.close()

    assert not alive(server.children[0])


def test_walk_cancelled_while_it_connects_leaves_no_child(tmp_path, mcp_source):
    started = tmp_path / "started"
    silent = (
        "import os, pathlib, sys, time; "
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)"
    )

    def pause(seconds: float) -> None:
        if started.exists() and started.read_text():
            raise CancelledError("asked to end")

    transport = {"stdio": {"command": sys.executable, "args": ["-S", "-c", silent, str(started)]}}
    source = mcp_source(transport, next=CURSOR, sleep=pause)
    with pytest.raises(CancelledError):
        source.fetch()
    source.source.close()

    wait_for(lambda: not alive(int(started.read_text())))


def test_sdk_is_paid_for_by_the_first_call_alone():
    """Scan files are parsed, and stored pages taken apart, without it."""
    parse = "import sys, scan_pipeline.sources.mcp_tool; print('mcp' in sys.modules)"

    told = subprocess.run(
        [sys.executable, "-c", parse], capture_output=True, check=True, timeout=120
    )

    assert told.stdout == b"False\n"


def test_sdk_that_is_not_installed_is_named(tmp_path, mcp_source, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("scan_pipeline.sources.mcp.")]:
        if module.endswith(("session", "connection")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "mcp", None)
    source = mcp_source(scripted(tmp_path, LAST), next=CURSOR)

    with pytest.raises(ConfigurationError, match=r"pip install 'scan-pipeline\[mcp_tool\]'"):
        source.fetch()


def test_source_that_asks_nothing_starts_nothing(tmp_path, mcp_source):
    """Later stages open sources to take bodies apart."""
    source = mcp_source(server := scripted(tmp_path, LAST), next=CURSOR)

    assert source.source.records(b'{"a":1}\n{"a":2}') == [b'{"a":1}', b'{"a":2}']
    source.source.close()

    assert server.lines == []


FORGETFUL = """
import json, sys, time
from datetime import UTC, datetime
from pydantic import TypeAdapter
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Position
from scan_pipeline.sources.mcp.facts import McpToolSource
from scan_pipeline.sources.mcp_tool import McpTool
from scan_pipeline.sources.surroundings import Surroundings

facts = TypeAdapter(McpToolSource).validate_json(sys.argv[1])
around = Surroundings(
    environ={}, inner=None, clock=lambda: datetime.now(UTC), sleep=time.sleep, retries=Retries()
)
source = McpTool(facts, around)
print(source.fetch(Position(), refused=print).records)
"""


def test_interpreter_ends_although_nobody_closed(tmp_path):
    server = scripted(tmp_path, LAST)
    facts = {
        "protocol": "mcp_tool",
        "transport": server.transport,
        "tool": "list",
        "records_at": "items",
        "next": CURSOR,
    }

    ended = subprocess.run(
        [sys.executable, "-c", FORGETFUL, json.dumps(facts)],
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, b"1\n"), ended.stderr
    wait_for(lambda: not alive(server.children[0]))
