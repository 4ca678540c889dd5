"""A number is no text: a version named 1 is not the version named "1"."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest

from scan_pipeline.core.page import Opening
from scan_pipeline.stages.run import run_scan

CHANGE_TOKEN = {
    "source.snapshot": ...,
    "source.change_token": {"url": "http://source.test/token", "at": "token"},
    "contract.consistency": "change_token",
}


def naming(versions: Sequence[Any], tokens: Sequence[Any] = ()) -> httpx2.MockTransport:
    """Serve two pages; requests name these versions in turn, the last one from then on."""
    left, tokens_left = list(versions), list(tokens)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/token":
            return httpx2.Response(200, content=json.dumps({"token": tokens_left.pop(0)}))
        version = left.pop(0) if len(left) > 1 else left[0]
        second = request.url.params.get("cursor") == "1"
        page = {
            "items": [{"id": "b" if second else "a", "n": 1}],
            "next": None if second else "1",
            "version": version,
            "total": 2,
        }
        return httpx2.Response(200, content=json.dumps(page))

    return httpx2.MockTransport(answer)


@pytest.mark.parametrize("version", [1, "1"])
def test_version_that_keeps_its_type_is_one_version(
    bench: Any, things: Callable[..., Any], version: Any
) -> None:
    """The receipt shows it as text."""
    workspace = bench.workspace(inner=naming([version]))
    receipt = run_scan(things(), workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.snapshot_id) == ("verified", "1")


@pytest.mark.parametrize("versions", [[1, "1"], ["1", 1]])
def test_version_that_changes_its_type_is_another_one(
    bench: Any, things: Callable[..., Any], versions: list[Any]
) -> None:
    """The second page is refused."""
    workspace = bench.workspace(inner=naming(versions))
    receipt = run_scan(things(), workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.pages_observed) == ("failed", 1)
    assert "snapshot_changed" in {each.code for each in receipt.findings.first}


def test_version_of_another_type_in_the_recheck_is_another_one(
    bench: Any, things: Callable[..., Any]
) -> None:
    """The pages read again are of a version that nobody pinned."""
    workspace = bench.workspace(inner=naming([1, 1, "1"]))
    receipt = run_scan(things(), workspace=workspace).stored.receipt

    assert receipt.coverage_status != "verified"
    assert receipt.pages_observed == 2


@pytest.mark.parametrize(
    ("tokens", "status"), [([7, 7], "verified"), ([7, "7"], "unknown"), (["7", 7], "unknown")]
)
def test_change_token_is_compared_by_type(
    bench: Any, things: Callable[..., Any], tokens: list[Any], status: str
) -> None:
    """The receipt shows it as text too."""
    workspace = bench.workspace(inner=naming(["v"], tokens))
    receipt = run_scan(things(CHANGE_TOKEN), workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.change_token) == (status, "7")


def test_openings_of_one_token_are_equal_by_type() -> None:
    number = Opening(change_token="7", change_token_is_number=True)

    assert number.is_at_token_of(number)
    assert not number.is_at_token_of(Opening(change_token="7"))
