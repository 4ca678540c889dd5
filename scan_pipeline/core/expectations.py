"""Expectations: what is known of the whole beside the walk; each is met by unique keys."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from scan_pipeline.core.value import NaturalInt, record


@record
class IdSequence:
    """Keys that run without a gap, e.g. `customer-1` to `customer-8742`.

    Attributes:
        field: the key field, alone.
        prefix: what stands before the number.
        first: the first number.
        last: the last number; `count` takes it from the source's exact count.
    """

    field: str
    prefix: str = ""
    first: int = 1
    last: int | Literal["count"]


@record
class Swing:
    """How far the number of records may move from the last accepted generation, as a share.

    Attributes:
        records: the share; 0.1 is 10 %.
    """

    records: Annotated[float, Field(ge=0)]


@record
class Expectations:
    """What is known of the whole beside the walk; each is met by unique keys.

    Attributes:
        count: an exact number of records, known from elsewhere.
        partition_counts: `source` (asked of the source's own endpoint) or the numbers by value of
            `partition_by`.
        id_sequence: keys that run without a gap.
        manifest: path of a file with one key a line, JSON (`"customer-1"` or `["a", 1]`).
        source_root: the collection's Merkle root as the source publishes it, hex.
        every_record: fields that must have this value in every record (what a filter promises).
        swing: bound against the last accepted generation of this scope.
    """

    count: NaturalInt | None = None
    partition_counts: Literal["source"] | Mapping[str, NaturalInt] | None = None
    id_sequence: IdSequence | None = None
    manifest: str | None = None
    source_root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    every_record: Mapping[str, str | int | bool | None] | None = None
    swing: Swing | None = None
