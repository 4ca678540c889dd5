"""The leaves of a generation's tree as a file, and the trees grown from them again."""

import io
from collections.abc import Iterator, Mapping
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from scan_pipeline.core.canonical import canonical_json, key_hash, leaf_hash
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.merkle import tree_root
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.reconcile import partition_by_field
from scan_pipeline.stages.records.keys import key_column, key_column_hashes, key_of
from scan_pipeline.stages.records.texts import RecordTexts
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.store.generations import FIRST_WALK

_PLACE: Final = ("_key_hash", "_leaf_hash", "_page", "_position")

_ROWS_AT_ONCE: Final = 10_000

SCHEMA: Final = pa.schema(
    [
        pa.field("key_hash", pa.binary(), nullable=False),
        pa.field("leaf_hash", pa.binary(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
    ]
)
"""One row a record that has a key; `partition` in canonical JSON, as in the summaries."""

BYTES: Final = pa.field("record", pa.binary(), nullable=False)
"""The record's bytes as they were admitted, where they are included."""


def leaves_file(
    rows: pl.LazyFrame,
    scan: Scan,
    *,
    texts: RecordTexts | None,
    redactions: Redactions = Redactions(),  # noqa: B008  # a frozen value
) -> bytes:
    """Return the leaves of records as a Parquet file, in the order of the records.

    Args:
        rows: the records as staged, each key once.
        scan: the contract they were walked under.
        texts: where the records' bytes are looked up; None to leave them out.
        redactions: records that were erased since; without their leaves no root comes out.

    Raises:
        TamperedError: the bytes of a record are not those of its leaf.
        ErasedError: the bytes of a record were taken out.
    """
    schema = SCHEMA if texts is None else SCHEMA.append(BYTES)
    by = scan.contract.partition_by
    kept = rows.select(*_PLACE, *([] if by is None else [by])).collect()
    layout = kept.to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    erased = redactions.rows(layout, shard=FIRST_WALK, partition_by=by)
    stubs = [pl.DataFrame(batch).cast(kept.schema).unique("_key_hash") for batch in erased]
    whole = pl.concat([kept, *stubs])
    if by is None:
        partition = pl.col("_key_hash").bin.slice(0, 1).bin.encode("hex")
    else:
        partition = partition_by_field(by, whole.schema[by])
    narrow = whole.select(*_PLACE, partition.alias("_partition")).filter(
        pl.col("_key_hash").is_not_null()
    )
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for part in narrow.sort("_page", "_position").iter_slices(_ROWS_AT_ONCE):
            told = [canonical_json(each).decode() for each in part["_partition"]]
            columns = [part["_key_hash"].to_list(), part["_leaf_hash"].to_list(), told]
            if texts is not None:
                columns.append(list(_texts(part, texts)))
            arrays = [
                pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return out.getvalue()


def roots_of(leaves: pl.DataFrame) -> Mapping[str, tuple[int, str]]:
    """Return number of leaves and root (hex) of each partition, by its canonical JSON."""
    order = leaves.select("partition", "key_hash", "leaf_hash").sort("partition", "key_hash")
    found: dict[str, tuple[int, str]] = {}
    start = 0
    for partition, count in order.group_by("partition", maintain_order=True).len().iter_rows():
        hashes = order["leaf_hash"].slice(start, count).to_list()
        found[partition] = (count, tree_root(hashes).hex())
        start += count
    return found


def unlike_their_leaves(content: bytes, key_fields: tuple[str, ...]) -> tuple[int, int]:
    """Return how many records' bytes are not those of leaf and key, and of how many.

    Args:
        content: a file of leaves that has the records' bytes.
        key_fields: names of the key fields.
    """
    wrong = total = 0
    for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches(_ROWS_AT_ONCE):
        columns = [batch.column(name).to_pylist() for name in ("record", "leaf_hash", "key_hash")]
        for text, leaf, place in zip(*columns, strict=True):
            key = key_of(text, key_fields)
            total += 1
            wrong += leaf_hash(text) != leaf or key is None or key_hash(key.encode()) != place
    return wrong, total


def keys_not_among(
    records: pa.Table, leaves: pl.DataFrame, *, key_fields: tuple[str, ...]
) -> int | None:
    """Return how many keys of a table of records have no leaf; None where it has no key columns.

    A record that does not conform to its schema may lack its key there; it is passed by.
    """
    if "_conforming" in records.column_names:
        records = records.filter(records.column("_conforming"))
    keys = key_column(records, key_fields)
    if keys is None:
        return None
    hashes = pl.Series(key_column_hashes(keys)).drop_nulls()
    return int((~hashes.is_in(leaves["key_hash"].implode())).sum())


def _texts(part: pl.DataFrame, texts: RecordTexts) -> Iterator[bytes]:
    for page, position, leaf in part.select("_page", "_position", "_leaf_hash").iter_rows():
        text = texts.text(page, position)
        if leaf_hash(text) != leaf:
            raise TamperedError("records", f"the record at {position} of page {page} is another")
        yield text
