"""What arrived, in figures: computed from the tables read back, never from memory of the walk."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from scan_pipeline.core.findings import Finding
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Outcome


@record
class PartitionSummary:
    """One partition of the collection.

    Attributes:
        partition: value of `partition_by`, or the first byte of the key hash as two hex digits;
            None where a record has no value.
        records: records delivered.
        unique_keys: distinct keys.
        duplicates: deliveries beyond the first of their key.
        first_key: smallest canonical key in byte order.
        last_key: largest canonical key in byte order.
        leaf_count: leaves of the partition's tree.
        root: hex; None where a key came with different content.
    """

    partition: str | int | None
    records: int
    unique_keys: int
    duplicates: int
    first_key: str
    last_key: str
    leaf_count: int
    root: str | None


@record
class ExpectationResult:
    """One expectation, held against unique keys.

    Attributes:
        name: e.g. `count`, `partition_counts`, `id_sequence`.
        expected: what was declared or reported, in a number or word.
        observed: what arrived.
        result: `not_evaluated` where the walk did not finish.
        denominator: whether meeting it says how many there are, apart from the end signal.
    """

    name: str
    expected: str | int | None
    observed: str | int | None
    result: Outcome
    denominator: bool = False


@record
class Reconciliation:
    """The figures of one generation.

    Attributes:
        records: records delivered, those without a readable key included.
        unique_keys: distinct keys.
        duplicate_ids: deliveries beyond the first of their key, with equal content.
        conflicting_ids: keys that came with different content.
        without_key: records without a readable key.
        nonconforming: records with a key that the record schema refuses.
        missing_id_ranges: gaps of the declared id sequence, e.g. `customer-4100..customer-4199`.
        leaves: leaves of the tree.
        partitions: number of partitions that hold records.
        root: collection root, hex; None where a conflict or a record without key forbids one.
        expectations: every expectation with its result.
        findings: what was noticed while reconciling.
        removed_ids: keys whose last delivery says that they were removed.
    """

    records: int
    unique_keys: int
    duplicate_ids: int
    conflicting_ids: int
    without_key: int
    nonconforming: int
    missing_id_ranges: tuple[str, ...]
    leaves: int
    partitions: int
    root: str | None
    expectations: tuple[ExpectationResult, ...]
    findings: tuple[Finding, ...]
    removed_ids: int = 0

    def figures(self) -> dict[str, Any]:
        """Return the figures that an audit compares, without findings."""
        return {
            "records": self.records,
            "unique_keys": self.unique_keys,
            "duplicate_ids": self.duplicate_ids,
            "conflicting_ids": self.conflicting_ids,
            "without_key": self.without_key,
            "nonconforming": self.nonconforming,
            "missing_id_ranges": list(self.missing_id_ranges),
            "leaves": self.leaves,
            "partitions": self.partitions,
            "root": self.root,
        }


def no_figures(*, records: int = 0) -> Reconciliation:
    """Return the figures of records that were delivered and cannot be looked into."""
    return Reconciliation(
        records=records,
        unique_keys=0,
        duplicate_ids=0,
        conflicting_ids=0,
        without_key=0,
        nonconforming=0,
        missing_id_ranges=(),
        leaves=0,
        partitions=0,
        root=None,
        expectations=(),
        findings=(),
    )


class IdSequenceCheck:
    """Marks the ids of a declared sequence as they arrive, one byte an id.

    Args:
        prefix: text before the number.
        first: smallest number.
        last: largest number; one below `first` is an empty sequence.
    """

    def __init__(self, *, prefix: str, first: int, last: int) -> None:
        self._prefix, self._first, self._last = prefix, first, last
        self._seen = bytearray(max(0, last - first + 1))
        self._kind: type | None = None
        self.beyond: list[str] = []

    def mark(self, ids: Iterable[object]) -> None:
        """Mark ids; those outside the sequence are kept in `beyond`."""
        prefix, first, seen, size = self._prefix, self._first, self._seen, len(self._seen)
        start = len(prefix)
        for each in ids:
            text = str(each)
            digits = text[start:]
            if text.startswith(prefix) and digits.isascii() and digits.isdigit():
                offset = int(digits) - first
                plain = digits == "0" or digits[0] != "0"
                if 0 <= offset < size and plain and isinstance(each, self._kind_of(each)):
                    seen[offset] = 1
                    continue
            self.beyond.append(text)

    def _kind_of(self, each: object) -> type:
        """Return the type that every id has; `1` and `"1"` are two keys and cannot be one id."""
        self._kind = self._kind or type(each)
        return self._kind

    def missing(self) -> tuple[str, ...]:
        """Return the gaps as `prefix-a..prefix-b`, a single id alone."""
        return tuple(
            f"{self._prefix}{a}" if a == b else f"{self._prefix}{a}..{self._prefix}{b}"
            for a, b in self._gaps()
        )

    @property
    def size(self) -> int:
        """Return how many ids the sequence holds."""
        return len(self._seen)

    def missing_count(self) -> int:
        """Return how many ids of the sequence did not arrive."""
        return self._seen.count(0)

    def mark_where(self, arrived: Callable[[str | int], bool], *, most: int) -> None:
        """Mark missing ids that arrived and are known by something else than their text.

        Args:
            arrived: says of an id whether it did.
            most: missing ids that are asked for, at most.
        """
        numbers = (n for a, b in tuple(self._gaps()) for n in range(a, b + 1))
        for number in islice(numbers, most):
            forms: tuple[str | int, ...] = (f"{self._prefix}{number}",)
            forms = forms if self._prefix else (number, *forms)
            if any(map(arrived, forms)):
                self._seen[number - self._first] = 1

    def _gaps(self) -> Iterator[tuple[int, int]]:
        start = self._seen.find(0)
        while start >= 0:
            end = self._seen.find(1, start)
            stop = len(self._seen) if end < 0 else end
            yield self._first + start, self._first + stop - 1
            start = self._seen.find(0, stop)
