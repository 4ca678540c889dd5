"""Answers refused beside the walk's way are events of it too, before the close event."""

from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest

from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.run import run_scan

PAGES = [[b'{"id":"a","n":1}'], [b'{"id":"b","n":2}'], [b'{"id":"c","n":3}']]
IDENTITY = {"url": "http://source.test/me", "at": "name"}


def refusing(
    pages: Callable[[Sequence[Sequence[bytes]]], httpx2.MockTransport], *, path: str, nth: int
) -> httpx2.MockTransport:
    """Serve the pages and who we are; the nth request to a path is answered with 503."""
    served, asked = pages(PAGES), dict[str, int]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked[request.url.path] = asked.get(request.url.path, 0) + 1
        if request.url.path == path and asked[path] == nth:
            return httpx2.Response(503)
        if request.url.path == "/me":
            return httpx2.Response(200, content=b'{"name":"auditor"}')
        return served.handle_request(request)

    return httpx2.MockTransport(answer)


@pytest.mark.parametrize(
    ("path", "nth", "told"),
    [
        ("/things", 4, ("page", "again")),  # the first page, read again under the pin
        ("/me", 1, ("open", "beside")),
        ("/me", 2, ("page", "beside")),
    ],
)
def test_what_was_refused_beside_the_way_is_in_the_ledger(  # noqa: PLR0917  # fixtures
    bench: Any,
    things: Callable[..., Any],
    laid_down: Callable[..., httpx2.MockTransport],
    path: str,
    nth: int,
    told: tuple[str, str],
) -> None:
    """It is told with what it was asked for, the chain holds, and the receipt counts it."""
    scan = things({"source.identity": IDENTITY})
    workspace = bench.workspace(inner=refusing(laid_down, path=path, nth=nth))
    receipt = run_scan(scan, workspace=workspace).stored.receipt
    events = workspace.store("things", receipt.scan_generation).events()
    at = next(number for number, each in enumerate(events) if each.event == "refused")

    assert (receipt.coverage_status, receipt.refused_responses) == ("verified", 1)
    assert (events[at - 1].event, events[at].facts["asked"]) == told
    assert events[at].facts["status"] == 503
    assert events[-1].event == "close"
    assert Audit("things", receipt.scan_generation, workspace=workspace).run().agrees


def test_what_the_recheck_never_got_is_counted(
    bench: Any, things: Callable[..., Any], laid_down: Callable[..., httpx2.MockTransport]
) -> None:
    """A source that answers nothing more after its end leaves each refusal in the ledger."""
    served, asked = laid_down(PAGES), list[str]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return served.handle_request(request) if len(asked) <= len(PAGES) else httpx2.Response(503)

    workspace = bench.workspace(inner=httpx2.MockTransport(answer))
    receipt = run_scan(things(), workspace=workspace).stored.receipt

    assert receipt.coverage_status == "unknown"
    assert receipt.refused_responses == len(asked) - len(PAGES) > 1
