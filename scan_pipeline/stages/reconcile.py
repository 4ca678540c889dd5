"""Third stage: what arrived, in figures, computed from the staged records read back."""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.canonical import CanonicalFormError, canonical_form
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.merkle import PartitionRoot, collection_root
from scan_pipeline.core.reconciliation import PartitionSummary, Reconciliation
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.walk_evidence import WalkEvidence
from scan_pipeline.stages.reconciling.expectations import Expectations
from scan_pipeline.stages.reconciling.growing_partition import GrowingPartition

ROW_BYTES: Final = 260
"""Memory of one record while its key range is sorted, in bytes, measured on a million rows."""

MEMORY: Final = 384 * 2**20
"""Memory that one pass may take, in bytes; more records make more passes over the table."""

COLUMNS: Final = ("_page", "_position", "_key", "_key_hash", "_leaf_hash", "_conforming")

_PREFIX: Final = (
    pl.col("_key_hash").bin.slice(0, 8).bin.reinterpret(dtype=pl.UInt64, endianness="big")
)

_FIRST_BYTE: Final = pl.col("_key_hash").bin.slice(0, 1).bin.reinterpret(dtype=pl.UInt8)

NO_VALUE: Final = "(no value)"
"""How the partition of records without a value is told beside those that have one."""

Batches = Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]
"""Reads columns of the staged records, from the start, each time it is called."""

RecordText = Callable[[int, int], bytes]
"""Returns the text of the record at (page, position)."""


@record
class Reconciled:
    """The figures and the partitions they rest on."""

    figures: Reconciliation
    partitions: tuple[PartitionSummary, ...]


class Reconciler:
    """Reconciles one generation.

    Args:
        scan: the scan.
        walk: what the events say.
        total_moved: whether the source's exact count moved during the walk.
        rows: number of staged records.
        batches: reads the staged records.
        text: reads one record's text.
        last_accepted: number of records of the last accepted generation of this scope.
        erased: key hashes of records that were erased since; their rows have no key any more.
        memory: bytes one pass may take.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        walk: WalkEvidence,
        total_moved: bool,
        rows: int,
        batches: Batches,
        text: RecordText,
        last_accepted: int | None,
        erased: frozenset[bytes] = frozenset(),
        memory: int = MEMORY,
    ) -> None:
        self._scan = scan
        self._rows, self._batches, self._text = rows, batches, text
        self._passes = min(256, max(1, ceil(rows * ROW_BYTES / memory)))
        self._findings: list[Finding] = []
        self._trees: dict[str | int | None, GrowingPartition] = {}
        self._unique = self._duplicates = self._conflicts = 0
        self._without_key = self._nonconforming = self._removed = 0
        self._in_rounds = scan.source.checkpoint is not None
        self._latest_wins = scan.contract.delivery == "latest_wins"
        self._expectations = Expectations(
            scan,
            walk=walk,
            total_moved=total_moved,
            last_accepted=last_accepted,
            text=text,
            tell=self._findings.append,
            erased=erased,
        )

    def run(self) -> Reconciled:
        """Compute everything from the table."""
        for number in range(self._passes):
            low, high = number * 256 // self._passes, (number + 1) * 256 // self._passes
            self._take_range(self._load(low, high))
        roots = {value: tree.leaves.root() for value, tree in self._trees.items()}
        partitions = tuple(
            tree.summary(roots[value]) for value, tree in sorted(self._trees.items(), key=_by_value)
        )
        root = None
        if not self._conflicts and not self._without_key:
            root = collection_root(
                PartitionRoot(value=value, leaf_count=tree.leaves.size, root=roots[value])
                for value, tree in self._trees.items()
            ).hex()
        expectations = self._expectations.results(
            unique_keys=self._unique,
            by_partition={
                NO_VALUE if value is None else str(value): tree.unique
                for value, tree in self._trees.items()
            },
            root=root,
        )
        figures = Reconciliation(
            records=self._rows,
            unique_keys=self._unique,
            duplicate_ids=self._duplicates,
            conflicting_ids=self._conflicts,
            without_key=self._without_key,
            nonconforming=self._nonconforming,
            missing_id_ranges=self._expectations.missing_id_ranges(),
            leaves=sum(tree.leaves.size for tree in self._trees.values()),
            partitions=len(partitions),
            root=root,
            expectations=expectations,
            findings=tuple(self._findings),
            removed_ids=self._removed,
        )
        return Reconciled(figures=figures, partitions=partitions)

    def _load(self, low: int, high: int) -> pl.DataFrame:
        """Load the keys of one range of first key-hash bytes, in order of arrival in the table."""
        by, looked_at = self._scan.contract.partition_by, self._expectations.columns
        extra = dict.fromkeys(looked_at if by is None else (by, *looked_at))
        extra |= {"_removed": None} if self._in_rounds else {}
        frames = []
        for batch in self._batches((*COLUMNS, *extra)):
            frame = pl.DataFrame(batch)
            self._once_per_row(frame, first_pass=low == 0)
            if frame["_key_hash"].null_count():
                frame = frame.filter(pl.col("_key_hash").is_not_null())
            keyed = frame.select(
                "_page",
                "_position",
                "_key",
                "_key_hash",
                "_leaf_hash",
                _PREFIX.alias("_prefix"),
                self._partition(frame).alias("_partition"),
                *([pl.col("_removed").is_not_null()] if self._in_rounds else ()),
            )
            if self._passes > 1:
                keyed = keyed.filter(_FIRST_BYTE.is_between(low, high - 1))
            frames.append(keyed)
        return pl.concat(frames) if frames else pl.DataFrame()

    def _partition(self, frame: pl.DataFrame) -> pl.Expr:
        """Return the partition of each row; what is neither text nor integer, as text.

        Without `partition_by` it is the first byte of the key hash, here still a number.
        """
        by = self._scan.contract.partition_by
        return _FIRST_BYTE if by is None else partition_by_field(by, frame[by].dtype)

    def _once_per_row(self, frame: pl.DataFrame, *, first_pass: bool) -> None:
        """Count what needs no order, on the first pass alone."""
        if not first_pass:
            return
        self._without_key += frame["_key_hash"].null_count()
        odd = ~pl.col("_conforming") & pl.col("_key_hash").is_not_null()
        self._nonconforming += frame.select(odd.sum()).item()
        if frame["_key"].null_count() != frame["_key_hash"].null_count():
            # Of an erased record there is nothing to look at but its digests.
            frame = frame.filter(pl.col("_key").is_not_null() | pl.col("_key_hash").is_null())
        self._expectations.look(frame)

    def _take_range(self, rows: pl.DataFrame) -> None:
        """Take one range of keys into counts, trees and expectations."""
        if rows.is_empty():
            return
        self._expectations.mark(rows["_key"].drop_nulls())
        # Of a key's deliveries the first counts, and where the latest holds, the last.
        order = _by_key_hash(rows.reverse() if self._latest_wins else rows)
        conflicted = self._repeats(rows, order)
        counted = rows.group_by("_partition").agg(
            pl.len(), pl.col("_key").min().alias("first"), pl.col("_key").max().alias("last")
        )
        for value, records, first, last in counted.iter_rows():
            self._tree(value).count(records, first=first, last=last)
        if order["_again"].any():
            order = order.filter(~pl.col("_again"))
        self._unique += order.height
        self._removed += order.filter("_removed").height if self._in_rounds else 0
        if self._scan.contract.partition_by is not None:  # else the order is theirs already
            order = order.sort("_partition", maintain_order=True)
        start = 0
        for value, records in order.group_by("_partition", maintain_order=True).len().iter_rows():
            tree = self._tree(value)
            tree.grow(order["_leaf_hash"].slice(start, records).to_list())
            if conflicted and conflicted & set(order["_key_hash"].slice(start, records)):
                tree.in_conflict = True
            start += records

    def _tree(self, value: str | int | None) -> "GrowingPartition":
        if self._scan.contract.partition_by is None and isinstance(value, int):
            value = f"{value:02x}"
        return self._trees.setdefault(value, GrowingPartition(value))

    def _repeats(self, rows: pl.DataFrame, order: pl.DataFrame) -> set[bytes]:
        """Tell duplicates from conflicts, key by key; return the key hashes in conflict."""
        hashes = order.filter(pl.col("_again"))["_key_hash"].unique()
        conflicted = set[bytes]()
        if hashes.is_empty():
            return conflicted
        repeated = rows.filter(pl.col("_key_hash").is_in(hashes.implode())).sort(
            "_key_hash", "_page", "_position"
        )
        allowed = self._scan.contract.delivery != "exactly_once"
        code = "duplicate_allowed" if allowed else "duplicate_delivery"
        for group in repeated.partition_by("_key_hash", maintain_order=True):
            pages, key = group["_page"].to_list(), group["_key"][0]
            same = self._same_content(group)
            if same or self._latest_wins:
                self._duplicates += group.height - 1
                told = finding(
                    code if same else "newer_version",
                    page=pages[-1],
                    key=key,
                    expected="once",
                    found=f"pages {pages}",
                )
            else:
                conflicted.add(group["_key_hash"][0])
                self._conflicts += 1
                told = finding(
                    "conflicting_versions",
                    page=pages[-1],
                    key=key,
                    expected="one version",
                    found=f"several on pages {pages}",
                )
            self._findings.append(told)
        return conflicted

    def _same_content(self, group: pl.DataFrame) -> bool:
        """Compare by bytes, and only where these differ by canonical form."""
        if group["_leaf_hash"].n_unique() == 1:
            return True
        try:
            forms = {
                canonical_form(self._text(page, position))
                for page, position in group.select("_page", "_position").iter_rows()
            }
        except CanonicalFormError:
            return False
        return len(forms) == 1


def partition_by_field(field: str, kind: pl.DataType) -> pl.Expr:
    """Return the partition of a row by a field: what is neither text nor integer, as text."""
    plain = kind.is_integer() or kind == pl.String
    return pl.col(field) if plain else pl.col(field).cast(pl.String)


def _by_key_hash(rows: pl.DataFrame) -> pl.DataFrame:
    """Return partition and hashes in order of key hash, repeats of a key marked.

    The first eight bytes decide nearly always; only where they are equal and the rest is not does
    the whole hash sort.
    """
    kept = ("_prefix", "_key_hash", "_leaf_hash", "_partition", "_removed")
    narrow = rows.select([each for each in kept if each in rows.columns]).sort(
        "_prefix", maintain_order=True
    )
    same_prefix = pl.col("_prefix") == pl.col("_prefix").shift()
    again = (same_prefix & (pl.col("_key_hash") == pl.col("_key_hash").shift())).fill_null(
        value=False
    )
    if narrow.select((same_prefix & ~again).any()).item():
        narrow = narrow.sort("_key_hash", maintain_order=True)
    return narrow.with_columns(again.alias("_again"))


def _by_value(item: tuple[str | int | None, GrowingPartition]) -> tuple[bool, str]:
    return item[0] is not None, str(item[0])
