"""What a reader is answered: typed completeness beside whatever is shown."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, dataclass_transform

from scan_pipeline.agents.policy import ESTIMATOR
from scan_pipeline.core.claims import ClaimName, EvaluatedBy
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def answer(cls: type[T]) -> type[T]:
    """Make a class a frozen value that goes out: the SDK holds its JSON against its schema."""
    value = dataclass(frozen=True, kw_only=True)(cls)
    value.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]  # pydantic's hook
    return value


Represents: TypeAlias = Literal["summary", "page", "record", "aggregate", "conclusion", "proposal"]
"""What an answer is: never the collection itself."""


@answer
class Ground:
    """What an answer stands on.

    Attributes:
        scan: the scan.
        scan_generation: its generation.
        receipt_id: the receipt that opened it.
        coverage_status: what the receipt says.
        conclusion_scope: what statements may be about.
        snapshot_at: when the source was last read for it, UTC.
        age_seconds: time since then.
        late: that this is late by the scan's schedule, and since when nothing came; None where it
            is not late, or the scan has no schedule.
        newer: what became of a newer generation that was not accepted; None where there is none.
        redacted: that records were erased from it since, which no view shows; None where none was.
        as_visible_to: whose view of the source the walk had.
        view: through which view of ours it is shown.
    """

    scan: str
    scan_generation: str
    receipt_id: str
    coverage_status: CoverageStatus
    conclusion_scope: ConclusionScope
    snapshot_at: str
    age_seconds: int
    late: str | None
    newer: str | None
    redacted: str | None
    as_visible_to: str
    view: str


@answer
class Summary:
    """How many there are, and how many were shown; the three never stand in for one another.

    Attributes:
        matching_count: rows that match, exactly.
        population: rows in the view, exactly.
        returned_count: rows of this answer.
        has_more: whether more rows match than were given so far.
    """

    matching_count: int
    population: int
    returned_count: int
    has_more: bool


@answer
class Bounds:
    """The limits an answer was made within.

    Attributes:
        page_size_applied: most rows of a page.
        max_pages_per_run: most pages of a run.
        pages_left: pages left in this run.
        response_bytes: bytes of the items of this answer.
        bytes_left: bytes left in this run.
        estimator: how tokens are estimated from bytes.
        truncated: always false: a page over the budget holds fewer rows, each of them whole.
    """

    page_size_applied: int
    max_pages_per_run: int
    pages_left: int
    response_bytes: int
    bytes_left: int
    estimator: str = ESTIMATOR
    truncated: bool = False


@answer
class Item:
    """One row of a page.

    Attributes:
        row: its number among those that match, from 1, in the order of the query.
        values: what is shown of it; None where it alone is larger than a page may be.
        too_large: its bytes, where it is not shown; read it in full by its number.
    """

    row: int
    values: dict[str, Any] | None
    too_large: int | None = None


@answer
class PageOfRows:
    """The rows of a page and how to go on.

    Attributes:
        number: the page's number, from 1.
        items: its rows.
        next_cursor: for the next page; None where none follows or the stopping policy is met.
    """

    number: int
    items: list[Item]
    next_cursor: str | None


@answer
class Opened:
    """The answer to an opened question: counts and a handle, no rows."""

    represents: Represents
    statement: str
    query: dict[str, Any]
    result_handle: str
    first_cursor: str | None
    ground: Ground
    summary: Summary
    limits: Bounds


@answer
class PageAnswer:
    """The answer to a cursor."""

    represents: Represents
    statement: str
    query: dict[str, Any]
    result_handle: str
    ground: Ground
    summary: Summary
    page: PageOfRows
    limits: Bounds


@answer
class RecordAnswer:
    """One record, every column that is seen.

    Attributes:
        row: its number under the handle.
        record_version: a keyed digest of the whole record; another version of it has another. The
            record's own digest would let hidden columns be guessed and the guess be confirmed.
        values: its columns.
    """

    represents: Represents
    statement: str
    result_handle: str
    ground: Ground
    row: int
    record_version: str
    values: dict[str, Any]
    limits: Bounds


@answer
class AggregateAnswer:
    """Figures over all rows that match, evaluated in the engine.

    Attributes:
        groups: each `{"by": {field: value}, "figures": {"sum of balance": value}}`.
    """

    represents: Represents
    statement: str
    query: dict[str, Any]
    result_handle: str
    ground: Ground
    summary: Summary
    groups: list[dict[str, Any]]
    limits: Bounds


@answer
class Judged:
    """How far a reader's own judgement of rows has come."""

    represents: Represents
    statement: str
    result_handle: str
    ground: Ground
    matched: int
    not_matched: int
    unsure: int
    matching_count: int


@answer
class Conclusion:
    """What may be said, in a sentence of ours.

    Attributes:
        claim: from the closed list of claims.
        claim_id: what a report cites behind the sentence, as `[claim ...]`.
        evaluated_by: the engine, over all rows; or a reader, row by row.
        inspected: rows that decided it.
        cite_as: the sentence with its citation, word for word.
    """

    represents: Represents
    statement: str
    claim: ClaimName
    claim_id: str
    evaluated_by: EvaluatedBy
    inspected: int
    matches: int
    ground: Ground
    summary: Summary
    cite_as: str
