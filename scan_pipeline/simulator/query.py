"""The query string of a list request, read to the letter."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.collection import Order, Selection
from scan_pipeline.simulator.cursors import fingerprint
from scan_pipeline.simulator.population import KEY_FIELDS
from scan_pipeline.simulator.principals import Principal
from scan_pipeline.simulator.rows import CollectionName

Params: TypeAlias = Sequence[tuple[str, str]]

PAGE_SIZE: Final = 100
PAGE_SIZE_CAP: Final = 500
"""More than this is not refused but clipped, as many an API does without a word."""

FILTERS: Final = ("region", "schema_version", "status", "tenant")
"""The fields that can be filtered on, and by which a collection can be partitioned."""

_COUNTS: Final = frozenset({*FILTERS, "snapshot_id", "view", "up_to"})
_LIST: Final = _COUNTS | {"page_size", "cursor", "order", "tie_breaker", "count"}


@record
class Query:
    """A list request, apart from who asks.

    Attributes:
        collection: which collection.
        selection: rows and order, with the principal's tenant in it.
        view: `pinned` reads one revision; `live` reads whatever is there at each request.
        page_size: rows a page, 1 to 500, clipped.
        cursor: as sent; None on a first page.
        snapshot_id: as sent.
        counted: whether the answer tells the exact count.
    """

    collection: CollectionName
    selection: Selection
    view: Literal["pinned", "live"] = "pinned"
    page_size: int = PAGE_SIZE
    cursor: str | None = None
    snapshot_id: str | None = None
    counted: bool = True

    @property
    def scope(self) -> str:
        """What a cursor is bound to besides principal and snapshot."""
        chosen = self.selection
        return fingerprint(
            self.collection,
            chosen.filters,
            chosen.order,
            chosen.tie_breaker,
            chosen.up_to,
            self.view,
            self.page_size,
        )


def parse_list(collection: CollectionName, params: Params, principal: Principal) -> Query:
    """Read the parameters of a page request.

    Raises:
        RequestRefusedError: 400 for a parameter that is unknown, doubled or ill-formed; 403 for
            another tenant than the principal's own.
    """
    sent = _unique(params, allowed=_LIST)
    view = _one_of(sent, "view", ("pinned", "live"))
    if view == "live" and "snapshot_id" in sent:
        raise _bad("snapshot_id", "none with view=live: it is read where it stands")
    key = KEY_FIELDS[collection]
    orders: dict[str, Order] = {
        key: "key",
        "updated_at": "updated_at",
        "-updated_at": "-updated_at",
    }
    order = orders[_one_of(sent, "order", tuple(orders))]
    tie_breaker = _one_of(sent, "tie_breaker", (key, "none"))
    return Query(
        collection=collection,
        selection=Selection(
            filters=_filters(sent, principal),
            order=order,
            tie_breaker=tie_breaker != "none" or order == "key",
            up_to=_number(sent, "up_to", least=0),
            tenant=principal.tenant,
        ),
        view="live" if view == "live" else "pinned",
        page_size=min(_number(sent, "page_size", least=1) or PAGE_SIZE, PAGE_SIZE_CAP),
        cursor=sent.get("cursor"),
        snapshot_id=sent.get("snapshot_id"),
        counted=_one_of(sent, "count", ("exact", "none")) == "exact",
    )


def parse_counts(
    collection: CollectionName, params: Params, principal: Principal
) -> tuple[str, Query]:
    """Read the parameters of a partition count: the field to count by, and the query.

    Raises:
        RequestRefusedError: as `parse_list`.
    """
    sent = _unique(params, allowed=_COUNTS | {"by"})
    by = _one_of(sent, "by", FILTERS)
    if "by" not in sent:
        raise _bad("by", f"one of {', '.join(FILTERS)}")
    rest = [(name, value) for name, value in params if name != "by"]
    return by, parse_list(collection, rest, principal)


def _unique(params: Params, *, allowed: frozenset[str]) -> dict[str, str]:
    sent: dict[str, str] = {}
    for name, value in params:
        if name not in allowed:
            raise RequestRefusedError(
                400,
                "unknown_parameter",
                f"found parameter {name!r}, expected of {', '.join(sorted(allowed))}",
            )
        if name in sent:
            raise _bad(name, "it once")
        sent[name] = value
    return sent


def _filters(sent: dict[str, str], principal: Principal) -> tuple[tuple[str, str], ...]:
    if principal.tenant is not None and sent.get("tenant", principal.tenant) != principal.tenant:
        raise RequestRefusedError(
            403, "forbidden", f"{principal.name} may read tenant {principal.tenant} only"
        )
    return tuple((name, sent[name]) for name in FILTERS if name in sent)


def _one_of(sent: dict[str, str], name: str, words: tuple[str, ...]) -> str:
    word = sent.get(name, words[0])
    if word not in words:
        raise _bad(name, f"one of {', '.join(words)}")
    return word


def _number(sent: dict[str, str], name: str, *, least: int) -> int | None:
    text = sent.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) >= least):
        raise _bad(name, f"a whole number of at least {least}")
    return int(text)


def _bad(name: str, expected: str) -> RequestRefusedError:
    return RequestRefusedError(400, "invalid_parameter", f"{name}: expected {expected}")
