"""The scan contract: the judgement a scan is held to, and the limits it works within."""

from typing import Annotated, Literal

from pydantic import Field

from scan_pipeline.core.expectations import Expectations
from scan_pipeline.core.value import NaturalInt, PositiveInt, record
from scan_pipeline.core.vocabulary import (
    WHOLE_COLLECTION,
    ConclusionScope,
    Consistency,
    CoverageStatus,
    Delivery,
    Mode,
)


@record
class Limits:
    """Bounds that are checked before each request; hitting one interrupts the walk.

    Attributes:
        over_count: share above what the source's first exact count implies, for pages and
            records alike (0.1 is 10 %).
        pages: pages of one walk.
        records: records of one walk.
        bytes: bytes of page bodies of one walk.
        seconds: seconds since the open event; declared waits do not count.
        empty_pages: consecutive empty pages.
        repeated_cursors: how many requests may be identical to an earlier one.
    """

    over_count: Annotated[float, Field(ge=0)] | None = None
    pages: PositiveInt | None = None
    records: PositiveInt | None = None
    bytes: PositiveInt | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    empty_pages: NaturalInt = 20
    repeated_cursors: NaturalInt = 0


@record
class Accept:
    """The least result with which this scan counts as done.

    Attributes:
        scope: the least it must be a statement about; silence means the whole.
        status: the least it must be proven by; silence means verified for a whole, unknown
            for less.
        nonconforming: how many records may not conform to the record schema.
    """

    scope: ConclusionScope | None = None
    status: CoverageStatus | None = None
    nonconforming: NaturalInt = 0


@record
class Contract:
    """The judgement a scan is held to, and the limits it works within.

    Attributes:
        key: fields that name a record; strings and integers, never changing.
        consistency: what holds the collection still meanwhile; `live` where nothing does.
        mode: `full`, or `bounded` where a declared cap is the population of a review.
        partition_by: a field by which records are counted and held apart in the tree.
        delivery: whether a record may come twice, byte for byte.
        denominator: `end_signal` where the provider documents that the end proves the
            count.
        new_fields: what becomes of fields that the record schema does not know: `keep` them in
            `_extra`, or `reject`, so that a record with one does not conform.
        limits: bounds of one walk.
        expect: what is known of the whole beside the walk.
        accept: the least result with which this scan counts as done.
    """

    key: Annotated[tuple[str, ...], Field(min_length=1)]
    consistency: Consistency
    mode: Mode = "full"
    partition_by: str | None = None
    delivery: Delivery = "exactly_once"
    denominator: Literal["end_signal"] | None = None
    new_fields: Literal["keep", "reject"] = "keep"
    limits: Limits = Limits()
    expect: Expectations = Expectations()
    accept: Accept = Accept()


def whole_scope(consistency: Consistency, *, mode: Mode = "full") -> ConclusionScope:
    """Return what a verified walk of this consistency may speak of; a round, of changes alone."""
    if mode == "sync":
        return "all_changes_since_checkpoint"
    scopes: dict[Consistency, ConclusionScope] = {
        "snapshot": "all_records_in_snapshot",
        "change_token": "all_records_at_change_token",
        "high_water_mark": "all_records_up_to_high_water_mark",
        "two_equal_walks": "all_records_present_throughout_both_walks",
        "live": "records_encountered_in_live_traversal",
    }
    return scopes[consistency]


def accept_level(contract: Contract) -> tuple[CoverageStatus, ConclusionScope]:
    """Return the (status, scope) that the contract accepts; silence means the whole, verified."""
    scope = contract.accept.scope or (
        "all_records_in_snapshot"
        if contract.consistency == "live"
        else whole_scope(contract.consistency, mode=contract.mode)
    )
    if contract.accept.status is not None:
        return contract.accept.status, scope
    if scope == "all_records_present_throughout_both_walks":
        return "corroborated", scope
    proven = scope in WHOLE_COLLECTION or scope == "all_changes_since_checkpoint"
    return ("verified" if proven else "unknown"), scope
