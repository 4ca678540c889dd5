"""Read one page of a question."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.agents import statements
from scan_pipeline.agents.answers import Item, PageAnswer, PageOfRows
from scan_pipeline.agents.desk import Desk, bounds, encoded, size_of, summary, unknown
from scan_pipeline.agents.ledger import BEFORE_ALL
from scan_pipeline.agents.queries import query_json

_BETWEEN: Final = 1
"""Bytes between two items of a page."""


def read_page(
    desk: Desk, principal: str, *, cursor: str, page_size: int | None = None
) -> PageAnswer:
    """Read one page; the same cursor begins at the same row.

    Args:
        desk: what every operation needs.
        principal: who asks, by the connection.
        cursor: where the page begins.
        page_size: how many rows the caller wants; the policy may give fewer.

    Raises:
        ReaderError: the cursor is not this principal's, its ground or access changed, or the run's
            budget is used up.
    """
    place = desk.ledger.cursor(cursor)
    if place is None:
        raise unknown("cursor")
    policy = desk.policy()
    standing = desk.standing(policy, principal, place.handle)
    handle, query = standing.handle, standing.query
    limits, budget = policy.limits, desk.budget(policy, principal)
    budget.reserve(size=limits.answer_bytes, pages=1)
    wanted = min(page_size or limits.page_size, limits.page_size)
    most = query.stopping.rows
    if most is not None:
        wanted = min(wanted, most - place.first_row + 1)
    after = (place.after_page, place.after_position)
    rows = standing.viewed.rows(query, after=None if after == BEFORE_ALL else after, limit=wanted)
    room = limits.answer_bytes
    items, used = fitting(place.first_row, [row.values for row in rows], room)
    returned = len(items)
    last = place.first_row + returned - 1
    done = most is not None and last >= most
    more = last < handle.matching
    following = None
    if more and not done and returned:
        end = rows[returned - 1]
        following = desk.cursor(
            handle, page=place.page + 1, first_row=last + 1, after=(end.page, end.position)
        )
    answer = PageAnswer(
        represents="page",
        statement=statements.page(
            query,
            first=place.first_row,
            returned=returned,
            matching=handle.matching,
            noun=standing.access.noun,
            ground=standing.grounded.ground,
            done=done,
        ),
        query=query_json(query),
        result_handle=handle.name,
        ground=standing.grounded.ground,
        summary=summary(handle, returned=returned, has_more=more),
        page=PageOfRows(number=place.page, items=items, next_cursor=following),
        limits=bounds(policy, budget, size=used, page_size=wanted),
    )
    shown = [item.row for item in items if item.values is not None]
    desk.ledger.add_page(handle.name, shown=shown, size=used)
    budget.spend(size=size_of(answer), pages=1)
    return answer


def fitting(first: int, rows: Sequence[Mapping[str, Any]], most: int) -> tuple[list[Item], int]:
    """Return as many rows as fit, each whole, and their bytes.

    A row that alone does not fit is named with its size, to be read in full by its number.

    Args:
        first: number of the first row.
        rows: their values.
        most: bytes there is room for.
    """
    items, used = list[Item](), 0
    for number, values in enumerate(rows, start=first):
        size = len(encoded(values)) + _BETWEEN
        item = Item(row=number, values=dict(values))
        if size > most:
            item = Item(row=number, values=None, too_large=size)
            size = len(encoded(item.__dict__)) + _BETWEEN
        if used + size > most:
            break
        items.append(item)
        used += size
    return items, used
