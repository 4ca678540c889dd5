"""What stays of erased records, put back where figures are computed and nowhere else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self

import pyarrow as pa

from scan_pipeline.core.amendment import Amendment, RedactedRecord, redacted_word
from scan_pipeline.core.value import record
from scan_pipeline.store.table_reader import TableReader

BATCH_ROWS: Final = 2**18
"""Rows that are read at once; fewer cost reconciliation more calls than they save memory."""


@record
class Redactions:
    """Erased records of one generation, and the pages whose bodies went with them.

    Attributes:
        records: place and digests of each.
        pages: (shard, page) of each body that was erased.
        amendments: that say so, oldest first.
    """

    records: tuple[RedactedRecord, ...] = ()
    pages: frozenset[tuple[int, int]] = frozenset()
    amendments: tuple[Amendment, ...] = ()

    @classmethod
    def of(cls, amendments: Iterable[Amendment]) -> Self:
        """Return what amendments in force say was erased."""
        told = [each for each in amendments if each.kind == "records_redacted"]
        found = {
            (each.shard, each.page, each.position): each
            for amendment in told
            for each in amendment.redacted
        }
        return cls(
            records=tuple(found[place] for place in sorted(found)),
            pages=frozenset((p.shard, p.page) for amendment in told for p in amendment.pages),
            amendments=tuple(told),
        )

    def __bool__(self) -> bool:
        return bool(self.amendments)

    @property
    def keys(self) -> frozenset[bytes]:
        """Key hashes of the erased records."""
        return frozenset(bytes.fromhex(each.key_hash) for each in self.records)

    def word(self) -> str:
        """Return it in words: `1 record redacted on 2026-11-30`."""
        return redacted_word(self.amendments)

    @property
    def told(self) -> str | None:
        """The same words; None where nothing was erased."""
        return self.word() if self else None

    @property
    def newest(self) -> datetime | None:
        """When something was erased last; None where nothing was."""
        return max((datetime.fromisoformat(e.made_at) for e in self.amendments), default=None)

    def leaves(self, shard: int) -> Mapping[int, Mapping[int, bytes]]:
        """Return the leaves of a walk's erased records, by page and position."""
        found: dict[int, dict[int, bytes]] = {}
        for each in self.records:
            if each.shard == shard:
                leaf = bytes.fromhex(each.leaf_hash)
                found.setdefault(each.page, {})[each.position] = leaf
        return found

    def rows(
        self, schema: pa.Schema, *, shard: int, partition_by: str | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what stays of a walk's erased records as rows: digests and places, else nulls.

        Args:
            schema: columns that are wanted.
            shard: of the walk.
            partition_by: column of the partition, None for the key hash.
        """
        of_walk = [each for each in self.records if each.shard == shard]
        if not of_walk:
            return
        columns: Sequence[pa.Array] = [
            _column(
                [_value(each, field.name, partition_by=partition_by) for each in of_walk], field
            )
            for field in schema
        ]
        nullable = pa.schema([field.with_nullable(True) for field in schema])
        yield pa.RecordBatch.from_arrays([*columns], schema=nullable)


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    plain = pa.array(values)
    return plain if plain.type == field.type else plain.cast(field.type)


def _value(erased: RedactedRecord, column: str, *, partition_by: str | None) -> Any:
    if column == partition_by:
        return erased.partition
    match column:
        case "_page":
            return erased.page
        case "_position":
            return erased.position
        case "_key_hash":
            return bytes.fromhex(erased.key_hash)
        case "_leaf_hash":
            return bytes.fromhex(erased.leaf_hash)
        case "_conforming":
            return erased.conforming
        case "_removed":
            return erased.removed
        case _:
            return None


class KnownRows:
    """The staged rows of a walk, and behind them what stays of erased ones.

    Args:
        table: that holds them.
        generation: whose rows.
        redactions: what was erased.
        shard: of the walk.
        partition_by: column of the partition, None for the key hash.
    """

    def __init__(
        self,
        table: TableReader,
        generation: str,
        *,
        redactions: Redactions,
        shard: int,
        partition_by: str | None,
    ) -> None:
        self._table, self._generation = table, generation
        self._redactions, self._shard, self._by = redactions, shard, partition_by

    def count(self) -> int:
        """Return their number."""
        return sum(batch.num_rows for batch in self.batches(("_page",)))

    def batches(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows, in order; raises as `TableReader.batches`."""
        yield from self._table.batches(self._generation, columns=columns, batch_size=BATCH_ROWS)
        if self._redactions.records:
            written = self._table.written_schema(self._generation)
            schema = pa.schema([written.field(name) for name in columns])
            yield from self._redactions.rows(schema, shard=self._shard, partition_by=self._by)
