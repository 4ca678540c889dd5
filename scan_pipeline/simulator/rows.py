"""A row of a collection: the record's bytes, made once, and the few attributes it can change in."""

import time
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Literal, Protocol, TypeAlias

from scan_pipeline.core.value import record

CollectionName: TypeAlias = Literal["customers", "support_cases"]

EPOCH: Final = 1_787_995_080
"""When the first revision was frozen, 2026-08-29T09:18:00Z, in seconds since 1970."""


@record
class Traits:
    """What a mutation may change, and what a query may filter, order or partition by.

    Attributes:
        created: seconds since 1970, UTC.
        updated: seconds since 1970, UTC; never before `created`.
    """

    tenant: str
    region: str
    status: str
    schema_version: int
    created: int
    updated: int


@record
class Row:
    """One record of a collection.

    Attributes:
        number: the number in its key, from 1; also its place in the append-only sequence.
        traits: what can be filtered on or changed.
        raw: the record as compact JSON in UTF-8; served as it is, never encoded again.
    """

    number: int
    traits: Traits
    raw: bytes


class Maker(Protocol):
    """What makes the records of one collection; pure, so that every process makes the same."""

    def traits(self, number: int) -> Traits:
        """Return the traits with which the record is born."""
        ...

    def render(self, number: int, traits: Traits) -> bytes:
        """Return the record's JSON for these traits."""
        ...


def draws(label: str, number: int) -> bytes:
    """Return 32 bytes that depend on nothing but the label and the number."""
    return blake2b(b"%s-%d" % (label.encode(), number), digest_size=32).digest()


@lru_cache(maxsize=65_536)
def instant(seconds: int) -> str:
    """Write seconds since 1970 as an RFC 3339 UTC timestamp; ties are common, hence the cache."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
