"""Expectations: what is known of the whole beside the walk, held against what arrived."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import polars as pl

from scan_pipeline.core.canonical import key_bytes, key_hash
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.reconciliation import ExpectationResult, IdSequenceCheck
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import MAY_MOVE
from scan_pipeline.core.walk_evidence import WalkEvidence
from scan_pipeline.stages.reconciling.every_record import EveryRecord
from scan_pipeline.stages.reconciling.manifest import read_manifest
from scan_pipeline.stages.records.exact_values import NotExactError, told_value

LONGEST_SEQUENCE = 2**32
"""Ids of one sequence, at most; one byte each. A longer one is not evaluated."""

LOOKED_UP = 1_000_000
"""Ids of a sequence that are looked for among erased ones, at most."""


class Expectations:
    """Takes in the rows of one generation and says how each expectation fared.

    Args:
        scan: the scan.
        walk: what the events say.
        total_moved: whether the source's exact count moved during the walk.
        last_accepted: number of records of the last accepted generation of this scope.
        text: reads one record's text.
        tell: takes each finding.
        erased: key hashes of records that arrived and were erased since.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        walk: WalkEvidence,
        total_moved: bool,
        last_accepted: int | None,
        text: Callable[[int, int], bytes],
        tell: Callable[[Finding], None],
        erased: frozenset[bytes] = frozenset(),
    ) -> None:
        self._erased = erased
        self._scan, self._walk, self._total_moved = scan, walk, total_moved
        self._last_accepted, self._tell = last_accepted, tell
        self._every_record = EveryRecord(scan, text=text)
        self._unique = self._filter_missed = 0
        self._bound_is_told = False
        self._sequence = self._id_sequence()
        self._manifest = self._read_manifest()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the records that `look` wants to see."""
        bound = self._bound_field
        return (*self._every_record.columns, *([] if bound is None else [bound]))

    def look(self, rows: pl.DataFrame) -> None:
        """Look at each row once, whatever its key: at what a filter and a bound promise."""
        for told in self._every_record.wrong(rows):
            self._filter_missed += 1
            self._tell(told)
        if self._bound_field is not None:
            self._check_bound(rows, self._bound_field)

    def mark(self, keys: pl.Series) -> None:
        """Take in the canonical keys that arrived, each as often as it did."""
        if self._sequence is None and self._manifest is None:
            return
        texts: list[str] = keys.to_list()
        if self._sequence is not None:
            self._sequence.mark(json.loads(key)[0] for key in texts)
        if self._manifest is not None:
            for key in texts:
                self._manifest[key] = self._manifest.get(key, 0) | 2

    def missing_id_ranges(self) -> tuple[str, ...]:
        """Return the gaps of the id sequence; none before the walk has finished."""
        self._mark_erased()
        return self._sequence.missing() if self._sequence and self._finished else ()

    def results(
        self, *, unique_keys: int, by_partition: Mapping[str, int], root: str | None
    ) -> tuple[ExpectationResult, ...]:
        """Say how every expectation fared, once all rows were taken in.

        Args:
            unique_keys: distinct keys that arrived.
            by_partition: the same by value of `partition_by`, as text.
            root: the collection's root in hex, None where there is none.
        """
        self._unique = unique_keys
        self._mark_erased()
        return tuple(self._results(by_partition, root))

    def _mark_erased(self) -> None:
        """Take in the keys that arrived and were erased since: a gap whose digest is theirs."""
        erased, self._erased = self._erased, frozenset()
        if not erased:
            return
        if self._sequence is not None:
            self._sequence.mark_where(
                lambda each: key_hash(key_bytes([each])) in erased, most=LOOKED_UP
            )
        if self._manifest is not None:
            for key, state in self._manifest.items():
                if state == 1 and key_hash(key.encode()) in erased:
                    self._manifest[key] = 3

    @property
    def _finished(self) -> bool:
        return self._walk.traversal == "finished"

    @property
    def _bound_field(self) -> str | None:
        bound = self._scan.source.high_water_mark
        held = self._scan.contract.consistency == "high_water_mark"
        return bound.field if bound is not None and held else None

    def _check_bound(self, rows: pl.DataFrame, field: str) -> None:
        bound = self._walk.before.high_water_mark
        if bound is None:
            return
        column = rows[field]
        try:
            kind = column.to_arrow(compat_level=pl.CompatLevel.oldest()).type
            limit = bound if column.dtype == pl.String else told_value(bound, kind)
        except NotExactError as error:
            if not self._bound_is_told:
                self._tell(finding("reported_invalid", expected=f"a bound of {field}", found=error))
            self._bound_is_told = True
            return
        # What cannot be compared as a number was not shown to lie below the bound.
        digits = column.dtype == pl.String and bound.isdigit()
        beyond = pl.col(field).is_null() | (
            pl.col(field).cast(pl.Int64, strict=False).is_null()
            | (pl.col(field).cast(pl.Int64, strict=False) > int(bound))
            if digits
            else pl.col(field) > limit
        )
        for page, key, found in rows.filter(beyond).select("_page", "_key", field).iter_rows():
            self._tell(
                finding(
                    "beyond_high_water_mark",
                    page=page,
                    key=key,
                    expected=f"<= {bound}",
                    found="nothing to compare" if found is None else "a value that is not",
                )
            )

    def _id_sequence(self) -> IdSequenceCheck | None:
        declared = self._scan.contract.expect.id_sequence
        if declared is None:
            return None
        last = self._walk.total if declared.last == "count" else declared.last
        if last is None:
            return None
        if last - declared.first >= LONGEST_SEQUENCE:
            return None
        return IdSequenceCheck(prefix=declared.prefix, first=declared.first, last=last)

    def _read_manifest(self) -> dict[str, int] | None:
        """Read the manifest's keys: 1 is listed, 2 is seen, 3 is both."""
        declared = self._scan.contract.expect.manifest
        if declared is None:
            return None
        return dict.fromkeys(read_manifest(declared), 1)

    def _results(
        self, by_partition: Mapping[str, int], root: str | None
    ) -> Iterator[ExpectationResult]:
        expect = self._scan.contract.expect
        if self._scan.source.exact_total:
            # Where rows may move, a count that did is of another moment: it decides nothing then.
            moment = self._scan.contract.consistency not in MAY_MOVE or not self._total_moved
            yield self._count("source_count", self._walk.total if moment else None)
        if expect.count is not None:
            yield self._count("count", expect.count)
        if expect.partition_counts is not None:
            yield self._partition_counts(expect.partition_counts, by_partition)
        if expect.id_sequence is not None:
            yield self._sequence_result()
        if self._manifest is not None:
            yield self._manifest_result(self._manifest)
        if expect.source_root is not None:
            met = root == expect.source_root
            if self._finished and not met:
                self._tell(
                    finding(
                        "source_root_missed", expected=expect.source_root, found=root or "no root"
                    )
                )
            yield self._result("source_root", expect.source_root, root, met=met)
        if expect.every_record is not None:
            missed = self._filter_missed
            told = self._result("every_record", 0, missed, met=not missed, denominator=False)
            # One record is enough to miss it, wherever the walk stopped.
            yield replace(told, result="missed") if missed else told
        if expect.swing is not None:
            yield self._swing(expect.swing.records)

    def _count(self, name: str, expected: int | None) -> ExpectationResult:
        met = expected == self._unique
        if self._finished and expected is not None and not met:
            self._tell(finding("count_missed", expected=expected, found=self._unique))
        if expected is None:
            return ExpectationResult(
                name=name, expected=None, observed=self._unique, result="not_evaluated"
            )
        return self._result(name, expected, self._unique, met=met)

    def _partition_counts(
        self, declared: str | Mapping[str, int], found: Mapping[str, int]
    ) -> ExpectationResult:
        after = self._walk.after
        if isinstance(declared, Mapping):
            counts: dict[str, int] | None = dict(declared)
        else:
            counts = None if after is None else after.partition_counts
        if counts is None:
            return ExpectationResult(
                name="partition_counts", expected=None, observed=None, result="not_evaluated"
            )
        wrong = {
            value: (counts.get(value, 0), found.get(value, 0))
            for value in sorted({*counts, *found})
            if counts.get(value, 0) != found.get(value, 0)
        }
        if self._finished:
            for value, (expected, observed) in wrong.items():
                self._tell(
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
            self._tell(finding("ids_missing", expected="every id", found=ranges))
        if self._finished and beyond:
            self._tell(
                finding(
                    "ids_beyond_sequence",
                    expected="ids of the sequence",
                    found=", ".join(beyond[:5]),
                )
            )
        size = self._sequence.size
        return self._result("id_sequence", size, size - missing, met=not missing and not beyond)

    def _manifest_result(self, manifest: dict[str, int]) -> ExpectationResult:
        absent = [key for key, state in manifest.items() if state == 1]
        beyond = [key for key, state in manifest.items() if state == 2]
        if self._finished and (absent or beyond):
            self._tell(
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
            self._tell(
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
