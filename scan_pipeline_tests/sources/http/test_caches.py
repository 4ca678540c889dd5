"""Caches on the way: what they kept says nothing of the source now."""

from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Position
from scan_pipeline_tests.sources.over_http import Asking, answered, walk

URL = "https://api.test/things"
SOURCE: dict[str, Any] = {
    "protocol": "page_token",
    "url": URL,
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    "count": {"at": "total", "means": "total", "exactness": "exact"},
}
PAGES: dict[str | None, dict[str, Any]] = {
    None: {"items": [{"id": "a"}], "next": "2", "total": 2, "version": "v1", "cursors": []},
    "2": {"items": [{"id": "b"}], "next": None, "total": 2, "version": "v1", "cursors": []},
}


def served(request: httpx2.Request, *, age: str | None = None) -> httpx2.Response:
    body = PAGES[request.url.params.get("cursor")]
    return answered(body, headers={} if age is None else {"age": age})


def test_every_request_asks_caches_not_to_answer_from_what_they_kept() -> None:
    one = Asking(
        {**SOURCE, "change_token": {"url": f"{URL}/state", "at": "version"}},
        served,
        contract={"key": ["id"], "consistency": "change_token"},
    )

    one.source.opening()
    one.fetch()

    assert [each.headers["cache-control"] for each in one.requests] == ["no-cache"] * 2


def test_scan_file_has_the_last_word_on_a_header() -> None:
    one = Asking({**SOURCE, "headers": {"Cache-Control": "no-store"}}, served)

    one.fetch()

    assert one.last.headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize("headers", [{"Age": "7"}, {"Cache-Status": "edge; fwd=miss, near; hit"}])
def test_change_token_that_a_cache_kept_is_none(headers: dict[str, str]) -> None:
    one = Asking(
        {**SOURCE, "change_token": {"url": f"{URL}/state", "at": "version"}},
        lambda _: answered({"version": "7"}, headers=headers),
        contract={"key": ["id"], "consistency": "change_token"},
    )

    with pytest.raises(ProtocolError, match="kept by a cache") as caught:
        one.source.closing(Position())

    assert caught.value.code == "answer_from_cache"


@pytest.mark.parametrize("headers", [{}, {"Age": "0"}, {"Cache-Status": "edge; fwd=uri-miss"}])
def test_answer_that_went_through_a_cache_is_the_sources_own(headers: dict[str, str]) -> None:
    one = Asking(SOURCE, lambda _: answered(PAGES[None], headers=headers))

    assert not one.fetch().reported.from_cache


def test_second_walk_out_of_a_cache_corroborates_nothing(tmp_path: Any) -> None:
    asked = 0

    def answer(request: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return served(request, age="3" if asked > len(PAGES) else None)

    receipt = walk(
        SOURCE, answer, tmp_path, contract={"key": ["id"], "consistency": "two_equal_walks"}
    ).receipt

    assert (receipt.coverage_status, receipt.accepted) == ("unknown", False)
    assert receipt.findings.first[0].code == "answer_from_cache"


def test_pages_out_of_a_cache_are_not_those_of_the_change_token(tmp_path: Any) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return served(request, age=None if request.url.path.endswith("/state") else "3")

    receipt = walk(
        {**SOURCE, "change_token": {"url": f"{URL}/state", "at": "version"}},
        answer,
        tmp_path,
        contract={"key": ["id"], "consistency": "change_token"},
    ).receipt

    assert (receipt.coverage_status, receipt.accepted) == ("unknown", False)


def test_pin_is_not_rechecked_by_what_a_cache_kept(tmp_path: Any) -> None:
    asked = 0

    def answer(request: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return served(request, age="3" if asked > len(PAGES) else None)

    receipt = walk(
        {**SOURCE, "snapshot": {"at": "version", "send_as": "at"}},
        answer,
        tmp_path,
        contract={"key": ["id"], "consistency": "snapshot"},
    ).receipt

    assert (receipt.coverage_status, receipt.accepted) == ("unknown", False)
    assert "the pin was not rechecked" in receipt.reasons


def test_live_walk_may_read_what_a_cache_kept(tmp_path: Any) -> None:
    receipt = walk(SOURCE, lambda request: served(request, age="3"), tmp_path).receipt

    assert receipt.coverage_status == "unknown"
    assert [each.code for each in receipt.findings.first] == ["live_traversal"]
