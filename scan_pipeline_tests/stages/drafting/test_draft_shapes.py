"""APIs of the usual shapes: each is recognised, and its draft walks every record to the end."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scan_pipeline.core.errors import ProtocolError, ScanPipelineError
from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import End, Position
from scan_pipeline.core.walk import Walk
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.connecting.connection import check_connection
from scan_pipeline.stages.drafting.draft import draft
from scan_pipeline.stages.drafting.question import question
from scan_pipeline.stages.drafting.writing import scan_file
from scan_pipeline.stages.records.schema import resolve_schema
from scan_pipeline_tests.stages.drafting import shapes
from scan_pipeline_tests.stages.drafting.shapes import Api, rows

URL = "https://api.test/things"
NUMBER = 35

RECOGNISED = {
    "link_header": (shapes.link_header, URL, "next_link"),
    "relative_link_header": (shapes.relative_link_header, URL, "next_link"),
    "odata": (shapes.odata, URL, "next_link"),
    "django": (shapes.django, URL, "next_link"),
    "hal": (shapes.hal, URL, "next_link"),
    "json_api": (shapes.json_api, URL, "next_link"),
    "aip": (shapes.aip, URL, "page_token"),
    "snake_token": (shapes.snake_token, URL, "page_token"),
    "slack": (shapes.slack, "https://slack.com/api/users.list", "page_token"),
    "slack_like": (shapes.slack, URL, "page_token"),
    "nested_after": (shapes.nested_after, URL, "page_token"),
    "cursor_sent_as_after": (shapes.cursor_sent_as_after, URL, "page_token"),
    "opaque_next": (shapes.opaque_next, URL, "page_token"),
    "next_page_number": (shapes.next_page_number, URL, "page_token"),
    "has_more": (shapes.has_more, URL, "last_key"),
    "stripe": (shapes.has_more, "https://api.stripe.com/v1/things", "last_key"),
    "offset_in_body": (shapes.offset_in_body, URL, "offset"),
    "offset_in_address": (shapes.offset_in_address, f"{URL}?offset=0&limit=8", "offset"),
    "numbered": (shapes.numbered, URL, "offset"),
    "spring": (shapes.spring, URL, "offset"),
    "bare_numbered": (shapes.bare_numbered, URL, "offset"),
    "catalog": (shapes.catalog, "https://registry.test/v2/_catalog", "next_link"),
    "version_not_read": (shapes.versioned(read=False), URL, "page_token"),
    "version_read": (shapes.versioned(read=True), URL, "page_token"),
}


def surroundings(api):
    return Surroundings(
        environ={},
        inner=api.transport,
        clock=lambda: datetime(2026, 11, 30, tzinfo=UTC),
        sleep=lambda _: None,
        retries=Retries(attempts=1),
    )


def drafted(style, *, url=URL, number=NUMBER, records=None):
    api = Api(style, rows(number) if records is None else records)
    return draft(question(url), surroundings=surroundings(api)), api


def parsed(found, folder: Path):
    path = folder / "drafted.yaml"
    path.write_text(scan_file(found), encoding="utf-8")
    scan = read_scan_file(path).parse()
    resolve_schema(scan.record_schema)
    return scan


def walked(scan, api) -> int:
    """Follow a scan's source to its declared end; return how many records came."""
    source, walk, position = (
        open_source(scan, surroundings(api)),
        Walk(scan.source, scan.contract),
        Position(),
    )
    while True:
        walk.before_request(position, seconds=0)
        page = source.fetch(position, refused=lambda _: None)
        walk.admit(page)
        if isinstance(page.continuation, End):
            return walk.records
        position = Position(token=page.continuation.token, pin=walk.pin)


@pytest.mark.parametrize("name", sorted(RECOGNISED))
def test_shape_is_recognised_and_its_draft_walks_every_record(name, tmp_path):
    style, url, protocol = RECOGNISED[name]

    found, api = drafted(style, url=url)
    scan = parsed(found, tmp_path)

    assert not found.fill_in
    assert scan.source.protocol == protocol
    assert scan.contract.key == (("name",) if name == "catalog" else ("id",))
    assert walked(scan, api) == NUMBER


@pytest.mark.parametrize("name", sorted(RECOGNISED))
def test_nothing_is_drafted_that_could_be_called_whole_unread(name):
    style, url, _ = RECOGNISED[name]

    contract = drafted(style, url=url)[0].attributes["contract"]

    assert contract["accept"] == {"scope": "records_encountered_in_live_traversal"}
    assert contract["consistency"] == ("snapshot" if name == "version_read" else "live")


@pytest.mark.parametrize("name", sorted(RECOGNISED))
def test_no_more_is_asked_than_a_few_requests(name):
    style, url, _ = RECOGNISED[name]

    found, api = drafted(style, url=url)

    assert found.requests == len(api.asked) <= 12
    assert found.pages == 2


def facts(name):
    style, url, _ = RECOGNISED[name]
    return drafted(style, url=url)[0].attributes["source"]


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("hal", {"at": "_links.next.href", "ends_when": [{"is": "no_next_link"}]}),
        ("json_api", {"at": "links.next", "ends_when": [{"is": "null"}]}),
        ("link_header", {"relation": "next", "ends_when": [{"is": "no_next_link"}]}),
        (
            "aip",
            {
                "at": "nextPageToken",
                "send_as": "pageToken",
                "ends_when": [{"is": "empty_string"}, {"is": "absent"}],
            },
        ),
        (
            "cursor_sent_as_after",
            {
                "at": "meta.next_cursor",
                "send_as": "after",
                "ends_when": [{"is": "null"}, {"at": "has_more", "is": "false"}],
            },
        ),
        (
            "offset_in_body",
            {
                "send_as": "offset",
                "counts": "rows",
                "first": 0,
                "ends_when": [{"is": "empty_page"}],
            },
        ),
        (
            "spring",
            {
                "send_as": "page",
                "counts": "pages",
                "first": 0,
                "ends_when": [{"at": "last", "is": "equals", "value": True}],
            },
        ),
        (
            "numbered",
            {
                "send_as": "page",
                "counts": "pages",
                "first": 1,
                "ends_when": [{"is": "total_pages", "at": "pagination.total_pages"}],
            },
        ),
    ],
)
def test_continuation_is_declared_as_it_was_seen(name, following):
    assert facts(name)["next"] == following


@pytest.mark.parametrize(
    ("name", "provider"),
    [("odata", "odata"), ("slack", "slack"), ("stripe", "stripe"), ("catalog", "docker_registry")],
)
def test_documented_facts_of_a_provider_are_named_and_not_guessed(name, provider):
    found = facts(name)

    assert found["provider"] == provider
    assert "next" not in found


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("django", {"at": "count", "means": "total", "exactness": "estimate"}),
        ("odata", {"at": ["@odata.count"], "means": "total", "exactness": "estimate"}),
        ("bare_numbered", {"header": "x-total-count", "means": "total", "exactness": "estimate"}),
        ("link_header", None),
    ],
)
def test_count_is_an_estimate_until_a_person_says_more(name, count):
    style, url, _ = RECOGNISED[name]

    found = drafted(style, url=url)[0]

    assert found.attributes["source"].get("count") == count
    assert found.pages_implied == (4 if count else None)
    assert found.night_bytes == (4 * found.page_bytes if count else None)


def test_parameters_of_the_walk_are_not_sent_twice():
    found = facts("offset_in_address")

    assert found["page_size"] == {"send_as": "limit", "value": 8}
    assert "params" not in found


def test_list_beside_the_records_is_not_taken_for_them_though_it_is_longer():
    assert facts("json_api")["records_at"] == "data"


def test_version_that_the_source_does_not_read_is_no_pin():
    found = drafted(shapes.versioned(read=False))[0]

    assert "snapshot" not in found.attributes["source"]
    assert any("no snapshot is claimed" in each for each in found.notes["source"])


def test_pin_is_drafted_as_declared_and_not_as_documented():
    found = drafted(shapes.versioned(read=True))[0]

    pin = {"at": "version", "send_as": "version", "basis": "user_declared"}
    assert found.attributes["source"]["snapshot"] == pin
    assert "basis: user_declared - confirm it in the provider's documentation" in scan_file(found)


def test_answer_that_names_no_way_on_is_left_to_a_person():
    found, api = drafted(shapes.bare)

    assert set(found.fill_in) == {"source.protocol", "source.next"}
    assert "protocol" not in found.attributes["source"]
    assert "it proves neither" in found.fill_in["source.protocol"]
    assert "TO FILL IN: protocol" in scan_file(found)
    assert len(api.asked) <= 12


def test_collection_of_one_page_is_drafted_with_the_end_that_it_shows(tmp_path):
    found, api = drafted(shapes.whole_on_one_page, number=7)

    assert found.pages == 1
    assert found.attributes["source"]["next"]["ends_when"] == [{"is": "null"}]
    assert any(
        each.startswith("weaker: the first page is the last")
        for each in found.notes["source.protocol"]
    )
    assert walked(parsed(found, tmp_path), api) == 7


def test_link_to_another_origin_is_not_followed():
    found, api = drafted(shapes.elsewhere)

    assert {each.url.host for each in api.asked} == {"api.test"}
    assert any("https://elsewhere.test" in why for _, why in found.tried)
    assert "source.next" in found.fill_in


def test_key_of_two_fields_is_found_where_one_does_not_do(tmp_path):
    records = [{"account": f"a-{n // 6}", "line": n % 6, "x": 1} for n in range(NUMBER)]

    found, api = drafted(shapes.link_header, records=records)

    assert found.attributes["contract"]["key"] == ["account", "line"]
    assert walked(parsed(found, tmp_path), api) == NUMBER


def test_records_without_any_key_leave_it_to_a_person():
    found = drafted(shapes.link_header, records=[{"x": 1, "y": n // 2} for n in range(NUMBER)])[0]

    assert list(found.fill_in) == ["contract.key"]
    assert "key" not in found.attributes["contract"]
    assert "record_schema" not in found.attributes


def test_field_that_is_null_or_not_unique_somewhere_is_no_key():
    records = rows(NUMBER)
    records[14]["id"] = None

    key = drafted(shapes.link_header, records=records)[0].attributes["contract"]["key"]

    assert key == ["rank"]


def test_types_hold_for_every_record_of_both_pages():
    columns = drafted(shapes.link_header)[0].attributes["record_schema"]

    assert {each["name"]: each["type"] for each in columns} == {
        "name": "string",
        "id": "string",
        "rank": "int64",
        "price": "float64",
        "note": "json",
    }
    assert [each["name"] for each in columns if each.get("nullable") is False] == ["id"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["2026-11-30T02:00:00Z", "2026-11-30T02:00:00.123456+01:00"], "timestamp"),
        (["2026-11-30T02:00:00Z", "2026-11-30"], "string"),
        (["2026-11-30T02:00:00.123456789Z"], "string"),
        ([1, 2.5], "float64"),
        ([2**63], "json"),
        ([1, "1"], "json"),
        ([True, None], "bool"),
        ([[1]], "json"),
        ([b"12345678901234567.89"], "json"),
    ],
)
def test_type_is_one_that_loses_nothing(values, kind):
    records = rows(NUMBER)
    for n, each in enumerate(records):
        each["v"] = values[n % len(values)]

    def style(params, url, records):
        page, headers = shapes.link_header(params, url, records)
        raw = json.dumps(page, default=lambda each: f"raw:{each.decode()}")
        return re.sub(r'"raw:([^"]*)"', r"\1", raw).encode(), headers

    columns = drafted(style, records=records)[0].attributes["record_schema"]

    assert {each["name"]: each["type"] for each in columns}["v"] == kind


def test_page_of_html_is_told_as_that():
    with pytest.raises(ProtocolError, match="HTML or XML"):
        drafted(lambda *_: (b"<!doctype html><html></html>", {}))


NAMES = st.sampled_from(
    [
        "items",
        "next",
        "next_cursor",
        "id",
        "data",
        "total",
        "version",
        "has_more",
        "links",
        "a.b",
        "$",
    ]
) | st.text(max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=6) | st.lists(VALUES, max_size=4))
def test_whatever_comes_back_is_drafted_or_refused_and_says_the_same_as_text(body):
    try:
        found, _ = drafted(lambda *_: (body, {}))
    except ScanPipelineError:
        return
    assert yaml.safe_load(scan_file(found)) == found.attributes


@pytest.mark.parametrize("name", sorted(RECOGNISED))
def test_what_is_drafted_is_as_declared_when_its_source_is_asked(name, tmp_path):
    style, url, _ = RECOGNISED[name]
    found, api = drafted(style, url=url)
    scan = parsed(found, tmp_path)

    asked = check_connection(scan, source=open_source(scan, surroundings(api)))

    assert [each for each in asked.lines if each.result == "failed"] == []
    assert asked.passed
