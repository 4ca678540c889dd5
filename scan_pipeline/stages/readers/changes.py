"""What changed between two generations of one scope: by tree, then by key, then by field.

Partitions with equal roots hold equal records and are not looked into; of the others only the rows
whose leaves differ are read whole. Where the record schema moved between the two, each generation
keeps the columns it was staged with, and what both have is compared. Between two proven wholes a
record was added, removed or changed. Between generations of a lesser scope nobody can say so: a
record that is not there may have been missed, and the words are weaker.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import polars as pl

from scan_pipeline.core.canonical import canonical_json, parse_exact
from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.merkle import PartitionRoot
from scan_pipeline.core.value import record
from scan_pipeline.stages.reconcile import partition_by_field
from scan_pipeline.stages.reconciling.partition_roots import partition_roots
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.stages.unlock import LABELS, PartialCollection, VerifiedCollection
from scan_pipeline.stages.workspace import Workspace

Change: TypeAlias = Literal["added", "removed", "changed", "first_seen", "not_seen", "differs"]

_STRONG: Final[tuple[Change, Change, Change]] = ("added", "removed", "changed")
_WEAK: Final[tuple[Change, Change, Change]] = ("first_seen", "not_seen", "differs")

_DIGESTS: Final = ("_key", "_key_hash", "_leaf_hash")
_EXTRA: Final = "_extra"
_RAW: Final = "_raw"
_WHOLE: Final = "(whole record)"
"""Stands for the fields of a record that has none of its own columns, since it does not conform."""

Opened: TypeAlias = VerifiedCollection | PartialCollection


@record
class Changes:
    """The changes from one generation to a later one.

    Attributes:
        scan: the scan.
        before: the earlier generation.
        after: the later one.
        proven: whether both are proven wholes; otherwise the weaker words stand.
        counts: records by change, each of the three words.
        reformatted: records whose bytes differ and whose content does not.
        uncompared: records whose bytes differ, and whose content in what could be compared does
            not.
        fields: changed records by field.
        columns_added: columns that only the later generation has.
        columns_removed: columns that only the earlier one has.
        columns_retyped: columns whose type is another one since.
        not_compared: fields that were not compared for any of these, sorted; none where the
            records' own texts were compared, or none of them differ.
        partitions: partitions that were looked into, and of how many.
        redacted: what was erased of either since, in words; it stands in no count. None where
            nothing was.
        rows: a row a change: `key` (canonical JSON), `change`, `fields` (names, sorted), in order
            of key hash.
    """

    scan: str
    before: str
    after: str
    proven: bool
    counts: Mapping[Change, int]
    reformatted: int
    uncompared: int
    fields: Mapping[str, int]
    columns_added: tuple[str, ...]
    columns_removed: tuple[str, ...]
    columns_retyped: tuple[str, ...]
    not_compared: tuple[str, ...]
    partitions: tuple[int, int]
    redacted: str | None
    rows: pl.DataFrame

    def statement(self) -> str:
        """Return it as a sentence."""
        told = ", ".join(
            f"{count:,} {word.replace('_', ' ')}" for word, count in self.counts.items()
        )
        weak = "" if self.proven else "; not proven wholes, so that what is not seen may exist"
        left = ""
        if self.not_compared:
            left = f"; not compared, since the record schema moved: {', '.join(self.not_compared)}"
            left += f" ({self.uncompared:,} records may differ in them alone)"
        gone = "" if self.redacted is None else f"; {self.redacted}, in no count"
        return f"{self.scan} from {self.before} to {self.after}: {told}{weak}{left}{gone}."


def changes(
    before: Opened, after: Opened, *, partition_by: str | None, workspace: Workspace
) -> Changes:
    """Compare two opened generations of one scan and scope.

    Args:
        before: the earlier one.
        after: the later one.
        partition_by: the field that partitions them; None for the default, the key hash.
        workspace: where their tables lie.

    Raises:
        ContractError: they are of two scans or scopes, and so no versions of one collection.
        TamperedError: the partition summaries do not give the root of the receipt.
    """
    earlier, later = before.receipt, after.receipt
    if (earlier.scan, earlier.scope_digest) != (later.scan, later.scope_digest):
        raise ContractError(
            f"found {earlier.scan} under scope {earlier.scope_digest} and {later.scan} under "
            f"{later.scope_digest}; expected two generations of one scope"
        )
    proven = all(is_whole(r.coverage_status, r.conclusion_scope) for r in (earlier, later))
    words = _STRONG if proven else _WEAK
    redactions = Redactions.of((*before.redactions.amendments, *after.redactions.amendments))
    first, second = (_frame(each, without=redactions.keys) for each in (before, after))
    left, right = first.collect_schema(), second.collect_schema()
    one, other = (
        _partitions(
            opened, kind=None if partition_by is None else schema[partition_by], workspace=workspace
        )
        for opened, schema in ((before, left), (after, right))
    )
    known = one.keys() | other.keys()
    differing = {value for value in known if one.get(value) != other.get(value)}
    added, removed = _only(right, left), _only(left, right)
    shared = [name for name in left if name in right and not name.startswith("_")]
    retyped = tuple(name for name in shared if not _comparable(left[name], right[name]))
    apart = frozenset({*added, *removed, *retyped})
    common = [name for name in shared if name not in {"scan_generation", *apart}]
    within = pl.lit(value=True)  # of a partition by values of two types each row is looked at
    if partition_by not in apart:
        within = _within(differing, partition_by, left)
    pairs = _pairs(first.filter(within), second.filter(within))
    gone, new = pairs["_leaf_hash_after"].is_null(), pairs["_leaf_hash"].is_null()
    edited = pairs.filter(~gone & ~new)
    compared = _compared(first, second, edited, common, apart=apart)
    changed = compared.filter(pl.col("fields").list.len() > 0)
    rows = pl.concat(
        [
            _told(pairs.filter(new), words[0], key="_key_after"),
            _told(pairs.filter(gone), words[1], key="_key"),
            changed.with_columns(pl.lit(words[2]).alias("change")).select(_ROWS.names()),
        ]
    ).sort("_key_hash")
    counted = dict(rows["change"].value_counts().iter_rows())
    same = compared.filter(pl.col("fields").list.len() == 0)
    by_columns = compared["by_columns"].any()
    by_field = changed["fields"].explode().value_counts().sort("fields")
    return Changes(
        scan=later.scan,
        before=earlier.scan_generation,
        after=later.scan_generation,
        proven=proven,
        counts={word: counted.get(word, 0) for word in words},
        reformatted=same.height - int(same["by_columns"].sum()) * bool(apart),
        uncompared=int(same["by_columns"].sum()) * bool(apart),
        fields={str(name): int(count) for name, count in by_field.iter_rows()},
        columns_added=added,
        columns_removed=removed,
        columns_retyped=retyped,
        not_compared=tuple(sorted(apart)) if by_columns else (),
        partitions=(len(differing), len(known)),
        redacted=redactions.told,
        rows=rows.drop("_key_hash"),
    )


_ROWS: Final = pl.Schema(
    {
        "_key_hash": pl.Binary(),
        "key": pl.String(),
        "change": pl.String(),
        "fields": pl.List(pl.String()),
    }
)


def _partitions(
    opened: Opened, *, kind: pl.DataType | None, workspace: Workspace
) -> dict[str, PartitionRoot]:
    """Return the partitions by value in canonical JSON."""
    held = partition_roots(opened.receipt, kind=kind, workspace=workspace)
    return {canonical_json(each.value).decode(): each for each in held}


def _frame(opened: Opened, *, without: frozenset[bytes]) -> pl.LazyFrame:
    """Return the rows; without records that were erased on one side, which were nothing new."""
    partial = isinstance(opened, PartialCollection)
    rows = opened.labelled_frame().drop(LABELS) if partial else opened.frame()
    return rows.filter(~pl.col("_key_hash").is_in([*without])) if without else rows


def _within(differing: set[str], partition_by: str | None, schema: pl.Schema) -> pl.Expr:
    """Return what holds of the rows of some partitions."""
    values = [parse_exact(each.encode()) for each in sorted(differing)]
    if partition_by is None:
        column = pl.col("_key_hash").bin.slice(0, 1).bin.encode("hex")
    else:
        column = partition_by_field(partition_by, schema[partition_by])
    known = [value for value in values if value is not None]
    met = column.is_in(known).fill_null(value=False) if known else pl.lit(value=False)
    return met | column.is_null() if None in values else met


def _pairs(first: pl.LazyFrame, second: pl.LazyFrame) -> pl.DataFrame:
    """Return the keys whose leaves differ or that one side alone has, by digests alone."""
    joined = first.select(_DIGESTS).join(
        second.select(_DIGESTS), on="_key_hash", how="full", coalesce=True, suffix="_after"
    )
    return joined.filter(pl.col("_leaf_hash").ne_missing(pl.col("_leaf_hash_after"))).collect()


def _comparable(one: pl.DataType, other: pl.DataType) -> bool:
    """Say whether equal values of two columns are equal: of one type, or numbers both."""
    return one == other or (one.is_numeric() and other.is_numeric())


def _compared(
    first: pl.LazyFrame,
    second: pl.LazyFrame,
    edited: pl.DataFrame,
    common: Sequence[str],
    *,
    apart: frozenset[str],
) -> pl.DataFrame:
    """Return, of records with two leaves, which fields differ; none where only bytes do.

    `by_columns` says of each whether columns were compared, and not the records' own texts.
    """
    keys = edited.lazy().select("_key_hash")
    texts = ["_key", "_key_hash", "_conforming", _EXTRA, _RAW, *common]
    one = first.join(keys, on="_key_hash", how="semi").select(texts)
    two = second.join(keys, on="_key_hash", how="semi").select(texts)
    pairs = one.join(two, on="_key_hash", suffix="_after").collect()
    fields = [_fields(row, common, apart=apart) for row in pairs.iter_rows(named=True)]
    texts = pl.col(_RAW).is_not_null() & pl.col(f"{_RAW}_after").is_not_null()
    return pairs.select(
        "_key_hash", pl.col("_key").alias("key"), (~texts).alias("by_columns")
    ).with_columns(pl.Series("fields", fields, dtype=pl.List(pl.String)))


def _fields(row: Mapping[str, Any], common: Sequence[str], *, apart: frozenset[str]) -> list[str]:
    """Return the names of the fields in which two versions of a record differ, sorted.

    Args:
        row: both versions, the later one's columns with `_after`.
        common: columns that are compared.
        apart: fields that are not, since they are a column in one version alone.
    """
    conform = row["_conforming"] and row["_conforming_after"]
    texts = row[_RAW], row[f"{_RAW}_after"]
    if all(text is not None for text in texts):
        return _members_differing(*texts)
    if not conform:
        return [_WHOLE]
    differing = {name for name in common if row[name] != row[f"{name}_after"]}
    extras = [row[_EXTRA] or "{}", row[f"{_EXTRA}_after"] or "{}"]
    return sorted(differing | ({*_members_differing(*extras)} - apart))


def _members_differing(before: str, after: str) -> list[str]:
    one, other = parse_exact(before.encode()), parse_exact(after.encode())
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [] if canonical_json(one) == canonical_json(other) else [_WHOLE]
    shared = one.keys() & other.keys()
    differing = {
        each for each in shared if canonical_json(one[each]) != canonical_json(other[each])
    }
    return sorted(differing | (one.keys() ^ other.keys()))


def _told(pairs: pl.DataFrame, word: Change, *, key: str) -> pl.DataFrame:
    return pairs.select(
        "_key_hash",
        pl.col(key).alias("key"),
        pl.lit(word).alias("change"),
        pl.lit([], dtype=pl.List(pl.String)).alias("fields"),
    )


def _only(schema: pl.Schema, other: pl.Schema) -> tuple[str, ...]:
    return tuple(name for name in schema if name not in other and not name.startswith("_"))
