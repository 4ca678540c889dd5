"""The page token protocol: one frozen request, a token more each time, and strict answers."""

import json
from datetime import UTC, datetime

import httpx2
import pytest

from scan_pipeline.core.canonical import leaf_hash
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ContinuationConsumedError,
    ProtocolError,
)
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import End, Next, Position
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.surroundings import Surroundings

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
PAGE = {"items": [{"id": "a"}, {"id": "b"}], "next": "t2", "version": "v1", "total": 3}


class Asked:
    """A source over answers by path; keeps the requests and the refusals."""

    def __init__(self, scan, answers, environ=None):
        self.requests, self.refused = [], []
        self._answers = answers
        self.source = open_source(
            scan,
            Surroundings(
                environ=environ or {},
                inner=httpx2.MockTransport(self._answer),
                clock=lambda: NOW,
                sleep=lambda _: None,
                retries=Retries(attempts=2),
            ),
        )

    def _answer(self, request):
        self.requests.append(request)
        found = self._answers[request.url.path]
        if isinstance(found, int):
            return httpx2.Response(found)
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        return httpx2.Response(200, content=body)

    def fetch(self, **position):
        return self.source.fetch(Position(**position), refused=self.refused.append)


@pytest.fixture
def asked(things):
    """Opens the scan of things, edited, over one page or answers by path."""

    def over(page=None, edits=None, *, environ=None, **answers):
        answers = {f"/{path}": found for path, found in answers.items()}
        return Asked(things(edits), {"/things": page or PAGE, **answers}, environ)

    return over


def query(request):
    return dict(request.url.params)


def test_page_is_told_as_it_came(asked):
    body = b'{"items":[{"id":"a","n":1.50}],"next":"t2","version":7,"total":3}'
    here = asked(body)

    page = here.fetch()

    assert (page.continuation, page.records, page.body) == (Next(token="t2"), 1, body)
    assert page.leaf_hashes == [leaf_hash(b'{"id":"a","n":1.50}')]
    assert (page.reported.total, page.reported.pin) == (3, "7")
    assert (page.attempts, page.requested_at, page.received_at) == (1, NOW, NOW)
    assert here.source.records(body) == [b'{"id":"a","n":1.50}']


def test_every_request_repeats_the_first_and_adds_a_token(asked):
    here = asked(
        edits={
            "source.params": {"status": "active"},
            "source.page_size": {"send_as": "limit", "value": 50},
            "source.headers": {"accept": "application/json"},
        }
    )

    first = here.fetch()
    second = here.fetch(token="t2", pin="v1")

    assert query(here.requests[0]) == {"status": "active", "limit": "50"}
    assert query(here.requests[1]) == {
        "status": "active",
        "limit": "50",
        "version": "v1",
        "cursor": "t2",
    }
    assert {each.headers["accept"] for each in here.requests} == {"application/json"}
    assert first.fingerprint == second.fingerprint


def test_very_first_request_may_want_a_token_of_its_own(asked):
    here = asked(edits={"source.next.first": "*"})

    here.fetch()

    assert query(here.requests[0]) == {"cursor": "*"}


def test_token_travels_as_it_is(asked):
    token = "a+b/c=&d e%20\u00e9"
    here = asked()

    here.fetch(token=token)

    assert query(here.requests[0])["cursor"] == token


@pytest.mark.parametrize(
    ("edits", "same"),
    [
        ({"source.params": {"status": "closed"}}, False),
        ({"source.headers": {"x": "y"}}, False),
        ({"source.auth": {"bearer": {"env": "TOKEN"}}}, False),
        ({"source.page_size": {"send_as": "limit", "value": 7}}, True),
    ],
)
def test_fingerprint_covers_what_is_frozen(asked, edits, same):
    environ = {"TOKEN": "t"}
    plain = asked().fetch().fingerprint

    assert (asked(edits=edits, environ=environ).fetch().fingerprint == plain) is same
    assert asked().fetch(token="t9", pin="v1").fingerprint == plain


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ({**PAGE, "error": {"code": 1}}, "error_envelope"),
        ({**PAGE, "errors": ["no"]}, "error_envelope"),
        ({**PAGE, "error": "no"}, "error_envelope"),
        ({"error": {"code": 1}}, "error_envelope"),
        ({"error": None, "next": None}, "records_missing"),
        ({"version": "v1"}, "records_missing"),
        ({**PAGE, "total": "3"}, "reported_invalid"),
        ({**PAGE, "total": -1}, "reported_invalid"),
        ({**PAGE, "total": True}, "reported_invalid"),
        ({**PAGE, "total": 3.5}, "reported_invalid"),
        ({**PAGE, "version": {}}, "reported_invalid"),
        ({**PAGE, "version": True}, "reported_invalid"),
        ({**PAGE, "next": {}}, "continuation_invalid"),
        (b"<html>", "body_unparsable"),
        (b'{"items":[],"items":[]}', "member_doubled"),
    ],
)
def test_answer_that_is_no_page_is_refused_and_told(asked, page, code):
    here = asked(page)

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == code
    assert [(each.status, each.reason) for each in here.refused] == [(200, code)]


@pytest.mark.parametrize("harmless", [None, False, "", [], {}])
def test_empty_error_beside_records_is_none(asked, harmless):
    assert asked({**PAGE, "errors": harmless}).fetch().records == 2


def test_error_field_may_be_named_or_none(asked):
    page = {**PAGE, "error": "no", "fault": ""}

    assert asked(page, {"source.errors_at": ["fault"]}).fetch().records == 2
    assert asked(page, {"source.errors_at": []}).fetch().records == 2


@pytest.mark.parametrize("absent", [{"total": None}, {}])
def test_count_and_pin_may_be_missing(asked, absent):
    page = {"items": [], "next": None, **absent}

    told = asked(page).fetch()

    assert (told.reported.total, told.reported.pin) == (None, None)
    assert told.continuation == End(signal="null")


@pytest.mark.parametrize("means", ["total", "remaining", "page"])
def test_count_is_what_it_was_declared_to_be(asked, means):
    told = asked(edits={"source.count.means": means, "contract.expect": {}}).fetch().reported

    assert {name: getattr(told, name) for name in ("total", "remaining", "page")} == {
        "total": None,
        "remaining": None,
        "page": None,
        means: 3,
    }


IDENTITY = {"source.identity": {"url": "http://source.test/me", "at": "user.name"}}


def test_identity_and_mark_are_asked_before_the_first_page(asked):
    edits = {
        "source.identity": {"url": "http://source.test/me", "at": "me", "tenant_at": "org"},
        "source.high_water_mark": {"url": "http://source.test/mark", "at": "mark", "send_as": "to"},
    }
    here = asked(edits=edits, me={"me": "auditor", "org": "acme"}, mark={"mark": 1_000})

    opening = here.source.opening()
    here.fetch(high_water_mark=opening.high_water_mark)

    assert (opening.principal, opening.tenant) == ("auditor", "acme")
    assert opening.high_water_mark == "1000"
    assert query(here.requests[-1]) == {"to": "1000"}


def test_identity_is_asked_by_post_where_it_wants_a_body(asked):
    review = {"kind": "Review"}
    edits = {"source.identity": {"url": "http://source.test/me", "at": "me", "body": review}}
    here = asked(edits=edits, me={"me": "auditor"})

    assert here.source.opening().principal == "auditor"
    (request,) = here.requests
    assert (request.method, request.headers["content-type"]) == ("POST", "application/json")
    assert json.loads(request.content) == review


def test_pin_that_a_token_carries_is_not_sent_beside_one(asked):
    """It is sent where the first page is read again; no other page claims that it was."""
    here = asked(edits={"source.snapshot.travels_in": "continuation"})

    later = here.fetch(token="k", pin="v1")
    again = here.fetch(pin="v1")

    assert [query(each) for each in here.requests] == [{"cursor": "k"}, {"version": "v1"}]
    assert (later.position.pin, again.position.pin) == (None, "v1")


@pytest.mark.parametrize("answer", [{}, {"user": {"name": ""}}, {"user": {"name": 7}}, []])
def test_identity_that_names_nobody_is_an_error(asked, answer):
    with pytest.raises(ProtocolError) as refused:
        asked(edits=IDENTITY, me=answer).source.opening()

    assert refused.value.code == "reported_invalid"


def test_refused_identity_is_a_refusal(asked):
    with pytest.raises(AccessRefusedError):
        asked(edits=IDENTITY, me=403).source.opening()


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"at": "by"}, {"by": {"eu": 2, "us": 1}}),
        (
            {"at": "rows", "value": "k", "count": "n"},
            {"rows": [{"k": "eu", "n": 2}, {"k": "us", "n": 1}]},
        ),
    ],
)
def test_counts_by_partition_are_asked_under_the_same_pin(asked, facts, answer):
    edits = {
        "source.partition_counts": {"url": "http://source.test/counts?by=region", **facts},
        "source.params": {"status": "active"},
    }
    here = asked(edits=edits, counts=answer)

    closing = here.source.closing(Position(pin="v1"))

    assert closing.partition_counts == {"eu": 2, "us": 1}
    assert query(here.requests[0]) == {"by": "region", "status": "active", "version": "v1"}


@pytest.mark.parametrize("answer", [{}, {"by": []}, {"by": {"eu": "2"}}, {"by": {"eu": True}}])
def test_counts_that_are_none_are_an_error(asked, answer):
    facts = {"source.partition_counts": {"url": "http://source.test/counts", "at": "by"}}

    with pytest.raises(ProtocolError) as refused:
        asked(edits=facts, counts=answer).source.closing(Position())

    assert refused.value.code == "reported_invalid"


def test_single_use_token_is_not_sent_twice_and_the_first_page_may_be(asked):
    single = {"source.continuation": "single_use"}

    with pytest.raises(ContinuationConsumedError):
        asked(503, single).fetch(token="t2")
    first = asked(503, single)
    with pytest.raises(Exception, match="gave up after 2 sends"):
        first.fetch()


def test_secret_is_looked_up_when_it_is_sent(asked):
    auth = {"source.auth": {"bearer": {"env": "TOKEN"}}}

    here = asked(edits=auth, environ={"OTHER": "x"})
    assert here.requests == []
    with pytest.raises(ConfigurationError, match="TOKEN"):
        here.fetch()
    assert here.requests == []
    asked(edits=auth, environ={"TOKEN": "the secret itself"}).fetch()


def test_tool_is_the_address_without_its_query(things):
    scan = things({"source.url": "http://source.test/things?view=live"})

    assert scan.source.tool == "GET http://source.test/things"
