"""The one request of a walk: all but the continuation is frozen from the first page to the last."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from scan_pipeline.core.canonical import canonical_json, digest_of
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.page import Position
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.facts import HttpFacts, Place
from scan_pipeline.sources.http.transport import Call

JSON: Final = "application/json"


@record
class Added:
    """One value that the walk adds to its request: a continuation, a page size, a pin."""

    name: str
    value: str | int
    place: Place


class FrozenRequest:
    """Makes the requests of one walk; only the continuation moves.

    Args:
        facts: the collection.
    """

    def __init__(self, facts: HttpFacts) -> None:
        self._facts = facts

    def call(self, position: Position, *, continuation: Iterable[Added] = ()) -> Call:
        """Return the request for a page, with the continuation where the protocol puts it."""
        facts, added = self._facts, [*self._page_size(), *self.held_still(position), *continuation]
        params = dict(facts.params) | _texts(added, "query")
        headers = dict(facts.headers) | _texts(added, "header")
        if facts.method == "GET":
            return Call(url=facts.url, params=tuple(params.items()), headers=tuple(headers.items()))
        body: Mapping[str, Any] = facts.body or {}
        for each in added:
            body = _placed(body, each) if each.place == "body" else body
        if not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = JSON
        return Call(
            url=facts.url,
            params=tuple(params.items()),
            headers=tuple(headers.items()),
            method="POST",
            content=canonical_json(dict(body)),
        )

    def held_still(self, position: Position) -> list[Added]:
        """Return what holds the collection still: the pin and the bound, where there are any."""
        facts, added = self._facts, list[Added]()
        pin = self.named_pin(position)
        if facts.snapshot is not None and pin is not None:
            added.append(self._ours(facts.snapshot.send_as, pin))
        if facts.high_water_mark is not None and position.high_water_mark is not None:
            added.append(self._ours(facts.high_water_mark.send_as, position.high_water_mark))
        return added

    def named_pin(self, position: Position) -> str | None:
        """Return the pin that the request itself names; a continuation may carry it instead."""
        pin = self._facts.snapshot
        carried = pin is not None and pin.travels_in == "continuation"
        return None if carried and position.token is not None else position.pin

    def fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every request: all but cursor, pin and page size."""
        facts = self._facts
        frozen: dict[str, Any] = {
            "method": facts.method,
            "url": facts.url,
            "params": dict(facts.params),
            "headers": dict(facts.headers),
            "auth": None if facts.auth is None else facts.auth.scheme,
            "high_water_mark": position.high_water_mark,
        }
        if facts.body is not None:
            frozen["body"] = facts.body
        return digest_of(frozen)

    def _page_size(self) -> list[Added]:
        size = self._facts.page_size
        return [] if size is None else [self._ours(size.send_as, size.value)]

    def _ours(self, name: str, value: str | int) -> Added:
        return Added(name=name, value=value, place=self._facts.send_in)


def _texts(added: Iterable[Added], place: Place) -> dict[str, str]:
    return {each.name: str(each.value) for each in added if each.place == place}


def _placed(body: Mapping[str, Any], each: Added) -> dict[str, Any]:
    """Return a body with a value under a dotted path; objects on the way are made where missing."""
    *parents, last = each.name.split(".")
    placed = dict(body)
    inner = placed
    for step in parents:
        found = inner.get(step)
        if found is not None and not isinstance(found, Mapping):
            raise ContractError(
                f"source.body holds no object at {step} on the way to {each.name}; expected one, "
                "or nothing"
            )
        inner[step] = dict(found or {})
        inner = inner[step]
    inner[last] = each.value
    return placed
