"""One generation's rows without a record: staged rows, summaries, findings, page bodies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from scan_pipeline.core.amendment import ErasedPage, RedactedRecord
from scan_pipeline.core.errors import ConfigurationError, ErasedError
from scan_pipeline.stages.erasing.naming import REDACTED, Named
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.store.events import SEALED_COLUMNS
from scan_pipeline.store.generations import FIRST_WALK, SUMMARIES, GenerationStore
from scan_pipeline.store.table_reader import TableReader

_PLACE = ("_page", "_position", "_key_hash", "_leaf_hash", "_conforming")


def records_named(
    store: GenerationStore, named: Named, *, partition_by: str | None, key: Sequence[str]
) -> tuple[RedactedRecord, ...]:
    """Return what will stay of the records of a key, as they are staged now."""
    found = list[RedactedRecord]()
    for shard, table in ((FIRST_WALK, store.records()), (SECOND_WALK, store.second_walk())):
        if not table.exists() or not table.files(store.generation):
            continue
        kept = None if partition_by in key else partition_by
        held = table.written_schema(store.generation).names
        columns = [*_PLACE, *(n for n in (kept, "_removed") if n is not None and n in held)]
        for batch in table.batches(store.generation, columns=columns):
            rows = pl.DataFrame(batch).filter(pl.col("_key_hash") == pl.lit(named.hash))
            for row in rows.to_dicts():
                found.append(
                    RedactedRecord(
                        shard=shard,
                        page=row["_page"],
                        position=row["_position"],
                        key_hash=row["_key_hash"].hex(),
                        leaf_hash=row["_leaf_hash"].hex(),
                        partition=_plain(None if kept is None else row.get(kept)),
                        conforming=row["_conforming"],
                        removed=row.get("_removed"),
                    )
                )
    return tuple(found)


def without_record(batch: pa.RecordBatch, named: Named) -> pa.RecordBatch:
    """Return staged rows without those of a key."""
    other = pl.col("_key_hash").ne_missing(pl.lit(named.hash))
    kept = pl.DataFrame({"_key_hash": batch.column("_key_hash")}).select(other)
    return batch.filter(pa.array(kept.to_series().to_list()))


def without_mentions(batch: pa.RecordBatch, named: Named) -> pa.RecordBatch:
    """Return findings with the key taken out of them."""
    rows = batch.to_pylist()
    for row in rows:
        row["key"] = REDACTED if row["key"] == named.canonical else row["key"]
        for column in ("key", "expected", "found"):
            if row[column] is not None:
                row[column] = named.without(row[column])
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def mentions(batch: pa.RecordBatch, named: Named) -> bool:
    """Say whether findings name the key."""
    return any(
        row[column] is not None and (row[column] == named.canonical or named.is_in(row[column]))
        for row in batch.to_pylist()
        for column in ("key", "expected", "found")
    )


def bounds_without(
    records: TableReader, generation: str, named: Named, *, partition: pl.Expr
) -> Mapping[str | None, tuple[str, str]]:
    """Return first and last key of each partition without the record, by partition as text.

    Args:
        records: the staged records, with or without the record still.
        generation: whose rows.
        named: the record that does not count.
        partition: gives the partition of a row as text.
    """
    frames = [
        pl.DataFrame(batch)
        .filter(pl.col("_key_hash").ne_missing(pl.lit(named.hash)))
        .group_by(partition.alias("_partition"))
        .agg(pl.col("_key").min().alias("first"), pl.col("_key").max().alias("last"))
        for batch in records.batches(generation)
        if batch.num_rows
    ]
    if not frames:
        return {}
    joined = pl.concat(frames).group_by("_partition").agg(pl.min("first"), pl.max("last"))
    return {value: (first, last) for value, first, last in joined.iter_rows()}


def without_bounds(
    batch: pa.RecordBatch, named: Named, bounds: Mapping[str | None, tuple[str, str]]
) -> pa.RecordBatch:
    """Return partition summaries whose first and last key are others' than the record's."""
    rows = batch.to_pylist()
    for row in rows:
        first, last = bounds.get(row["partition"], ("", ""))
        row["first_key"] = first if row["first_key"] == named.canonical else row["first_key"]
        row["last_key"] = last if row["last_key"] == named.canonical else row["last_key"]
        if row["partition"] is not None:
            row["partition"] = named.without(row["partition"])
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def bounds_named(store: GenerationStore, named: Named) -> bool:
    """Say whether a partition summary names the key."""
    table = store.summaries()
    if not table.exists() or not table.files(store.generation):
        return False
    rows = table.read(store.generation, columns=SUMMARIES.names).to_pylist()
    return any(
        named.canonical in (row["first_key"], row["last_key"])
        or named.is_in(row["partition"] or "")
        for row in rows
    )


def pages_named(store: GenerationStore, named: Named) -> tuple[set[ErasedPage], bool]:
    """Return the pages whose bodies name a key, and whether every body could be looked into."""
    found, whole = set[ErasedPage](), True
    for shard in (FIRST_WALK, SECOND_WALK):
        try:
            for page, body in store.bodies(shard, past_erased=True):
                if named.is_in_bytes(body):
                    found.add(ErasedPage(shard=shard, page=page))
        except ErasedError:
            continue  # what a destroyed key sealed is erased already
        except ConfigurationError:
            whole = False
    return found, whole


def without_pages(batch: pa.RecordBatch, pages: Sequence[ErasedPage]) -> pa.RecordBatch:
    """Return events without the bodies of some pages, and without any token.

    A continuation may be made of a key, as sent or in some coding; a sealed walk needs none.
    """
    gone = {(each.shard, each.page) for each in pages}
    places = zip(batch.column("shard").to_pylist(), batch.column("page").to_pylist(), strict=True)
    keep = pa.array([place not in gone for place in places])

    def columns() -> Iterator[Any]:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name == "body":
                bodies = [
                    body if kept else None
                    for body, kept in zip(column.to_pylist(), keep.to_pylist(), strict=True)
                ]
                yield pa.array(bodies, field.type)
            elif field.name in SEALED_COLUMNS:
                yield pa.nulls(batch.num_rows, field.type)
            else:
                yield column

    return pa.RecordBatch.from_arrays(list(columns()), schema=batch.schema)


def facts_named(store: GenerationStore, named: Named) -> bool:
    """Say whether the ledger's own facts name the key; they are linked and cannot be altered."""
    table = store.pages()
    return any(
        named.is_in(facts)
        for batch in table.batches(store.generation, columns=("facts",))
        for facts in batch.column("facts").to_pylist()
    )


def _plain(value: Any) -> str | int | None:
    return value if value is None or isinstance(value, str | int) else str(value)


def pages_without_body(store: GenerationStore) -> set[ErasedPage]:
    """Return the pages whose bodies are gone already."""
    found = set[ErasedPage]()
    columns = ("shard", "page", "event", "body")
    for batch in store.pages().batches(store.generation, columns=columns):
        gone = batch.filter(batch.column("body").is_null()).select(columns[:3])
        found |= {
            ErasedPage(shard=shard, page=page)
            for shard, page, event in zip(*(c.to_pylist() for c in gone.columns), strict=True)
            if event == "page"
        }
    return found
