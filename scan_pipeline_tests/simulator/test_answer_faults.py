"""Each fault of bytes and connection, in process and over a real socket, with equal effect."""

import json

import httpx2
import pytest

from scan_pipeline.simulator.answer_faults import (
    BodyTruncated,
    ConnectionCut,
    ContentTypeWrong,
    Delayed,
    ErrorEnvelope,
    Failing,
    InvalidUtf8,
    LoginPage,
    MemberDoubled,
    ResponseLost,
)
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script


@pytest.fixture(params=["in_process", "port"])
def broken(request, reading, clock):
    """A reader on 300 customers whose answers break, and the registry behind it."""

    def read(*faults, timeout_s=5.0, **script):
        registry = Registry(size=300, clock=clock, script=Script(faults=faults, **script))
        return reading(registry, over=request.param, timeout_s=timeout_s), registry

    return read


def test_a_clean_walk_is_the_same_either_way(broken, numbered):
    reader, _ = broken()

    assert numbered(*reader.walk()) == list(range(1, 301))


def test_a_truncated_body_is_a_whole_answer(broken):
    reader, _ = broken(BodyTruncated(page=1))
    response = reader.get()

    assert response.status_code == 200
    assert int(response.headers["content-length"]) == len(response.content)
    with pytest.raises(json.JSONDecodeError):
        response.json()


def test_a_body_can_be_truncated_to_nothing(broken):
    reader, _ = broken(BodyTruncated(page=1, keep_bytes=0))

    assert reader.get().content == b""


def test_an_error_can_come_with_status_200(broken):
    reader, _ = broken(ErrorEnvelope(page=1))
    response = reader.get()

    assert response.status_code == 200
    assert response.json() == {
        "error": {"code": "internal", "message": "the page could not be read"}
    }


def test_a_login_page_can_come_with_status_200(broken):
    reader, _ = broken(LoginPage(page=1))
    response = reader.get()

    assert (response.status_code, response.headers["content-type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    assert response.text.startswith("<!doctype html>")


@pytest.mark.parametrize(("member", "kept"), [("items", []), ("next_cursor", None)])
def test_a_doubled_member_fools_parsers_that_keep_the_last(broken, member, kept):
    reader, _ = broken(MemberDoubled(page=1, member=member))
    body = reader.get().text

    assert body.count(f'"{member}":') == 2
    parsed = json.loads(body)
    assert (parsed | parsed["page"])[member] == kept


def test_a_body_can_be_no_utf8(broken):
    reader, _ = broken(InvalidUtf8(page=1))

    with pytest.raises(UnicodeDecodeError):
        reader.get().content.decode()


def test_a_content_type_can_be_wrong(broken):
    reader, _ = broken(ContentTypeWrong(page=1))
    response = reader.get()

    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(response.json()["items"]) == 100


def test_a_cut_connection_breaks_the_body(broken):
    reader, registry = broken(ConnectionCut(page=1, last_attempt=1))

    with pytest.raises(httpx2.RemoteProtocolError, match="without sending complete message body"):
        reader.get()
    assert reader.get().status_code == 200
    assert [page.attempt for page in registry.served.pages] == [1, 2]


def test_a_cut_connection_delivers_what_was_sent_before(broken):
    reader, _ = broken(ConnectionCut(page=1, after_bytes=10))

    with reader.client.stream("GET", "/v1/customers") as response:
        assert response.status_code == 200
        assert int(response.headers["content-length"]) > 10
        parts = response.iter_raw()
        assert next(parts) == b'{"items":['
        with pytest.raises(httpx2.RemoteProtocolError):
            next(parts)


def test_a_lost_answer_leaves_the_work_done(broken):
    reader, registry = broken(ResponseLost(page=2, last_attempt=1), cursors="single_use")
    following = reader.reach(2)

    with pytest.raises(httpx2.RemoteProtocolError, match="Server disconnected"):
        reader.get(**following)
    again = reader.get(**following)

    assert again.json()["error"]["code"] == "cursor_consumed"
    assert [(page.page, page.status, page.rows) for page in registry.served.pages] == [
        (1, 200, 100),
        (2, 200, 100),
        (2, 410, 0),
    ]


@pytest.mark.parametrize("status", [500, 502, 503, 429, 401, 403])
def test_failures_recover_after_n_attempts(broken, status):
    reader, registry = broken(Failing(page=2, status=status, last_attempt=2))
    following = reader.reach(2)

    answers = [reader.get(**following) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert set(answers[0].json()["error"]) == {"code", "message"}
    assert sum(registry.served.refused.values()) == 2


def test_a_failure_does_no_work(broken):
    reader, _ = broken(Failing(page=2, last_attempt=1), cursors="single_use")
    following = reader.reach(2)

    assert [reader.get(**following).status_code for _ in range(3)] == [503, 200, 410]


@pytest.mark.parametrize(
    ("form", "header"), [("seconds", "90"), ("http_date", "Sat, 29 Aug 2026 09:19:30 GMT")]
)
def test_a_refusal_says_when_to_come_again(broken, form, header):
    reader, _ = broken(Failing(page=1, status=429, retry_after_s=90, retry_after_form=form))
    response = reader.get()

    assert (response.status_code, response.headers["retry-after"]) == (429, header)
    assert response.json()["error"]["code"] == "too_many_requests"


def test_a_delay_beyond_the_clients_patience_is_a_timeout(broken):
    reader, registry = broken(Delayed(page=1, seconds=0.4, last_attempt=1), timeout_s=0.1)

    with pytest.raises(httpx2.ReadTimeout):
        reader.get()
    assert registry.served.pages[0].status == 200


def test_a_delayed_answer_arrives(broken):
    reader, _ = broken(Delayed(page=1, seconds=0.01))

    assert reader.get().status_code == 200
