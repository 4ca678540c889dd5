"""A client as they are commonly written, and the sentence it would say.

It believes every answer: the first page stands for the collection, an unreadable page is the end,
a retry is as good as a first try, and a count that matches is proof. It is here to be wrong in
public.
"""

from collections.abc import Mapping
from typing import Any, Final

import httpx2

from scan_pipeline.core.value import record

PAGE_LIMIT: Final = 120
"""Where it gives up following, in pages: somebody once had an endless loop."""

_TRIES: Final = 3
_TRY_AGAIN: Final = frozenset({429, 500, 502, 503, 504})


@record
class NaiveReport:
    """What the client would have told.

    Attributes:
        pages: pages it read.
        records: records it counted, whatever their keys.
        expected_count: the count it saw last; None where it saw none.
        unmigrated: records among them that still need schema version 3.
        sentence: what it would have said.
    """

    pages: int
    records: int
    expected_count: int | None
    unmigrated: int
    sentence: str


def read_first_page(client: httpx2.Client, url: str, *, params: Mapping[str, str]) -> NaiveReport:
    """Read one page and speak of the collection.

    Args:
        client: sends the requests, token included.
        url: of the collection.
        params: of the first request.
    """
    page = _read(client, url, dict(params)) or _Page(items=[], following=None, count=None)
    unmigrated = _unmigrated(page.items)
    if unmigrated:
        sentence = f"{unmigrated:,} customers still need schema version 3."
    else:
        everyone = _counted(len(page.items), "customer")
        sentence = f"All {everyone} have schema version 3: the migration is complete."
    return NaiveReport(
        pages=1,
        records=len(page.items),
        expected_count=page.count,
        unmigrated=unmigrated,
        sentence=sentence,
    )


def follow_cursors(
    client: httpx2.Client,
    url: str,
    *,
    params: Mapping[str, str],
    page_limit: int = PAGE_LIMIT,
) -> NaiveReport:
    """Follow cursors until none comes, count rows and compare with the count.

    Args:
        client: sends the requests, token included.
        url: of the collection.
        params: of the first request; repeated on each.
        page_limit: how many pages it reads at most.
    """
    pages = records = unmigrated = 0
    expected: int | None = None
    following: dict[str, str] | None = {}
    while following is not None and pages < page_limit:
        page = _read(client, url, {**params, **following})
        if page is None:
            break
        pages += 1
        records += len(page.items)
        unmigrated += _unmigrated(page.items)
        expected = page.count if page.count is not None else expected
        following = page.following
    return NaiveReport(
        pages=pages,
        records=records,
        expected_count=expected,
        unmigrated=unmigrated,
        sentence=f"{_coverage(pages, records, expected)} {_migration(unmigrated)}",
    )


@record
class _Page:
    items: list[Any]
    following: dict[str, str] | None
    count: int | None


def _coverage(pages: int, records: int, expected: int | None) -> str:
    on = f"on {_counted(pages, 'page')}"
    if expected is not None and records == expected:
        return f"Read {records:,} of {_counted(expected, 'customer')} {on}: nothing is missing."
    return f"Read all {_counted(records, 'customer')} {on}."


def _migration(unmigrated: int) -> str:
    if unmigrated:
        return f"{unmigrated:,} still need schema version 3."
    return "The migration is complete."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _read(client: httpx2.Client, url: str, params: dict[str, str]) -> _Page | None:
    """Return a page, or None for whatever cannot be read: it is taken for the end."""
    try:
        body = _get(client, url, params).json()
        items = body["items"]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return None
    cursor = body["page"].get("next_cursor")
    snapshot_id = body["collection"].get("snapshot_id")
    following = None
    if cursor:
        following = {"cursor": cursor} | ({"snapshot_id": snapshot_id} if snapshot_id else {})
    return _Page(items=items, following=following, count=body["collection"].get("expected_count"))


def _get(client: httpx2.Client, url: str, params: dict[str, str]) -> httpx2.Response:
    for _ in range(_TRIES - 1):
        try:
            response = client.get(url, params=params)
        except httpx2.TransportError:
            continue
        if response.status_code not in _TRY_AGAIN:
            return response
    return client.get(url, params=params)


def _unmigrated(items: list[Any]) -> int:
    return sum(1 for item in items if item.get("schema_version") != 3)
