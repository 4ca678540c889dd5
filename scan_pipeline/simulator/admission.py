"""Which page requests are let in, and under which pin."""

from datetime import datetime, timedelta

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.collection import Collection, Place
from scan_pipeline.simulator.cursors import Cursor
from scan_pipeline.simulator.principals import Principal
from scan_pipeline.simulator.query import Query
from scan_pipeline.simulator.snapshots import Snapshot, parse_snapshot, pin


@record
class PageRequest:
    """A request for a page, with everything checked that can be refused.

    Attributes:
        query: what was asked for.
        principal: who asks.
        snapshot: the pin to read under; None for the live state.
        page: number of the page, from 1.
        after: place behind which it begins; None is the beginning.
        nonce: what tells this walk's cursors from another's; empty for nothing.
    """

    query: Query
    principal: Principal
    snapshot: Snapshot | None
    page: int
    after: Place | None
    nonce: str


def pin_of(
    query: Query,
    cursor: Cursor | None,
    *,
    collection: Collection,
    now: datetime,
    lifetime: timedelta,
) -> Snapshot | None:
    """Return the pin a query reads under: the one it names, or a new one on a first page.

    Args:
        query: what was asked for.
        cursor: the cursor it came with; None on a first page.
        collection: where the revisions are.
        now: the moment, aware.
        lifetime: how long a snapshot can be read.

    Raises:
        RequestRefusedError: 400 where a cursor comes without its snapshot or the snapshot does
            not exist; 410 where it is too old.
    """
    if query.view == "live":
        return None
    if query.snapshot_id is None:
        if cursor is not None:
            raise RequestRefusedError(
                400, "snapshot_required", "expected the cursor's snapshot_id beside it, found none"
            )
        return pin(query.collection, revision=collection.head.number, now=now)
    snapshot = parse_snapshot(query.snapshot_id, collection=query.collection)
    if snapshot.age_s(now) > lifetime.total_seconds():
        raise expired()
    if collection.revision(snapshot.revision) is None:
        raise RequestRefusedError(
            400, "snapshot_unknown", f"there is no revision {snapshot.revision}"
        )
    return snapshot


def check_binding(request: PageRequest, cursor: Cursor | None) -> None:
    """Hold a cursor to what it was given out for.

    Raises:
        RequestRefusedError: 400 `cursor_mismatch`; principal, query or snapshot is another.
    """
    if cursor is None:
        return
    snapshot_id = request.snapshot.text if request.snapshot is not None else ""
    bindings = (
        ("principal", cursor.principal, request.principal.name),
        ("filter, order, bound or page size", cursor.scope, request.query.scope),
        ("snapshot", cursor.snapshot_id, snapshot_id),
    )
    for name, given_for, used_for in bindings:
        if given_for != used_for:
            raise RequestRefusedError(
                400, "cursor_mismatch", f"this cursor was given out for another {name}"
            )


def expired() -> RequestRefusedError:
    """Return the refusal of a snapshot that is too old."""
    return RequestRefusedError(410, "snapshot_expired", "this snapshot can no longer be read")
