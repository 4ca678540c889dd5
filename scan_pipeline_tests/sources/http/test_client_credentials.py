"""Tokens that are fetched: at one address, renewed in time, of one client, shown nowhere."""

import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import httpx2
import pytest

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ProtocolError,
    SourceUnavailableError,
)
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Position
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline_tests.sources.over_http import answered, scan_of, walk

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
SECRET = "s3cr3t/+ &é"
REFRESH = {"status": 401, "body": {"at": "error", "equals": "expired"}, "means": "refresh"}
SOURCE = {
    "protocol": "page_token",
    "url": "https://source.test/things",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    "responses": [REFRESH],
}


class Fetching:
    """A source behind a token endpoint; time moves only when the test says so.

    Args:
        grants: the endpoint's answers in order, the last one again and again; None for none.
        pages: what the source answers, given the request's token.
    """

    def __init__(self, *grants, pages=None, identity=None, **facts):
        self.tokens, self.pages, self.slept = [], [], []
        self.now = NOW
        self._grants, self._pages = list(grants), pages or (lambda _: answered(page()))
        client = {
            "token_url": "https://login.test/token",
            "client_id": "us & co",
            "client_secret": {"env": "SECRET"},
            **facts,
        }
        source = {**SOURCE, "auth": {"oauth2_client_credentials": client}}
        if identity is not None:
            source["identity"] = {"url": "https://source.test/me", "at": "user"}
        self._identity = identity
        self.source = open_source(
            scan_of(source),
            Surroundings(
                environ={"SECRET": SECRET},
                inner=httpx2.MockTransport(self._answer),
                clock=lambda: self.now,
                sleep=self.slept.append,
                retries=Retries(attempts=2),
            ),
        )

    def fetch(self, token=None):
        return self.source.fetch(Position(token=token), refused=lambda _: None)

    @property
    def form(self):
        return {k: v[0] for k, v in parse_qs(self.tokens[-1].content.decode()).items()}

    def _answer(self, request):
        if request.url.host == "login.test":
            self.tokens.append(request)
            grant = self._grants.pop(0) if len(self._grants) > 1 else self._grants[0]
            return grant if isinstance(grant, httpx2.Response) else answered(grant)
        self.pages.append(request)
        token = request.headers["authorization"].removeprefix("Bearer ")
        if request.url.path == "/me":
            return answered({"user": self._identity(token)})
        return self._pages(token)


def page(following=None):
    return {"items": [{"id": "1"}], "next": following}


def grant(token="t1", **more):
    return {"access_token": token, "token_type": "Bearer", **more}


def test_secret_goes_in_a_header_whose_parts_are_form_encoded():
    asked = Fetching(grant(), scope="read write", audience="things")

    asked.fetch()

    request = asked.tokens[0]
    kind, _, pair = request.headers["authorization"].partition(" ")
    assert (kind, b64decode(pair)) == ("Basic", b"us+%26+co:s3cr3t%2F%2B+%26%C3%A9")
    assert asked.form == {
        "grant_type": "client_credentials",
        "scope": "read write",
        "audience": "things",
    }
    assert [each.headers["authorization"] for each in asked.pages] == ["Bearer t1"]


def test_secret_goes_in_the_form_where_that_is_declared():
    asked = Fetching(grant(), send_as="client_secret_post")

    asked.fetch()

    assert "authorization" not in asked.tokens[0].headers
    assert asked.form == {
        "grant_type": "client_credentials",
        "client_id": "us & co",
        "client_secret": SECRET,
    }


def test_token_is_kept_until_shortly_before_its_end():
    asked = Fetching(grant("t1", expires_in=3600), grant("t2", expires_in="100"), grant("t3"))
    ages = (0, 3569, 3570, 3659, 3660, 10**6)

    for age in ages:
        asked.now = NOW + timedelta(seconds=age)
        asked.fetch()

    used = [each.headers["authorization"][-2:] for each in asked.pages]
    assert used == ["t1", "t1", "t2", "t2", "t3", "t3"]


def test_refused_token_is_renewed_once_and_the_same_page_asked_for():
    def pages(token):
        return answered({"error": "expired"}, status=401) if token == "t1" else answered(page())

    asked = Fetching(grant("t1"), grant("t2"), pages=pages)

    assert asked.fetch("k").attempts == 2
    assert [str(each.url) for each in asked.pages] == ["https://source.test/things?cursor=k"] * 2
    assert len(asked.tokens) == 2
    assert asked.slept == []


def test_challenge_that_says_so_is_enough_and_a_second_one_is_final():
    challenge = {"www-authenticate": 'Bearer realm="x", error="invalid_token"'}
    asked = Fetching(
        *(grant(f"t{n}") for n in range(5)),
        pages=lambda _: answered({}, status=401, headers=challenge),
    )

    with pytest.raises(AccessRefusedError, match="worn out"):
        asked.fetch()

    assert len(asked.pages) == 2


def test_other_401_is_no_reason_to_renew():
    asked = Fetching(grant(), pages=lambda _: answered({"error": "forbidden"}, status=401))

    with pytest.raises(AccessRefusedError):
        asked.fetch()

    assert len(asked.tokens) == len(asked.pages) == 1


@pytest.mark.parametrize("seconds", [None, 100])
def test_another_principal_behind_a_new_token_ends_the_walk(seconds):
    """It is asked again after each renewal, whether the source refused the old token or not."""

    def pages(token):
        refused = token == "t1" and seconds is None and len(asked.pages) > 2
        return answered({"error": "expired"}, status=401) if refused else answered(page("k"))

    one = {} if seconds is None else {"expires_in": seconds}
    asked = Fetching(
        grant("t1", **one),
        grant("t2"),
        pages=pages,
        identity=lambda token: "ann" if token == "t1" else "bob",
    )
    asked.source.opening()
    asked.fetch()
    asked.now = NOW + timedelta(seconds=95)

    with pytest.raises(ProtocolError, match="sees bob; expected ann") as refused:
        asked.fetch("k")

    assert refused.value.code == "principal_changed"


def test_same_principal_behind_a_new_token_goes_on():
    asked = Fetching(grant("t1", expires_in=100), grant("t2"), identity=lambda _: "ann")
    asked.source.opening()
    asked.now = NOW + timedelta(seconds=95)

    asked.fetch()
    asked.fetch()

    assert [each.url.path for each in asked.pages] == ["/me", "/things", "/me", "/things"]


@pytest.mark.parametrize(
    "answer",
    [
        {"token_type": "Bearer"},
        {"access_token": "t1"},
        {"access_token": "t1", "token_type": "mac"},
        {"access_token": "", "token_type": "Bearer"},
        {"access_token": "a\r\nb: c", "token_type": "Bearer"},
        {"access_token": 7, "token_type": "Bearer"},
        {"error": "invalid_client"},
        [],
        "t1",
        httpx2.Response(200, content=b"<html>t1</html>"),
        httpx2.Response(200, content=b"\xff"),
    ],
)
def test_answer_that_is_no_token_is_told_and_not_shown(answer):
    asked = Fetching(answer)

    with pytest.raises(ProtocolError, match=r"login\.test/token answered with no") as refused:
        asked.fetch()

    assert refused.value.code == "reported_invalid"
    assert asked.pages == []


def test_token_that_allows_less_than_was_asked_is_refused():
    with pytest.raises(AccessRefusedError, match="not write"):
        Fetching(grant(scope="read"), scope="read write").fetch()
    Fetching(grant(scope="write read more"), scope="read write").fetch()


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": "invalid_client", "error_description": SECRET}, AccessRefusedError),
        (400, {"error": "invalid_scope"}, AccessRefusedError),
        (401, {"error": "invalid_client"}, AccessRefusedError),
        (400, {"error": "invalid_request"}, ProtocolError),
        (503, {}, SourceUnavailableError),
    ],
)
def test_endpoint_that_refuses_is_named_and_what_it_says_is_not_repeated(status, body, error):
    asked = Fetching(answered(body, status=status))

    with pytest.raises(error, match=r"https://login\.test") as refused:
        asked.fetch()

    assert SECRET not in str(refused.value)
    assert asked.pages == []


def test_redirect_of_the_endpoint_takes_no_secret_along():
    moved = answered({}, status=307, headers={"location": "https://elsewhere.test/token"})
    asked = Fetching(moved)

    with pytest.raises(ProtocolError, match="redirects are not followed"):
        asked.fetch()

    assert [each.url.host for each in asked.tokens] == ["login.test"]


def test_missing_secret_is_named():
    asked = Fetching(grant(), client_secret={"env": "NOT_SET"})

    with pytest.raises(ConfigurationError, match="NOT_SET"):
        asked.fetch()

    assert asked.tokens == []


def test_no_token_goes_to_another_origin(tmp_path):
    """A next link may lead elsewhere where the contract names it; the token stays at home."""
    facts = {
        "token_url": "https://login.test/token",
        "client_id": "us",
        "client_secret": {"env": "SECRET"},
    }
    source = {
        "protocol": "next_link",
        "url": "https://source.test/things",
        "auth": {"oauth2_client_credentials": facts},
        "records_at": "items",
        "next": {"at": "next", "ends_when": [{"is": "null"}], "origins": ["https://other.test"]},
    }

    def answer(request):
        match request.url.host:
            case "login.test":
                return answered(grant("t0k3n"))
            case "source.test":
                return answered(page("https://other.test/things"))
            case _:
                return answered({"items": [{"id": "2"}], "next": None})

    walked = walk(source, answer, tmp_path, environ={"SECRET": SECRET})

    sent = {each.url.host: each.headers.get("authorization") for each in walked.requests}
    assert walked.keys == ["1", "2"]
    assert sent["source.test"] == "Bearer t0k3n"
    assert sent["other.test"] is None
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert b"t0k3n" not in kept
    assert SECRET.encode() not in kept
    assert json.dumps(SECRET).encode() not in kept
