"""How a page is put together: whose rows, which of them, and what follows.

An honest page is a keyset cut: the rows behind the cursor's place, in order. Each fault changes
one step of that and nothing else.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from scan_pipeline.core.value import record
from scan_pipeline.simulator.admission import PageRequest
from scan_pipeline.simulator.collection import Collection, Place, Revision, View
from scan_pipeline.simulator.cursors import Cursor, CursorCodec
from scan_pipeline.simulator.damage import damaged_record
from scan_pipeline.simulator.faults import (
    CompletionMisreported,
    CountChanged,
    CountDropped,
    CursorCorrupted,
    CursorDropped,
    CursorRepeats,
    EmptyPage,
    EndEarly,
    Fault,
    FilterChanged,
    PageReplaced,
    PageSkipped,
    PinNotHonoured,
    PrincipalNarrowed,
    RecordDamaged,
    RowsWithheld,
    ShortPage,
    SnapshotChanged,
)

FaultT = TypeVar("FaultT")


@record
class PageContent:
    """What a page says.

    Attributes:
        items: records as they go out.
        returned_count: how many it says they are.
        next_cursor: where it goes on; None says that nothing follows.
        cursor_told: False leaves the member `next_cursor` out.
        is_complete: whether it says that nothing follows.
        snapshot_id: the pin it reports; None for a live view.
        expected_count: the exact count it reports; None leaves the member out.
        high_water_mark: the bound in force, else the newest number of the sequence.
    """

    items: tuple[bytes, ...]
    returned_count: int
    next_cursor: str | None
    cursor_told: bool
    is_complete: bool
    snapshot_id: str | None
    expected_count: int | None
    high_water_mark: int


@record
class _Source:
    revision: Revision
    view: View
    count: int
    snapshot_id: str | None


@record
class _Cut:
    items: tuple[bytes, ...]
    returned_count: int
    place: Place | None
    more: bool


def first_of(faults: Iterable[Fault], kind: type[FaultT]) -> FaultT | None:
    """Return the first fault of a kind, or None."""
    return next((fault for fault in faults if isinstance(fault, kind)), None)


def honest_view(request: PageRequest, collection: Collection) -> View:
    """Return the rows that were asked for, before anything goes wrong.

    The revision of a checked snapshot exists.
    """
    pinned = request.snapshot and collection.revision(request.snapshot.revision)
    return (pinned or collection.head).view(request.query.selection)


def is_last_page(request: PageRequest, view: View) -> bool:
    """Say whether the page reaches the last row of its view."""
    return view.start_after(request.after) + request.query.page_size >= len(view)


def page_start(faults: Iterable[Fault], *, page: int, page_size: int) -> int:
    """Return the index of a page's first row in its view.

    Args:
        faults: every fault of the collection; those that make pages shorter or pass rows over
            move the pages behind them.
        page: number of the page, from 1.
        page_size: rows of a whole page.
    """
    faults = tuple(faults)
    start = 0
    for earlier in range(1, page):
        here = [fault for fault in faults if fault.strikes(page=earlier, is_last=False, attempt=1)]
        short = first_of(here, ShortPage)
        if first_of(here, EmptyPage) is None:
            start += min(page_size, short.rows) if short else page_size
        if first_of(here, PageSkipped) is not None:
            start += page_size
    return start


def page_content(
    request: PageRequest,
    *,
    collection: Collection,
    faults: tuple[Fault, ...],
    scripted: tuple[Fault, ...],
    narrowed: PrincipalNarrowed | None,
    codec: CursorCodec,
    nonces: Callable[[], str],
) -> PageContent:
    """Put a page together.

    Args:
        request: what to answer.
        collection: where the rows are.
        faults: those that strike this request.
        scripted: every fault of the collection, for where its pages begin.
        narrowed: how far the principal's view has shrunk, if it has.
        codec: seals the next cursor.
        nonces: gives fresh text for cursors that must read differently each time.
    """
    source = _source(request, collection, faults, narrowed)
    cut = _cut(request, source.view, faults, scripted)
    following: Cursor | None = None
    if cut.more:
        following = Cursor(
            page=request.page + 1,
            after=cut.place,
            principal=request.principal.name,
            scope=request.query.scope,
            snapshot_id=source.snapshot_id or "",
            nonce=request.nonce,
        )
    if first_of(faults, EndEarly) is not None:
        following = None
    if (repeat := first_of(faults, CursorRepeats)) is not None:
        start = page_start(scripted, page=repeat.to, page_size=request.query.page_size)
        following = Cursor(
            page=repeat.to,
            after=source.view.places[start - 1] if 0 < start <= len(source.view) else None,
            principal=request.principal.name,
            scope=request.query.scope,
            snapshot_id=source.snapshot_id or "",
            nonce=nonces() if repeat.fresh_text else request.nonce,
        )
    text = codec.seal(following) if following is not None else None
    if text is not None and first_of(faults, CursorCorrupted) is not None:
        text = text[:4] + text[:3:-1]
    misreported = first_of(faults, CompletionMisreported) is not None
    return PageContent(
        items=cut.items,
        returned_count=cut.returned_count,
        next_cursor=text,
        cursor_told=first_of(faults, CursorDropped) is None,
        is_complete=(following is None) is not misreported,
        snapshot_id=source.snapshot_id,
        expected_count=_count(request, source, faults),
        high_water_mark=_high_water_mark(request, source),
    )


def _source(
    request: PageRequest,
    collection: Collection,
    faults: tuple[Fault, ...],
    narrowed: PrincipalNarrowed | None,
) -> _Source:
    selection = request.query.selection
    revision = collection.head
    snapshot = request.snapshot
    if snapshot is not None:
        revision = collection.revision(snapshot.revision) or revision
    if first_of(faults, PinNotHonoured) is not None:
        revision = collection.head
    if snapshot is not None and first_of(faults, SnapshotChanged) is not None:
        revision = collection.head
        later = snapshot.at + timedelta(minutes=1)
        snapshot = replace(snapshot, at=later, revision=revision.number)
    asked_for = len(revision.view(selection))
    count: int | None = None
    if narrowed is not None and selection.tenant is None:
        selection = replace(selection, tenant=narrowed.tenant)
        count = asked_for if narrowed.count == "stays" else None
    if (changed := first_of(faults, FilterChanged)) is not None:
        selection = replace(selection, filters=changed.filters)
        count = asked_for if changed.count == "stays" else None
    view = revision.view(selection)
    return _Source(
        revision=revision,
        view=view,
        count=len(view) if count is None else count,
        snapshot_id=snapshot.text if snapshot is not None else None,
    )


def _cut(
    request: PageRequest, view: View, faults: tuple[Fault, ...], scripted: tuple[Fault, ...]
) -> _Cut:
    size = request.query.page_size
    start = view.start_after(request.after)
    if first_of(faults, PageSkipped) is not None:
        start = min(start + size, len(view))
    stop = min(start + size, len(view))
    if (short := first_of(faults, ShortPage)) is not None:
        stop = min(stop, start + short.rows)
    if (empty := first_of(faults, EmptyPage)) is not None:
        stop = start
    shown = slice(start, stop)
    if (replaced := first_of(faults, PageReplaced)) is not None:
        other = page_start(scripted, page=replaced.by, page_size=size)
        shown = slice(other, other + size)
    items = view.raws[shown]
    if any(isinstance(fault, RecordDamaged) for fault in faults):
        items = [
            damaged_record(row.raw, number=row.number, faults=faults) for row in view.rows[shown]
        ]
    returned_count = len(items)
    if (withheld := first_of(faults, RowsWithheld)) is not None:
        items = items[: -withheld.rows]
        returned_count = returned_count if withheld.returned_count == "as_claimed" else len(items)
    place = view.places[stop - 1] if stop else None
    endless = empty is not None and (empty.through == "end" or empty.page == "every")
    return _Cut(
        items=tuple(items),
        returned_count=returned_count,
        place=place,
        more=endless or view.start_after(place) < len(view),
    )


def _count(request: PageRequest, source: _Source, faults: tuple[Fault, ...]) -> int | None:
    if not request.query.counted or first_of(faults, CountDropped) is not None:
        return None
    changed = first_of(faults, CountChanged)
    return source.count + (changed.by if changed is not None else 0)


def _high_water_mark(request: PageRequest, source: _Source) -> int:
    bound = request.query.selection.up_to
    return source.revision.high_water_mark if bound is None else bound
