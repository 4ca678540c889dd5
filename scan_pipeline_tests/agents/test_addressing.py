"""A record's address: its key is one segment of it, whatever stands in the key."""

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.agents.addressing import UnaddressableError, address, check_template
from scan_pipeline.core.errors import ConfigurationError

TEMPLATE = "https://host.test/v1/things/{id}/close"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_key_is_one_segment_and_comes_back_from_it(key):
    if key in (".", ".."):
        return

    path = httpx2.URL(address(TEMPLATE, {"id": key})).raw_path.decode()
    *before, segment, last = path.split("/")

    assert (before, last) == (["", "v1", "things"], "close")
    assert httpx2.URL(f"https://host.test/{segment}").path == f"/{key}"


@pytest.mark.parametrize("key", ["", ".", "..", "\ud800"])
def test_key_that_is_no_segment_makes_no_address(key):
    with pytest.raises(UnaddressableError):
        address(TEMPLATE, {"id": key})


def test_key_of_several_fields_and_a_verb_after_a_colon():
    template = "https://host.test/{tenant}/{id}:close"

    assert address(template, {"tenant": "a b", "id": 7}) == "https://host.test/a%20b/7:close"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("/v1/{id}", "absolute"),
        ("ftp://host.test/{id}", "https"),
        ("http://host.test/{id}", "https"),
        ("https://{id}.test/close", "outside the path"),
        ("https://host.test/close?id={id}", "outside the path"),
        ("https://host.test/x-{id}", "beside other text"),
        ("https://host.test/{id}/{id}", "twice"),
        ("https://me:pw@host.test/{id}", "user"),
        ("https://host.test/{id}#top", "fragment"),
        ("https://host.test/{id", "brace"),
    ],
)
def test_template_that_could_lead_elsewhere_is_refused(template, told):
    with pytest.raises(ConfigurationError, match=told):
        check_template(template, what="request.url")


def test_this_machine_is_reached_without_tls():
    check_template("http://127.0.0.1:8080/{id}", what="request.url")
