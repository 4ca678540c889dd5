"""Two equal walks prove nothing where the source's own links and tokens are offsets."""

from typing import Any

import httpx2
import pytest

from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.sources.http.counters import counts_rows
from scan_pipeline_tests.sources.over_http import answered, walk

URL = "https://api.test/things"
TWICE = {"key": ["id"], "consistency": "two_equal_walks"}


@pytest.mark.parametrize(
    ("name", "value", "counted"),
    [
        ("offset", "100", True),
        ("$skip", "100", True),
        ("startIndex", "101", True),
        ("page[number]", "2", True),
        ("page.offset", "100", True),
        ("page_number", "2", True),
        ("page", "eyJpZCI6MTAwfQ", False),
        ("$skiptoken", "100", False),
        ("after", "100", False),
        ("offset", "", False),
    ],
)
def test_name_and_number_together_tell_a_counter(name: str, value: str, counted: bool) -> None:
    assert counts_rows(name, value) is counted


@pytest.mark.parametrize(
    ("parameter", "status"), [("offset", "unknown"), ("after", "corroborated")]
)
def test_links_that_hold_offsets_are_not_corroborated(
    tmp_path: Any, parameter: str, status: str
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        later = parameter in request.url.params
        link = None if later else f"{URL}?{parameter}=1"
        return answered({"items": [{"id": "b" if later else "a"}], "next": link})

    receipt = walk(
        {
            "protocol": "next_link",
            "url": URL,
            "records_at": "items",
            "next": {"at": "next", "ends_when": [{"is": "null"}]},
        },
        answer,
        tmp_path,
        contract=TWICE,
    ).receipt

    assert receipt.coverage_status == status
    told = {each.code for each in receipt.findings.first}
    assert told == ({"continuation_counts_rows"} if status == "unknown" else set())


def test_token_that_is_a_page_number_is_not_corroborated(tmp_path: Any) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        later = "page" in request.url.params
        body = {"items": [{"id": "b" if later else "a"}], "next": None if later else "2"}
        return answered(body)

    receipt = walk(
        {
            "protocol": "page_token",
            "url": URL,
            "records_at": "items",
            "next": {"at": "next", "send_as": "page", "ends_when": [{"is": "null"}]},
        },
        answer,
        tmp_path,
        contract=TWICE,
    ).receipt

    assert (receipt.coverage_status, receipt.accepted) == ("unknown", False)


def test_cursor_of_a_tool_that_is_an_offset_is_told_by_its_argument() -> None:
    next_by = {"at": "next", "send_as": "offset", "ends_when": [{"is": "null"}]}
    source = {
        "protocol": "mcp_tool",
        "transport": {"http": {"url": "http://127.0.0.1/mcp"}},
        "tool": "list_things",
        "records_at": "items",
        "next": next_by,
    }
    contract = {"key": ["id"], "consistency": "live"}
    facts = parse_scan({"name": "things", "source": source, "contract": contract}).source

    assert [facts.counter_in(each) for each in ("40", '"40"', '"k40"')] == ["offset"] * 2 + [None]
