"""What is typed for a draft: an address, and names of secrets in place of secrets."""

import pytest

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.stages.drafting.draft import name_in
from scan_pipeline.stages.drafting.question import question


def test_query_becomes_parameters_and_secrets_stay_names():
    asked = question(
        "https://api.test/v1/things?status=open&limit=5",
        headers=["accept=application/json"],
        auth="bearer=API_TOKEN",
    )

    assert asked.source == {
        "url": "https://api.test/v1/things",
        "params": {"status": "open", "limit": "5"},
        "headers": {"accept": "application/json"},
        "auth": {"bearer": {"env": "API_TOKEN"}},
    }


def test_key_in_a_header_of_its_own_is_named():
    asked = question("https://api.test/things", auth="X-Api-Key=API_KEY")

    assert asked.auth == {"api_key": {"header": "X-Api-Key", "value": {"env": "API_KEY"}}}


def test_sample_registry_needs_no_word_about_its_token():
    assert question("simulator://registry/v1/customers").auth == {
        "bearer": {"env": "REGISTRY_TOKEN"}
    }


@pytest.mark.parametrize(
    ("url", "headers", "auth"),
    [
        ("https://api.test/things?api_key=hunter2", (), None),
        ("https://api.test/things?access_token=hunter2", (), None),
        ("https://me:hunter2@api.test/things", (), None),
        ("https://api.test/things", ["authorization=Bearer hunter2"], None),
        ("https://api.test/things", ["cookie=hunter2"], None),
        ("https://api.test/things", (), "bearer=hunter2"),
        ("https://api.test/things", (), "hunter2"),
    ],
)
def test_secret_that_was_typed_is_refused_and_not_shown(url, headers, auth):
    with pytest.raises(ContractError) as refused:
        question(url, headers=headers, auth=auth)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["postgresql://host/db", "mcp+http://host/mcp", "things", "https://api.test/graphql"],
)
def test_address_that_cannot_be_drafted_is_refused(url):
    with pytest.raises(ContractError, match="expected"):
        question(url)


def test_address_without_a_host_is_refused():
    with pytest.raises(ConfigurationError):
        question("https:///things")


def test_parameter_that_stands_twice_is_refused():
    with pytest.raises(ContractError, match="twice"):
        question("https://api.test/things?a=1&a=2")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.test/v1/support-cases?x=1", "support_cases"),
        ("http://127.0.0.1:8001/airports/airports.json", "airports"),
        ("https://api.test/", "scan"),
        ("https://api.test/2024/1", "scan"),
        ("https://registry.test/v2/_catalog", "v2"),
        ("https://api.test/Users('a')", "users_a"),
    ],
)
def test_name_comes_from_the_address(url, name):
    assert name_in(question(url).url) == name
