"""The official client's transport below ours, over real ports."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.elasticsearch import SearchEngine, create_search_app
from scan_pipeline.simulator.search_faults import SearchFault
from scan_pipeline.simulator.server import running_app
from scan_pipeline.sources.elastic.facts import ClusterFacts
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.sources.search_engines import search


def nobody() -> str:
    """Return an address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def answering_with(raw: bytes) -> Iterator[str]:
    """Serve these bytes to every connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(raw)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def test_cluster_is_walked_whole_though_its_first_node_is_down(bench: Bench) -> None:
    """Our retry asks again; whom it asks is the pool's to say. The bytes are those as sent."""
    engine = SearchEngine(size=250, clock=bench.clock)
    straight = search(bench, SearchEngine(size=250, clock=bench.clock))

    with running_app(create_search_app(engine)) as node:
        edits = {"source.url": nobody(), "source.cluster": {"nodes": [node]}}
        walked = search(bench, engine, edits, inner=None)

    assert walked.receipt.coverage_status == "verified", walked.receipt.reasons
    assert walked.receipt.merkle.root == straight.receipt.merkle.root
    assert engine.points.open == {}
    assert walked.audit_agrees


def test_retries_are_ours_and_each_refusal_is_told(bench: Bench) -> None:
    fault = SearchFault(kind="rejected", page=2, last_attempt=2)
    engine = SearchEngine(size=250, clock=bench.clock, faults=(fault,))

    with running_app(create_search_app(engine)) as node:
        edits = {"source.url": node, "source.cluster": {}}
        walked = search(bench, engine, edits, inner=None)

    assert walked.receipt.coverage_status == "verified", walked.receipt.reasons
    assert walked.receipt.refused_responses == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n",
            "redirect",
        ),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"username": "a"', "was lost"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "not the JSON"),
    ],
    ids=["redirect", "cut", "html"],
)
def test_what_is_no_answer_stays_none(bench: Bench, raw: bytes, reason: str) -> None:
    engine = SearchEngine(size=1, clock=bench.clock)

    with answering_with(raw) as node:
        walked = search(bench, engine, {"source.url": node, "source.cluster": {}}, inner=None)

    assert walked.receipt.coverage_status in ("failed", "unknown")
    assert reason in " ".join(str(each.found) for each in walked.receipt.findings.first)


@pytest.mark.parametrize(
    "node", ["http://user:secret@node:9200", "http://node:9200/path", "node:9200"]
)
def test_a_node_is_an_address_and_nothing_else(node: str) -> None:
    with pytest.raises(ContractError) as refused:
        ClusterFacts(nodes=(node,))

    assert "secret" not in str(refused.value)
