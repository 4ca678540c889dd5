"""What can go wrong with a walk, one record a kind: cursors, rows, and what the rows are of."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answer_faults import (
    BodyTruncated,
    ConnectionCut,
    ContentTypeWrong,
    Delayed,
    ErrorEnvelope,
    Failing,
    InvalidUtf8,
    LoginPage,
    MemberDoubled,
    ResponseLost,
)
from scan_pipeline.simulator.mutations import Natural
from scan_pipeline.simulator.page_fault import PageFault

CountOf: TypeAlias = Literal["follows", "stays"]
"""Whether the reported count is that of the rows served, or of the rows that were asked for."""


# ------------------------------------------------------------------------------------ cursors


@record
class CursorRepeats(PageFault):
    """The next cursor leads back to page `to`: to itself, or round a cycle.

    Attributes:
        fresh_text: the cursor reads differently each time, so that only the rows show the loop.
    """

    kind: Literal["cursor_repeats"] = "cursor_repeats"
    to: Natural
    fresh_text: bool = False


@record
class CursorDropped(PageFault):
    """The member `next_cursor` is missing."""

    kind: Literal["cursor_dropped"] = "cursor_dropped"


@record
class CursorCorrupted(PageFault):
    """The next cursor is one the registry will not open."""

    kind: Literal["cursor_corrupted"] = "cursor_corrupted"


@record
class EndEarly(PageFault):
    """The page says that nothing follows, although rows do."""

    kind: Literal["end_early"] = "end_early"


@record
class CompletionMisreported(PageFault):
    """`is_complete` says the opposite of what the cursor says."""

    kind: Literal["completion_misreported"] = "completion_misreported"


# --------------------------------------------------------------------------------------- rows


@record
class ShortPage(PageFault):
    """The page holds fewer rows than asked for; the next goes on behind them, losing nothing."""

    kind: Literal["short_page"] = "short_page"
    rows: Annotated[int, Field(ge=0)]


@record
class EmptyPage(PageFault):
    """The page holds no row and a live cursor; up to the `end` it never stops."""

    kind: Literal["empty_page"] = "empty_page"


@record
class PageReplaced(PageFault):
    """The rows of page `by` are served in place of this page's, which nobody gets to see."""

    kind: Literal["page_replaced"] = "page_replaced"
    by: Natural


@record
class PageSkipped(PageFault):
    """This page's rows are passed over; the next page's come in their place."""

    kind: Literal["page_skipped"] = "page_skipped"


@record
class RowsWithheld(PageFault):
    """The last rows of the page are left out, and the cursor goes on as if they had been sent.

    Attributes:
        returned_count: what the page says it returned.
    """

    kind: Literal["rows_withheld"] = "rows_withheld"
    rows: Natural
    returned_count: Literal["as_sent", "as_claimed"] = "as_sent"


@record
class RecordDamaged(PageFault):
    """One record, wherever it is served on these pages, is not what it should be.

    Attributes:
        number: number in its key.
        damage: `field_missing` drops the status, `type_changed` makes it a number, `null_field`
            makes it null, `field_unknown` adds a member, `member_doubled` says it twice with two
            values, `value_changed` says another one, `key_missing` drops the key.
    """

    kind: Literal["record_damaged"] = "record_damaged"
    number: Natural
    damage: Literal[
        "field_missing",
        "type_changed",
        "null_field",
        "field_unknown",
        "member_doubled",
        "value_changed",
        "key_missing",
    ]


# ---------------------------------------------------------------------- what the rows are of


@record
class PinNotHonoured(PageFault):
    """The snapshot id is echoed, the rows are the live ones."""

    kind: Literal["pin_not_honoured"] = "pin_not_honoured"


@record
class SnapshotChanged(PageFault):
    """The registry pins anew: newest rows under another snapshot id."""

    kind: Literal["snapshot_changed"] = "snapshot_changed"


@record
class SnapshotExpired(PageFault):
    """The page is refused with 410 `snapshot_expired`."""

    kind: Literal["snapshot_expired"] = "snapshot_expired"


@record
class PrincipalNarrowed(PageFault):
    """From this page on, and for good, the principal sees one tenant only.

    Attributes:
        tenant: which one is left.
        identity: whether the identity endpoint tells.
        count: whether the count follows.
    """

    kind: Literal["principal_narrowed"] = "principal_narrowed"
    tenant: Literal["acme", "globex"] = "acme"
    identity: Literal["told", "silent"] = "told"
    count: CountOf = "follows"


@record
class FilterChanged(PageFault):
    """Other filters are applied than were sent; with none named, the filter is ignored.

    Attributes:
        filters: (field, value) pairs.
        count: whether the count follows.
    """

    kind: Literal["filter_changed"] = "filter_changed"
    filters: tuple[tuple[str, str], ...] = ()
    count: CountOf = "stays"


@record
class CountChanged(PageFault):
    """The reported count is off by so many."""

    kind: Literal["count_changed"] = "count_changed"
    by: int


@record
class CountDropped(PageFault):
    """The reported count is missing."""

    kind: Literal["count_dropped"] = "count_dropped"


Fault: TypeAlias = (
    CursorRepeats
    | CursorDropped
    | CursorCorrupted
    | EndEarly
    | CompletionMisreported
    | ShortPage
    | EmptyPage
    | PageReplaced
    | PageSkipped
    | RowsWithheld
    | RecordDamaged
    | PinNotHonoured
    | SnapshotChanged
    | SnapshotExpired
    | PrincipalNarrowed
    | FilterChanged
    | CountChanged
    | CountDropped
    | BodyTruncated
    | ErrorEnvelope
    | LoginPage
    | MemberDoubled
    | InvalidUtf8
    | ContentTypeWrong
    | Delayed
    | ConnectionCut
    | ResponseLost
    | Failing
)
