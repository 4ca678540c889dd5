"""Sending one request: bounded, at one origin, every refused answer told, no secret shown."""

import contextlib
import gzip
import json
import zlib
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import httpx2
import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.errors import (
    AccessRefusedError,
    CancelledError,
    ContinuationConsumedError,
    DestinationRefusedError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    TimeLimitError,
)
from scan_pipeline.core.operation import Retries
from scan_pipeline.sources.http.exchange import MAX_BODY
from scan_pipeline.sources.http.responses import ResponseClass
from scan_pipeline.sources.http.transport import Call, Transport, read_json

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
ORIGIN = "http://source.test"
KINDS = TypeAdapter(ResponseClass)


class Wire:
    """A transport over scripted answers; keeps what was sent, what was told and what was slept."""

    def __init__(self, *answers, retries=None, responses=(), origin=ORIGIN, sleep=None):
        self._answers = list(answers)
        self.requests, self.refused, self.slept = [], [], []
        self.transport = Transport(
            f"{origin}/things",
            credentials=lambda: {"authorization": "Bearer the secret itself"},
            retries=Retries(**(retries or {})),
            responses=tuple(KINDS.validate_json(json.dumps(each)) for each in responses),
            inner=httpx2.MockTransport(self._answer),
            clock=lambda: NOW,
            sleep=sleep or self.slept.append,
        )

    def _answer(self, request):
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def send(self, call=None, **arguments):
        return self.transport.send(
            call or Call(url=f"{ORIGIN}/things"),
            read=arguments.pop("read", read_json),
            refused=lambda *told: self.refused.append(told),
            **arguments,
        )


def answer(status=200, body=b"{}", **headers):
    named = {name.replace("_", "-").encode(): _bytes(value) for name, value in headers.items()}
    return lambda: httpx2.Response(status, content=body, headers=named)


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode()


def test_answer_is_read_and_its_times_kept():
    wire = Wire(answer(body=b'{"n":1}'))
    call = Call(url=f"{ORIGIN}/things?a=1", params=(("b", "2"), ("a", "3")), headers=(("x", "y"),))

    sent = wire.send(call)

    assert sent.value == {"n": 1}
    assert (sent.attempts, sent.requested_at, sent.received_at) == (1, NOW, NOW)
    assert str(wire.requests[0].url) == f"{ORIGIN}/things?a=3&b=2"
    assert wire.requests[0].headers["x"] == "y"
    assert wire.requests[0].headers["authorization"] == "Bearer the secret itself"
    assert wire.refused == []


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 504, 429])
def test_passing_failure_is_asked_again(status):
    wire = Wire(answer(status, b"later"), answer(status, b"later"), answer())

    assert wire.send().attempts == 3
    assert [told[0] for told in wire.refused] == [status, status]
    assert {told[2] for told in wire.refused} == {sha256(b"later").digest()}
    assert len(wire.slept) == 2


def test_asking_again_is_bounded():
    wire = Wire(answer(503), retries={"attempts": 4, "max_wait": 0.5})

    with pytest.raises(SourceUnavailableError, match="gave up after 4 sends"):
        wire.send()

    assert len(wire.refused) == 4
    assert len(wire.slept) == 3
    assert max(wire.slept) <= 0.5


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        ("7", 7.0),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("Mon, 30 Nov 2026 02:00:09 GMT", 9.0),
        ("Mon, 30 Nov 2026 01:59:00 GMT", 0.0),
        ("Monday, 30-Nov-26 02:00:09 GMT", 9.0),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_wait_that_is_asked_for_is_kept_to_the_second(status, after, wait):
    wire = Wire(answer(status, retry_after=after), answer())

    wire.send()

    assert wire.slept == [wait]
    assert wire.transport.waited == wait


@pytest.mark.parametrize("after", ["soon", "", "-3", "1.5", b"\xb2", "Mon, 99 Nov 2026"])
def test_wait_that_says_nothing_is_ours_to_choose(after):
    wire = Wire(answer(429, retry_after=after), answer(), retries={"max_wait": 0.1})

    wire.send()

    assert len(wire.slept) == 1
    assert wire.slept[0] <= 0.1
    assert wire.transport.waited == 0


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("after", ["3601", "Mon, 30 Nov 2026 03:00:01 GMT"])
def test_wait_beyond_the_deadline_fails_and_is_not_shortened(status, after):
    wire = Wire(answer(status, retry_after=after))

    with pytest.raises(SourceUnavailableError, match="asks for a wait of 3601 s"):
        wire.send()

    assert wire.slept == []
    assert len(wire.refused) == 1


def test_declared_wait_uses_nothing_of_the_limit_and_none_may_outlast_it_whole():
    wire = Wire(answer(429, retry_after="10"), answer(429, retry_after="10"), answer())
    wire.transport.allowance.grant(10, used=9.5)

    wire.send()

    assert wire.slept == [10.0, 10.0]
    longer = Wire(answer(429, retry_after="11"))
    longer.transport.allowance.grant(10, used=0.0)
    with pytest.raises(TimeLimitError, match=r"asks for a wait of 11 s.*limits.seconds \(10 s\)"):
        longer.send()
    assert longer.slept == []


def test_wait_of_our_own_does_not_outlast_what_is_left():
    wire = Wire(answer(503), retries={"max_wait": 0.0001})
    wire.transport.allowance.grant(10, used=9.97)
    late = Wire(answer(503))
    late.transport.allowance.grant(10, used=10 - 0.021)

    with pytest.raises(SourceUnavailableError):
        wire.send()

    def send_often():  # a wait of ours is drawn, and may be short
        for _ in range(100):
            with contextlib.suppress(SourceUnavailableError):
                late.send()

    with pytest.raises(TimeLimitError, match=r"answered 503.*would outlast what is left"):
        send_often()


def test_nothing_is_sent_once_the_limit_is_used_up():
    wire = Wire(answer())
    wire.transport.allowance.grant(10, used=10.0)

    with pytest.raises(TimeLimitError):
        wire.send()

    assert wire.requests == []


def test_wait_may_stand_in_a_header_of_the_sources_own():
    until = str(int((NOW + timedelta(seconds=40)).timestamp()))
    github = {
        "status": 403,
        "header": {"x-ratelimit-remaining": "0"},
        "means": "wait",
        "wait_until": "x-ratelimit-reset",
    }
    limited = answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=until)
    wire = Wire(limited, answer(), responses=[github])

    wire.send()

    assert wire.slept == [40.0]
    with pytest.raises(AccessRefusedError):
        Wire(answer(403, x_ratelimit_remaining="7"), responses=[github]).send()


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (401, AccessRefusedError, "access_refused"),
        (403, AccessRefusedError, "access_refused"),
        (410, SnapshotExpiredError, "expired"),
        (400, ProtocolError, "rejected"),
        (404, ProtocolError, "rejected"),
        (418, ProtocolError, "rejected"),
        (501, ProtocolError, "rejected"),
        (302, DestinationRefusedError, "redirect"),
        (304, DestinationRefusedError, "redirect"),
    ],
)
def test_lasting_refusal_is_not_asked_again(status, error, reason):
    wire = Wire(answer(status, b"no"))

    with pytest.raises(error):
        wire.send()

    assert [(told[0], told[1]) for told in wire.refused] == [(status, reason)]
    assert len(wire.requests) == 1


@pytest.mark.parametrize("status", [201, 202, 203, 204, 205, 206, 207, 226])
def test_success_of_another_kind_is_no_page(status):
    part = {"content_range": "bytes 0-1/4"} if status == 206 else {}
    wire = Wire(answer(status, b'{"items":[1,2]}', **part))

    with pytest.raises(ProtocolError, match=f"answered {status}; expected 200") as refused:
        wire.send()

    assert refused.value.code == "not_a_page"
    assert [told[:2] for told in wire.refused] == [(status, "not_a_page")]


def test_success_of_another_kind_may_be_declared_to_mean_something():
    later = [{"status": 202, "means": "wait"}]
    wire = Wire(answer(202, retry_after="3"), answer(), responses=later)

    assert wire.send().attempts == 2
    assert wire.slept == [3.0]


def test_body_of_a_refusal_may_say_what_it_means():
    consumed = {
        "status": 410,
        "body": {"at": ["error", "code"], "equals": "cursor_consumed"},
        "means": "consumed",
    }

    with pytest.raises(ContinuationConsumedError):
        Wire(answer(410, b'{"error":{"code":"cursor_consumed"}}'), responses=[consumed]).send()
    for other in (b'{"error":{"code":"snapshot_expired"}}', b"<html>", b"", b"[]"):
        with pytest.raises(SnapshotExpiredError):
            Wire(answer(410, other), responses=[consumed]).send()


@pytest.mark.parametrize(
    "lost",
    [
        httpx2.ReadError("cut"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("gone"),
        httpx2.WriteError("cut"),
    ],
)
def test_lost_answer_is_asked_for_again_only_where_that_is_allowed(lost):
    again = Wire(lost, answer())
    once = Wire(lost, answer())

    assert again.send().attempts == 2
    with pytest.raises(ContinuationConsumedError):
        once.send(repeatable=False)
    assert len(once.requests) == 1
    assert [told[:2] for told in once.refused] == [(None, "connection_lost")]


@pytest.mark.parametrize("failed", [httpx2.ConnectError("no"), httpx2.ConnectTimeout("no")])
def test_connection_that_never_came_about_consumes_nothing(failed):
    wire = Wire(failed, answer())

    assert wire.send(repeatable=False).attempts == 2
    assert [told[:2] for told in wire.refused] == [(None, "not_connected")]


def test_failure_of_the_server_may_have_consumed_a_continuation():
    with pytest.raises(ContinuationConsumedError):
        Wire(answer(503)).send(repeatable=False)
    assert Wire(answer(429, retry_after="1"), answer()).send(repeatable=False).attempts == 2


def test_answer_that_cannot_be_read_is_told_with_what_it_was():
    wire = Wire(answer(body=b"<html>"))

    with pytest.raises(ProtocolError) as refused:
        wire.send()

    assert refused.value.code == "body_unparsable"
    assert wire.refused == [(200, "body_unparsable", sha256(b"<html>").digest(), NOW)]


def test_answer_without_end_is_cut_off_and_told(monkeypatch):
    monkeypatch.setattr("scan_pipeline.sources.http.exchange.MAX_BODY", 10)
    wire = Wire(answer(body=b"[1,2,3,4,5,6]"))

    with pytest.raises(ProtocolError, match="larger than 10 bytes"):
        wire.send()

    assert [told[1] for told in wire.refused] == ["body_unparsable"]
    assert MAX_BODY > 10


_CODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": lambda body: zlib.compress(body, wbits=-zlib.MAX_WBITS),
}


@pytest.mark.parametrize("coding", _CODINGS)
def test_coded_body_is_whole_or_refused(coding):
    named = coding.rpartition(" ")[2]
    coded = _CODINGS[coding](b'{"items":[' + b"1," * 40_000 + b"2]}")

    def send(body):
        return Wire(answer(body=body, content_encoding=named)).send()

    assert len(send(coded).value["items"]) == 40_001
    with pytest.raises(ProtocolError, match="ends in the middle"):
        send(coded[:-1] if coding != "gzip" else coded[:-9])
    if coding != "gzip":
        with pytest.raises(ProtocolError, match="something follows"):
            send(coded + b"{}")


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, deflate", "x-unheard-of"])
def test_coding_that_was_not_asked_for_is_refused_by_name(coding):
    wire = Wire(lambda: httpx2.Response(200, headers={"content-encoding": coding}, stream=_Raw()))

    with pytest.raises(ProtocolError, match=coding):
        wire.send()
    assert [told[1] for told in wire.refused] == ["body_unparsable"]


class _Raw(httpx2.SyncByteStream):
    def __iter__(self):
        yield b"{}"


@pytest.mark.parametrize(
    "url",
    [
        "http://elsewhere.test/things",
        "https://source.test/things",
        "http://source.test:8080/things",
        "http://source.test.elsewhere.test/",
        "http://source.test@elsewhere.test/",
        "/things",
        "http://[::1",
    ],
)
def test_other_origins_are_not_asked(url):
    wire = Wire(answer())

    with pytest.raises(DestinationRefusedError):
        wire.send(Call(url=url))

    assert wire.requests == []


def test_origin_knows_its_usual_port():
    wire = Wire(answer(), origin="http://source.test:80")

    assert wire.send(Call(url="http://source.test/other")).value == {}


@pytest.mark.parametrize("location", ["http://elsewhere.test/login?token=t0k3n", "http://[::1", ""])
def test_redirect_is_told_and_not_followed(location):
    wire = Wire(answer(302, location=location))

    with pytest.raises(DestinationRefusedError) as refused:
        wire.send()

    assert len(wire.requests) == 1
    assert "t0k3n" not in str(refused.value)


def test_errors_show_neither_secret_nor_query():
    for scripted in (answer(401), answer(404), answer(503), httpx2.ReadError("cut"), answer(302)):
        wire = Wire(scripted, retries={"attempts": 1})
        with pytest.raises(Exception, match=r".") as error:
            wire.send(Call(url=f"{ORIGIN}/things?cursor=c0rs0r"))
        shown = str(error.value) + repr(error.value)
        assert "c0rs0r" not in shown
        assert "the secret itself" not in shown


def test_sleep_may_end_the_walk():
    def cancelled(_):
        raise CancelledError("asked to end")

    wire = Wire(answer(503), sleep=cancelled)

    with pytest.raises(CancelledError):
        wire.send()
    assert len(wire.requests) == 1


def test_transport_that_was_lent_stays_open():
    inner = httpx2.MockTransport(lambda _: httpx2.Response(200, content=b"{}"))
    closed = []
    inner.close = lambda: closed.append(True)
    facts = {
        "credentials": dict,
        "retries": Retries(),
        "responses": (),
        "inner": inner,
        "clock": lambda: NOW,
        "sleep": lambda _: None,
    }
    one = Transport(ORIGIN, **facts)

    one.send(Call(url=ORIGIN), read=read_json, refused=lambda *_: None)
    one.close()

    assert closed == []
