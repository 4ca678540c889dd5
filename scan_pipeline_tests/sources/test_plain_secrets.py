"""A secret that stands in a scan file as it is, and two things under one name, are refused."""

import pytest

from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline_tests.sources.over_http import LIVE

SOURCE = {
    "protocol": "page_token",
    "url": "https://source.test/things",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
}
SECRET = "s3cr3t-as-it-is"


def refused(**source):
    with pytest.raises(ScanFileError) as error:
        parse_scan({"name": "things", "source": {**SOURCE, **source}, "contract": LIVE})
    assert SECRET not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "authorization",
        "Proxy-Authorization",
        "Cookie",
        "X-Api-Key",
        "X-API-KEY",
        "apikey",
        "DD-API-KEY",
        "DD-APPLICATION-KEY",
        "PRIVATE-TOKEN",
        "X-Auth-Token",
        "X-Vault-Token",
        "X-Shopify-Access-Token",
        "Ocp-Apim-Subscription-Key",
        "x-functions-key",
        "X-Client-Secret",
    ],
)
def test_header_of_a_secret_is_to_be_named_under_auth(name):
    assert f"headers.{name}: holds a secret" in refused(headers={name: SECRET})


@pytest.mark.parametrize("name", ["access_token", "api_key", "apikey", "client_secret", "sig"])
def test_parameter_of_a_secret_is_refused_wherever_it_stands(name):
    assert "name it under auth" in refused(params={name: SECRET})
    assert "name it under auth" in refused(url=f"https://source.test/things?{name}={SECRET}")


@pytest.mark.parametrize(
    ("headers", "params"),
    [
        ({"accept": "application/json", "x-github-api-version": "2022-11-28"}, {}),
        ({"x-csrf-token": "fetch", "idempotency-key": "a", "consistencylevel": "eventual"}, {}),
        ({"x-author": "a"}, {"page_token": "", "key": "a", "author": "b", "sort_key": "c"}),
    ],
)
def test_other_names_are_facts(headers, params):
    source = {**SOURCE, "headers": headers, "params": params}

    assert parse_scan({"name": "things", "source": source, "contract": LIVE})


def test_headers_of_an_mcp_server_are_held_to_the_same():
    source = {
        "protocol": "mcp_tool",
        "transport": {
            "http": {"url": "https://source.test/mcp", "headers": {"Authorization": SECRET}}
        },
        "tool": "list",
        "records_at": "items",
        "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    }

    with pytest.raises(ScanFileError, match="name it under auth"):
        parse_scan({"name": "things", "source": source, "contract": LIVE})


@pytest.mark.parametrize(
    "added",
    [
        {"params": {"kind": "b"}},
        {"page_size": {"send_as": "kind", "value": 10}},
        {"snapshot": {"at": "version", "send_as": "kind"}},
        {"next": {**SOURCE["next"], "send_as": "kind"}},
        {"high_water_mark": {"at": "max", "send_as": "kind", "url": "https://source.test/max"}},
    ],
)
def test_name_in_the_address_stands_for_one_thing(added):
    assert "kind is sent for two things" in refused(
        url="https://source.test/things?kind=a", **added
    )


def test_name_of_a_last_key_is_none_of_the_address():
    following = {
        "after": [{"field": "id", "send_as": "after_id"}],
        "ends_when": [{"is": "empty_page"}],
    }

    assert "after_id is sent for two things" in refused(
        protocol="last_key", url="https://source.test/things?after_id=7", next=following
    )


def test_list_in_the_address_is_one_thing():
    source = {**SOURCE, "url": "https://source.test/things?kind=a&kind=b"}

    assert parse_scan({"name": "things", "source": source, "contract": LIVE})
