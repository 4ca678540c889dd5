"""One partition while it is reconciled: counts and tree, filled in order of key hash."""

from scan_pipeline.core.merkle import TreeAccumulator
from scan_pipeline.core.reconciliation import PartitionSummary


class GrowingPartition:
    """Counts and tree of one partition, filled in order of key hash."""

    def __init__(self, value: str | int | None) -> None:
        self.value = value
        self.records = self.unique = 0
        self.in_conflict = False
        self.first_key: str | None = None
        self.last_key: str | None = None
        self.leaves = TreeAccumulator()

    def count(self, records: int, *, first: str | None, last: str | None) -> None:
        """Count deliveries, in any order; erased ones have no key."""
        self.records += records
        if first is None or last is None:
            return
        self.first_key = first if self.first_key is None else min(self.first_key, first)
        self.last_key = last if self.last_key is None else max(self.last_key, last)

    def grow(self, leaves: list[bytes]) -> None:
        """Add the leaves of new keys, in order of key hash."""
        self.unique += len(leaves)
        self.leaves.extend(leaves)

    def summary(self, root: bytes) -> PartitionSummary:
        """Return what it came to.

        Args:
            root: of its tree.
        """
        return PartitionSummary(
            partition=self.value,
            records=self.records,
            unique_keys=self.unique,
            duplicates=self.records - self.unique,
            first_key=self.first_key or "",
            last_key=self.last_key or "",
            leaf_count=self.leaves.size,
            root=None if self.in_conflict else root.hex(),
        )
