"""Requests read the way a scan file says they are made, and held to it."""

import json
from typing import Any, Final

import httpx2

from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpFacts, Place
from scan_pipeline.sources.last_key import LastKeySource
from scan_pipeline.sources.next_link import NextLinkSource
from scan_pipeline.sources.offset import OffsetSource
from scan_pipeline.sources.page_token import PageTokenSource

CURSOR: Final = "conformance_cursor"
"""Parameter of the links that the kit's server hands out."""


@record
class Asked:
    """What a request asks for.

    Attributes:
        token: opaque continuation, None for the first page.
        start: row it begins with, where the protocol says so itself (offsets).
        after: key it begins after, where the protocol says so.
        size: page size asked for.
        pin: version named.
        bound: high-water mark named.
    """

    token: str | None = None
    start: int | None = None
    after: tuple[str, ...] | None = None
    size: int | None = None
    pin: str | None = None
    bound: str | None = None


class RequestReader:
    """Reads page requests of one source.

    Args:
        facts: the source.
        size: records of a page where a request names no number.
    """

    def __init__(self, facts: HttpFacts, *, size: int) -> None:
        self._facts, self._size = facts, size

    def wrong(self, request: httpx2.Request) -> str | None:
        """Return what a request does not say that the scan file freezes, None for nothing."""
        facts = self._facts
        if request.method != facts.method:
            return "method"
        params = dict(request.url.params)
        for name, value in facts.params.items():
            if params.get(name) != value:
                return f"parameter {name}"
        for name, value in facts.headers.items():
            if request.headers.get(name) != value:
                return f"header {name}"
        for name, value in (facts.body or {}).items():
            if not _holds(self._body(request).get(name), value):
                return f"body field {name}"
        return None

    def read(self, request: httpx2.Request) -> Asked:
        """Return what a page request asks for."""
        facts = self._facts
        size = facts.page_size and self._ours(request, facts.page_size.send_as)
        pin = facts.snapshot and self._ours(request, facts.snapshot.send_as)
        bound = facts.high_water_mark and self._ours(request, facts.high_water_mark.send_as)
        asked: dict[str, Any] = {
            "size": None if size is None else int(size),
            "pin": None if pin is None else str(pin),
            "bound": None if bound is None else str(bound),
        }
        match facts:
            case PageTokenSource():
                place = facts.next.send_in or facts.send_in
                token = self._at(request, facts.next.send_as, place)
                told = None if token in (None, facts.next.first) else str(token)
                return Asked(token=told, **asked)
            case NextLinkSource():
                return Asked(token=request.url.params.get(CURSOR), **asked)
            case OffsetSource():
                number = int(self._ours(request, facts.next.send_as) or 0) - facts.next.first
                by_pages = facts.next.counts == "pages"
                return Asked(
                    start=number * (asked["size"] or self._size) if by_pages else number, **asked
                )
            case LastKeySource():
                parts = [self._ours(request, each.send_as) for each in facts.next.after]
                told = None if None in parts else tuple(map(str, parts))
                return Asked(after=told, **asked)
            case _:
                return Asked(**asked)

    def _ours(self, request: httpx2.Request, name: str) -> Any:
        return self._at(request, name, self._facts.send_in)

    def _at(self, request: httpx2.Request, name: str, place: Place) -> Any:
        if place == "header":
            return request.headers.get(name)
        if place == "query":
            return request.url.params.get(name)
        path: FieldPath = tuple(name.split("."))
        value = value_at(self._body(request), path)
        return None if value is ABSENT else value

    def _body(self, request: httpx2.Request) -> dict[str, Any]:
        return json.loads(request.content or b"{}")


def _holds(found: Any, declared: Any) -> bool:
    """Say whether a body field is as declared; the walk adds members to objects."""
    if isinstance(declared, dict) and isinstance(found, dict):
        return all(_holds(found.get(name), value) for name, value in declared.items())
    return found == declared
