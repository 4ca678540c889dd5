"""Read one page of a question."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.agents import statements
from scan_pipeline.agents.answers import Item, PageAnswer, PageOfRows
from scan_pipeline.agents.desk import Desk, Standing, bounds, encoded, size_of, summary, unknown
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import BEFORE_ALL
from scan_pipeline.agents.queries import query_json

_BETWEEN: Final = 1
"""Bytes between two items of a page."""

_SLACK: Final = 96
"""Bytes by which what stands around the items may grow: a cursor, and longer figures."""

_LEAST_ROOM: Final = 256
"""Least bytes for items; with fewer, not even a row that is too large could be named."""


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
    if page_size is not None and page_size < 1:
        raise ReaderError(
            "narrow", "page_size_unfit", f"found a page size of {page_size:,}; expected 1 or more"
        )
    place = desk.ledger.cursor(cursor)
    if place is None:
        raise unknown("cursor")
    policy = desk.policy()
    held = desk.held(policy, principal, place.handle)
    handle, query = held.handle, held.query
    limits, budget = policy.limits, desk.budget(policy, principal)
    wanted = min(page_size or limits.page_size, limits.page_size)
    most = query.stopping.rows
    if most is not None:
        wanted = min(wanted, most - place.first_row + 1)
    after = (place.after_page, place.after_position)

    def paged(
        standing: Standing, items: list[Item], *, used: int, following: str | None
    ) -> PageAnswer:
        last = place.first_row + len(items) - 1
        return PageAnswer(
            represents="page",
            statement=statements.page(
                query,
                first=place.first_row,
                returned=len(items),
                matching=handle.matching,
                noun=standing.access.noun,
                ground=standing.grounded.ground,
                done=most is not None and last >= most,
            ),
            query=query_json(query),
            result_handle=handle.name,
            ground=standing.grounded.ground,
            summary=summary(handle, returned=len(items), has_more=last < handle.matching),
            page=PageOfRows(number=place.page, items=items, next_cursor=following),
            limits=bounds(policy, budget, taken=taken, size=used, page_size=wanted),
        )

    with budget.taking(size=limits.answer_bytes, pages=1) as taken:
        standing = desk.opened(held)
        around = size_of(paged(standing, [], used=0, following=cursor)) + _SLACK
        room = limits.answer_bytes - around
        if room < _LEAST_ROOM:
            raise ReaderError(
                "narrow",
                "query_too_large",
                f"{around:,} of an answer's {limits.answer_bytes:,} bytes would stand around the "
                "rows; ask a shorter question, or whoever keeps the policy for more response_bytes",
            )
        rows = desk.rows(
            standing,
            first=place.first_row,
            count=wanted,
            after=None if after == BEFORE_ALL else after,
            columns=query.columns,
        )
        items, used = fitting(place.first_row, [row.values for row in rows], room)
        following = None
        last = place.first_row + len(items) - 1
        if last < handle.matching and (most is None or last < most):
            end = rows[len(items) - 1]
            following = desk.cursor(
                handle, page=place.page + 1, first_row=last + 1, after=(end.page, end.position)
            )
        answer = paged(standing, items, used=used, following=following)
        shown = [item.row for item in items if item.values is not None]
        desk.ledger.add_page(handle.name, shown=shown, size=used)
        taken.used = size_of(answer)
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
        item = Item(row=number, values=dict(values))
        size = len(encoded(item.__dict__)) + _BETWEEN
        if size > most:
            item = Item(row=number, values=None, too_large=size)
            size = len(encoded(item.__dict__)) + _BETWEEN
        if used + size > most:
            break
        items.append(item)
        used += size
    return items, used
