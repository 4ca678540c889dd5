"""Third stage: what arrived, in figures, computed from the staged records read back."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.canonical import (
    CanonicalFormError,
    canonical_form,
    key_bytes,
    parse_exact,
)
from scan_pipeline.core.contract import Scan
from scan_pipeline.core.coverage import WalkEvidence
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.merkle import PartitionRoot, TreeAccumulator, collection_root
from scan_pipeline.core.reconciliation import (
    ExpectationResult,
    IdSequenceCheck,
    PartitionSummary,
    Reconciliation,
)
from scan_pipeline.core.value import record
from scan_pipeline.stages.exact_values import NotExactError, exact_value

ROW_BYTES: Final = 260
"""Memory of one record while its key range is sorted, in bytes, measured on a million rows."""

MEMORY: Final = 384 * 2**20
"""Memory that one pass may take, in bytes; more records make more passes over the table."""

COLUMNS: Final = ("_page", "_position", "_key", "_key_hash", "_leaf_hash", "_conforming")

_PREFIX: Final = (
    pl.col("_key_hash").bin.slice(0, 8).bin.reinterpret(dtype=pl.UInt64, endianness="big")
)

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
        memory: int = MEMORY,
    ) -> None:
        self._scan, self._walk, self._total_moved = scan, walk, total_moved
        self._rows, self._batches, self._text = rows, batches, text
        self._last_accepted = last_accepted
        self._passes = min(256, max(1, ceil(rows * ROW_BYTES / memory)))
        self._findings: list[Finding] = []
        self._trees: dict[str | int | None, _Partition] = {}
        self._unique = self._duplicates = self._conflicts = 0
        self._without_key = self._nonconforming = 0
        self._sequence = self._id_sequence()
        self._manifest = self._read_manifest()

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
        expectations = tuple(self._expectations(root))
        figures = Reconciliation(
            records=self._rows,
            unique_keys=self._unique,
            duplicate_ids=self._duplicates,
            conflicting_ids=self._conflicts,
            without_key=self._without_key,
            nonconforming=self._nonconforming,
            missing_id_ranges=self._sequence.missing() if self._sequence and self._finished else (),
            leaves=sum(tree.leaves.size for tree in self._trees.values()),
            partitions=len(partitions),
            root=root,
            expectations=expectations,
            findings=tuple(self._findings),
        )
        return Reconciled(figures=figures, partitions=partitions)

    @property
    def _finished(self) -> bool:
        return self._walk.traversal == "finished"

    def _load(self, low: int, high: int) -> pl.DataFrame:
        """Load the keys of one range of first key-hash bytes, in order of arrival in the table."""
        extra = dict.fromkeys(
            name
            for name in (
                self._scan.contract.partition_by,
                *(self._scan.contract.expect.every_record or {}),
                self._bound_field,
            )
            if name is not None
        )
        frames = []
        for batch in self._batches((*COLUMNS, *extra)):
            frame = pl.DataFrame(batch)
            self._once_per_row(frame, first_pass=low == 0)
            keyed = frame.filter(pl.col("_key_hash").is_not_null()).select(
                "_page",
                "_position",
                "_key",
                "_key_hash",
                "_leaf_hash",
                _PREFIX.alias("_prefix"),
                *self._partition_columns(),
            )
            if self._passes > 1:
                keyed = keyed.filter((pl.col("_prefix") // 2**56).is_between(low, high - 1))
            frames.append(keyed)
        return pl.concat(frames) if frames else pl.DataFrame()

    def _partition_columns(self) -> list[pl.Expr]:
        by = self._scan.contract.partition_by
        if by is None:
            byte = pl.col("_key_hash").bin.slice(0, 1).bin.encode("hex")
            return [byte.alias("_partition")]
        return [pl.col(by).alias("_partition")]

    def _once_per_row(self, frame: pl.DataFrame, *, first_pass: bool) -> None:
        """Count what needs no order, on the first pass alone."""
        if not first_pass:
            return
        self._without_key += frame["_key"].null_count()
        odd = ~pl.col("_conforming") & pl.col("_key").is_not_null()
        self._nonconforming += frame.select(odd.sum()).item()
        for name, value in (self._scan.contract.expect.every_record or {}).items():
            # A null of a record that does not conform may be a value its column does not hold.
            told = pl.col("_conforming") | pl.col(name).is_not_null()
            wrong = frame.filter(_differs(frame, name, value) & told)
            for page, key, found in wrong.select("_page", "_key", name).iter_rows():
                self._findings.append(
                    finding(
                        "filter_missed", page=page, key=key, expected=f"{name} {value}", found=found
                    )
                )
        if self._bound_field is not None:
            self._check_bound(frame, self._bound_field)

    @property
    def _bound_field(self) -> str | None:
        bound = self._scan.source.high_water_mark
        held = self._scan.contract.consistency == "high_water_mark"
        return bound.field if bound is not None and held else None

    def _check_bound(self, frame: pl.DataFrame, field: str) -> None:
        bound = self._walk.before.high_water_mark
        if bound is None:
            return
        column = frame[field]
        try:
            limit = _as_in(column, bound)
        except NotExactError as error:
            if not any(each.code == "reported_invalid" for each in self._findings):
                told = finding("reported_invalid", expected=f"a bound of {field}", found=error)
                self._findings.append(told)
            return
        for page, key, found in (
            frame.filter(pl.col(field) > limit).select("_page", "_key", field).iter_rows()
        ):
            self._findings.append(
                finding(
                    "beyond_high_water_mark",
                    page=page,
                    key=key,
                    expected=f"<= {bound}",
                    found=found,
                )
            )

    def _take_range(self, rows: pl.DataFrame) -> None:
        """Take one range of keys into counts, trees and expectations."""
        if rows.is_empty():
            return
        if self._sequence is not None or self._manifest is not None:
            self._mark(rows["_key"].to_list())
        order = _by_key_hash(rows)
        conflicted = self._repeats(rows, order)
        for part in rows.partition_by("_partition"):
            value = part["_partition"][0]
            self._trees.setdefault(value, _Partition(value)).count(part)
        unique = order.filter(~pl.col("_again"))
        self._unique += unique.height
        for part in unique.partition_by("_partition", maintain_order=True):
            tree = self._trees[part["_partition"][0]]
            tree.grow(part["_leaf_hash"].to_list())
            if conflicted and conflicted & set(part["_key_hash"].to_list()):
                tree.in_conflict = True

    def _repeats(self, rows: pl.DataFrame, order: pl.DataFrame) -> set[bytes]:
        """Tell duplicates from conflicts, key by key; return the key hashes in conflict."""
        hashes = order.filter(pl.col("_again"))["_key_hash"].unique()
        conflicted = set[bytes]()
        if hashes.is_empty():
            return conflicted
        repeated = rows.filter(pl.col("_key_hash").is_in(hashes.implode())).sort(
            "_key_hash", "_page", "_position"
        )
        allowed = self._scan.contract.delivery == "at_least_once"
        code = "duplicate_allowed" if allowed else "duplicate_delivery"
        for group in repeated.partition_by("_key_hash", maintain_order=True):
            pages, key = group["_page"].to_list(), group["_key"][0]
            if self._same_content(group):
                self._duplicates += group.height - 1
                told = finding(
                    code, page=pages[-1], key=key, expected="once", found=f"pages {pages}"
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

    def _mark(self, keys: list[str]) -> None:
        if self._sequence is not None:
            self._sequence.mark(json.loads(key)[0] for key in keys)
        if self._manifest is not None:
            for key in keys:
                self._manifest[key] = self._manifest.get(key, 0) | 2

    def _id_sequence(self) -> IdSequenceCheck | None:
        declared = self._scan.contract.expect.id_sequence
        if declared is None:
            return None
        last = self._walk.total if declared.last == "count" else declared.last
        if last is None:
            return None
        return IdSequenceCheck(prefix=declared.prefix, first=declared.first, last=last)

    def _read_manifest(self) -> dict[str, int] | None:
        """Read the manifest's keys: 1 is listed, 2 is seen, 3 is both."""
        declared = self._scan.contract.expect.manifest
        if declared is None:
            return None
        try:
            lines = Path(declared).read_text(encoding="utf-8").splitlines()
            listed = [json.loads(line) for line in lines if line.strip()]
            keys = [key_bytes(key if isinstance(key, list) else [key]) for key in listed]
        except (OSError, ValueError, CanonicalFormError) as error:
            raise ConfigurationError(
                f"manifest {declared}: {error}; expected one JSON key a line"
            ) from error
        return {key.decode(): 1 for key in keys}

    def _expectations(self, root: str | None) -> Iterator[ExpectationResult]:
        expect = self._scan.contract.expect
        if self._scan.source.exact_total:
            # A live count is of another moment wherever it moved: it decides nothing then.
            moment = self._scan.contract.consistency != "live" or not self._total_moved
            yield self._count("source_count", self._walk.total if moment else None)
        if expect.count is not None:
            yield self._count("count", expect.count)
        if expect.partition_counts is not None:
            yield self._partition_counts(expect.partition_counts)
        if expect.id_sequence is not None:
            yield self._sequence_result()
        if self._manifest is not None:
            yield self._manifest_result(self._manifest)
        if expect.source_root is not None:
            met = root == expect.source_root
            if self._finished and not met:
                self._findings.append(
                    finding(
                        "source_root_missed", expected=expect.source_root, found=root or "no root"
                    )
                )
            yield self._result("source_root", expect.source_root, root, met=met)
        if expect.every_record is not None:
            missed = sum(1 for each in self._findings if each.code == "filter_missed")
            told = self._result("every_record", 0, missed, met=not missed, denominator=False)
            # One record is enough to miss it, wherever the walk stopped.
            yield replace(told, result="missed") if missed else told
        if expect.swing is not None:
            yield self._swing(expect.swing.records)

    def _count(self, name: str, expected: int | None) -> ExpectationResult:
        met = expected == self._unique
        if self._finished and expected is not None and not met:
            self._findings.append(finding("count_missed", expected=expected, found=self._unique))
        if expected is None:
            return ExpectationResult(
                name=name, expected=None, observed=self._unique, result="not_evaluated"
            )
        return self._result(name, expected, self._unique, met=met)

    def _partition_counts(self, declared: str | Mapping[str, int]) -> ExpectationResult:
        after = self._walk.after
        if isinstance(declared, Mapping):
            counts: dict[str, int] | None = dict(declared)
        else:
            counts = None if after is None else after.partition_counts
        if counts is None:
            return ExpectationResult(
                name="partition_counts", expected=None, observed=None, result="not_evaluated"
            )
        found = {str(value): tree.unique for value, tree in self._trees.items()}
        wrong = {
            value: (counts.get(value, 0), found.get(value, 0))
            for value in sorted({*counts, *found})
            if counts.get(value, 0) != found.get(value, 0)
        }
        if self._finished:
            for value, (expected, observed) in wrong.items():
                self._findings.append(
                    finding(
                        "partition_count_missed",
                        expected=f"{value}: {expected}",
                        found=f"{value}: {observed}",
                    )
                )
        return self._result(
            "partition_counts", sum(counts.values()), sum(found.values()), met=not wrong
        )

    def _sequence_result(self) -> ExpectationResult:
        if self._sequence is None:
            return ExpectationResult(
                name="id_sequence", expected=None, observed=None, result="not_evaluated"
            )
        missing, beyond = self._sequence.missing_count(), self._sequence.beyond
        if self._finished and missing:
            ranges = ", ".join(self._sequence.missing()[:5])
            self._findings.append(finding("ids_missing", expected="every id", found=ranges))
        if self._finished and beyond:
            self._findings.append(
                finding(
                    "ids_beyond_sequence",
                    expected="ids of the sequence",
                    found=", ".join(beyond[:5]),
                )
            )
        return self._result("id_sequence", 0, missing, met=not missing and not beyond)

    def _manifest_result(self, manifest: dict[str, int]) -> ExpectationResult:
        absent = [key for key, state in manifest.items() if state == 1]
        beyond = [key for key, state in manifest.items() if state == 2]
        if self._finished and (absent or beyond):
            self._findings.append(
                finding(
                    "manifest_missed",
                    expected=f"{len(manifest) - len(beyond)} keys",
                    found=f"{len(absent)} absent {absent[:3]}, {len(beyond)} more {beyond[:3]}",
                )
            )
        listed = len(manifest) - len(beyond)
        return self._result(
            "manifest", listed, listed - len(absent) + len(beyond), met=not absent and not beyond
        )

    def _swing(self, allowed: float) -> ExpectationResult:
        if self._last_accepted is None:
            return ExpectationResult(
                name="swing", expected=None, observed=self._unique, result="not_evaluated"
            )
        moved = abs(self._unique - self._last_accepted) / max(1, self._last_accepted)
        if self._finished and moved > allowed:
            self._findings.append(
                finding(
                    "swing_exceeded",
                    expected=f"{self._last_accepted} +/- {allowed:.0%}",
                    found=self._unique,
                )
            )
        return self._result(
            "swing", self._last_accepted, self._unique, met=moved <= allowed, denominator=False
        )

    def _result(
        self,
        name: str,
        expected: str | int | None,
        observed: str | int | None,
        *,
        met: bool,
        denominator: bool = True,
    ) -> ExpectationResult:
        return ExpectationResult(
            name=name,
            expected=expected,
            observed=observed,
            result=("met" if met else "missed") if self._finished else "not_evaluated",
            denominator=denominator,
        )


class _Partition:
    """Counts and tree of one partition, filled in order of key hash."""

    def __init__(self, value: str | int | None) -> None:
        self.value = value
        self.records = self.unique = 0
        self.in_conflict = False
        self.first_key: str | None = None
        self.last_key: str | None = None
        self.leaves = TreeAccumulator()

    def count(self, rows: pl.DataFrame) -> None:
        """Count deliveries, in any order."""
        self.records += rows.height
        first, last = rows["_key"].min(), rows["_key"].max()
        self.first_key = min(k for k in (self.first_key, first) if isinstance(k, str))
        self.last_key = max(k for k in (self.last_key, last) if isinstance(k, str))

    def grow(self, leaves: list[bytes]) -> None:
        """Add the leaves of new keys, in order of key hash."""
        self.unique += len(leaves)
        self.leaves.extend(leaves)

    def summary(self, root: bytes) -> PartitionSummary:
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


def _by_key_hash(rows: pl.DataFrame) -> pl.DataFrame:
    """Return partition and hashes in order of key hash, repeats of a key marked.

    The first eight bytes decide nearly always; only where they are equal and the rest is not does
    the whole hash sort.
    """
    narrow = rows.select("_prefix", "_key_hash", "_leaf_hash", "_partition").sort(
        "_prefix", maintain_order=True
    )
    same_prefix = pl.col("_prefix") == pl.col("_prefix").shift()
    again = (same_prefix & (pl.col("_key_hash") == pl.col("_key_hash").shift())).fill_null(
        value=False
    )
    if narrow.select((same_prefix & ~again).any()).item():
        narrow = narrow.sort("_key_hash", maintain_order=True)
    return narrow.with_columns(again.alias("_again"))


def _differs(frame: pl.DataFrame, name: str, value: str | int | bool | None) -> pl.Expr:
    """Return where a column differs from a value; one of another type is never equal."""
    kind = frame[name].dtype
    same_type = (
        value is None
        or (isinstance(value, bool) and kind == pl.Boolean)
        or (isinstance(value, str) and kind == pl.String)
        or (isinstance(value, int) and not isinstance(value, bool) and kind.is_numeric())
    )
    return pl.col(name).ne_missing(pl.lit(value)) if same_type else pl.lit(value=True)


def _as_in(column: pl.Series, bound: str) -> Any:
    """Return a bound, which travels as text, as a column's own kind of value.

    Raises:
        NotExactError: it is none.
    """
    if column.dtype == pl.String:
        return bound
    kind = column.to_arrow(compat_level=pl.CompatLevel.oldest()).type
    try:
        return exact_value(
            parse_exact(bound.encode()) if column.dtype.is_numeric() else bound, kind
        )
    except CanonicalFormError as error:
        raise NotExactError("a text that is no number") from error


def _by_value(item: tuple[str | int | None, _Partition]) -> tuple[bool, str]:
    return item[0] is not None, str(item[0])
