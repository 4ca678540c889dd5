"""Where a change token may come from, and what is none."""

from typing import Any

import httpx2
import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Position
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline_tests.sources.over_http import Asking, answered, scan_of

URL = "https://api.test/things"
SOURCE: dict[str, Any] = {
    "protocol": "page_token",
    "url": URL,
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
}
CONTRACT = {"key": ["id"], "consistency": "change_token"}


def asking(told: dict[str, Any], answer: httpx2.Response) -> Asking:
    facts = {**SOURCE, "change_token": {"url": f"{URL}/state", **told}}
    return Asking(facts, lambda _: answer, contract=CONTRACT)


@pytest.mark.parametrize(
    ("told", "answer", "token"),
    [
        ({"at": "state.version"}, answered({"state": {"version": "v7"}}), "v7"),
        ({"at": "version"}, answered({"version": 2**63}), str(2**63)),
        ({"header": "X-Version"}, answered({}, headers={"x-version": " 7 "}), "7"),
        ({"header": "ETag"}, answered({}, headers={"etag": '"7"'}), '"7"'),
    ],
)
def test_token_is_read_before_and_after(
    told: dict[str, Any], answer: httpx2.Response, token: str
) -> None:
    one = asking(told, answer)

    assert one.source.opening().change_token == token
    assert one.source.closing(Position()).change_token == token
    assert {str(each.url) for each in one.requests} == {f"{URL}/state"}


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"at": "version"}, answered({})),
        ({"at": "version"}, answered({"version": None})),
        ({"at": "version"}, answered({"version": ""})),
        ({"at": "version"}, answered({"version": True})),
        ({"header": "ETag"}, answered({})),
        ({"header": "ETag"}, answered({}, headers={"etag": " "})),
        ({"header": "ETag"}, answered({}, headers={"etag": 'W/"7"'})),
    ],
)
def test_missing_or_weak_token_is_an_error(told: dict[str, Any], answer: httpx2.Response) -> None:
    with pytest.raises(ProtocolError) as caught:
        asking(told, answer).source.opening()

    assert caught.value.code == "reported_invalid"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "change_token needs source.change_token"),
        ({"change_token": {"url": URL}}, "exactly one of: at, header"),
        ({"change_token": {"url": URL, "at": "a", "header": "b"}}, "exactly one of: at, header"),
        ({"change_token": {"url": URL, "header": "Last-Modified"}}, "date of last modification"),
        ({"change_token": {"url": "https://other.test/", "at": "a"}}, "another origin"),
    ],
)
def test_facts_that_make_no_token_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ScanFileError, match=message):
        scan_of({**SOURCE, **facts}, contract=CONTRACT)
