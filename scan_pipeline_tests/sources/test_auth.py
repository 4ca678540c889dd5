"""Exactly one way to prove who we are; the secret is read when it is sent and not before."""

import json

import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.sources.auth import Auth

ENVIRON = {"TOKEN": "the secret itself", "USER_NAME": "pé", "COLON": "a:b"}


def parsed(raw):
    return TypeAdapter(Auth).validate_json(json.dumps(raw))


@pytest.mark.parametrize(
    ("raw", "scheme", "headers"),
    [
        ({"bearer": {"env": "TOKEN"}}, "bearer", {"authorization": "Bearer the secret itself"}),
        (
            {"api_key": {"header": "x-api-key", "value": {"env": "TOKEN"}}},
            "api_key",
            {"x-api-key": "the secret itself"},
        ),
        (
            {"basic": {"user": {"env": "USER_NAME"}, "password": {"env": "TOKEN"}}},
            "basic",
            {"authorization": "Basic cMOpOnRoZSBzZWNyZXQgaXRzZWxm"},
        ),
        (
            {"basic": {"user": {"env": "TOKEN"}}},
            "basic",
            {"authorization": "Basic dGhlIHNlY3JldCBpdHNlbGY6"},
        ),
    ],
)
def test_each_way_has_its_header(raw, scheme, headers):
    auth = parsed(raw)

    assert auth.scheme == scheme
    assert auth.headers(ENVIRON) == headers


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"bearer": {"env": "A"}, "api_key": {"header": "x", "value": {"env": "B"}}},
    ],
)
def test_none_and_two_are_refused(raw):
    with pytest.raises(ContractError, match="exactly one of"):
        parsed(raw)


def test_missing_secret_is_told_by_its_name_when_it_is_sent():
    auth = parsed({"bearer": {"env": "ANOTHER"}})

    with pytest.raises(ConfigurationError, match="ANOTHER"):
        auth.headers(ENVIRON)


def test_secret_shows_nowhere():
    auth = parsed({"bearer": {"env": "TOKEN"}})
    auth.headers(ENVIRON)

    assert "the secret itself" not in repr(auth) + str(auth) + str(
        TypeAdapter(Auth).dump_json(auth)
    )


def test_user_with_a_colon_would_be_another_user():
    with pytest.raises(ConfigurationError, match="COLON"):
        parsed({"basic": {"user": {"env": "COLON"}}}).headers(ENVIRON)


def client(**changed):
    facts = {
        "token_url": "https://login.test/token",
        "client_id": "us",
        "client_secret": {"env": "TOKEN"},
    }
    return {"oauth2_client_credentials": {**facts, **changed}}


@pytest.mark.parametrize(
    "url",
    ["http://login.test/token", "https://us:pw@login.test/", "/token", "ftp://login.test/", "x"],
)
def test_secret_goes_to_no_address_that_is_open_or_none(url):
    with pytest.raises(ContractError, match="token_url") as refused:
        parsed(client(token_url=url))

    assert "us:pw" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://login.test/t", "http://127.0.0.1:1/", "http://localhost/"]
)
def test_secret_may_go_over_tls_or_stay_on_this_machine(url):
    assert parsed(client(token_url=url)).scheme == "oauth2_client_credentials"


def test_way_that_fetches_a_token_makes_no_headers_by_itself():
    with pytest.raises(ConfigurationError, match="expected bearer, api_key or basic"):
        parsed(client()).headers(ENVIRON)


@pytest.mark.parametrize(
    ("raw", "changed", "same"),
    [
        ({"bearer": {"env": "TOKEN"}}, "TOKEN", False),
        ({"basic": {"user": {"env": "USER_NAME"}, "password": {"env": "TOKEN"}}}, "TOKEN", True),
        (
            {"basic": {"user": {"env": "USER_NAME"}, "password": {"env": "TOKEN"}}},
            "USER_NAME",
            False,
        ),
        (client(), "TOKEN", True),
    ],
)
def test_who_we_are_is_a_name_where_there_is_one(raw, changed, same):
    auth = parsed(raw)

    later = auth.principal_bytes({**ENVIRON, changed: "another"})

    assert (auth.principal_bytes(ENVIRON) == later) == same


def test_another_client_is_another_principal():
    assert parsed(client()).principal_bytes({}) != parsed(client(client_id="b")).principal_bytes({})
