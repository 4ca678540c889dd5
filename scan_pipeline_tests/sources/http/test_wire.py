"""The network below: no answer outlives its deadline, however slowly it comes."""

import itertools
from datetime import UTC, datetime

import httpx2
import pytest

from scan_pipeline.core.errors import SourceUnavailableError, TimeLimitError
from scan_pipeline.core.operation import Retries
from scan_pipeline.sources.http.network import Network
from scan_pipeline.sources.http.transport import Call, Transport, read_json
from scan_pipeline.sources.http.wire import Wire
from scan_pipeline_tests.sources.http.listeners import dripping, listening, whole
from scan_pipeline_tests.sources.over_http import walk

SOURCE = {
    "protocol": "page_token",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
}
FIRST = b'{"items":[{"id":"1"}],"next":"k"}'


def _head():
    return itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"x-pad: 1\r\n"))


def _body():
    return itertools.chain(
        [b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"], itertools.repeat(b" ")
    )


def _sent(port, **retries):
    refused = []
    transport = Transport(
        f"http://127.0.0.1:{port}",
        credentials=dict,
        retries=Retries(attempts=2, **retries),
        responses=(),
        inner=None,
        clock=lambda: datetime.now(UTC),
        sleep=lambda _: None,
    )

    def send(*, granted=None):
        transport.allowance.grant(granted, used=0.0)
        try:
            return transport.send(
                Call(url=f"http://127.0.0.1:{port}/things"),
                read=read_json,
                refused=lambda *told: refused.append(told[1]),
            ).value
        finally:
            transport.close()

    return send, refused


@pytest.mark.parametrize("pieces", [_head, _body], ids=["head", "body"])
def test_answer_that_drips_does_not_outlive_the_limit(pieces):
    with listening(dripping(pieces())) as server:
        send, refused = _sent(server.port)

        with pytest.raises(TimeLimitError, match=r"limits.seconds \(0.3 s\)") as stopped:
            send(granted=0.3)

    assert stopped.value.allowed == 0.3
    assert refused == ["connection_lost"]


@pytest.mark.parametrize("pieces", [_head, _body], ids=["head", "body"])
def test_answer_that_drips_counts_as_lost_without_a_limit_too(pieces):
    def served(connection, head):
        dripping(pieces())(connection, head)

    with listening(served) as server:
        send, refused = _sent(server.port, whole_timeout=0.2)

        with pytest.raises(SourceUnavailableError, match="was lost: ReadTimeout"):
            send()

    assert refused == ["connection_lost", "connection_lost"]


def test_answer_that_comes_in_time_is_whole():
    pieces = (bytes([each]) for each in whole(b'{"n":1}'))
    with listening(dripping(pieces, every=0.0)) as server:
        send, refused = _sent(server.port)

        assert send(granted=30.0) == {"n": 1}
    assert refused == []


def test_walk_over_a_source_that_drips_ends_with_its_limit_named(tmp_path):
    def served(connection, head):
        if b"cursor=k" in head:
            dripping(_body())(connection, head)
        else:
            connection.sendall(whole(FIRST))

    with listening(served) as server:
        walked = walk(
            {**SOURCE, "url": f"http://127.0.0.1:{server.port}/things"},
            None,
            tmp_path,
            contract={"key": ["id"], "consistency": "live", "limits": {"seconds": 1.0}},
        )

    receipt = walked.receipt
    assert (receipt.traversal, receipt.stop_reason) == ("interrupted", "limit_reached")
    assert receipt.limits_hit == ("seconds",)
    assert walked.keys == ["1"]
    assert receipt.conclusion_scope == "observed_pages_only"


def test_walk_told_to_wait_longer_than_its_limit_ends_at_once(tmp_path):
    def answer(connection, head):
        late = whole(b"", status="429 Slow", headers={"retry-after": "3"})
        connection.sendall(late if b"cursor=k" in head else whole(FIRST))

    with listening(answer) as server:
        walked = walk(
            {**SOURCE, "url": f"http://127.0.0.1:{server.port}/things"},
            None,
            tmp_path,
            contract={"key": ["id"], "consistency": "live", "limits": {"seconds": 2.0}},
        )

    assert walked.receipt.limits_hit == ("seconds",)
    assert len(server.requests) == 2
    told = [each.found for each in walked.receipt.findings.first if each.code == "limit_reached"]
    assert "asks for a wait of 3 s" in told[0]


def test_body_that_was_read_is_not_read_again_without_end():
    with listening(dripping((bytes([each]) for each in whole(b'{"n":1}')), every=0.0)) as server:
        wire = Wire(Network(None, {}))
        answer = wire.handle_request(httpx2.Request("GET", f"http://127.0.0.1:{server.port}/"))
        read = b"".join(answer.stream)

        with pytest.raises(httpx2.StreamConsumed):
            list(answer.stream)
        wire.close()

    assert read == b'{"n":1}'
