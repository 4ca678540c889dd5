"""Exactly one way to prove who we are; the secret is read when it is sent and not before."""

import json

import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.sources.auth import Auth

ENVIRON = {"TOKEN": "the secret itself"}


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
