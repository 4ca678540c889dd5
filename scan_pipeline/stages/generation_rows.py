"""The rows of one generation, read from the files that its receipt pins."""

from collections.abc import Sequence

import polars as pl

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.store.tables import Table


def generation_rows(
    table: Table, generation: str, receipt: Receipt, *, repeats: bool = False
) -> pl.LazyFrame:
    """Return the rows; of a record that was delivered again, as declared, one alone.

    Args:
        table: the records.
        generation: whose.
        receipt: what is known of them.
        repeats: whether every delivery is returned.
    """
    paths: Sequence[str] = table.file_uris(generation)
    if not paths:
        return pl.LazyFrame(schema=pl.DataFrame(table.read(generation)).schema)
    rows = pl.scan_parquet(list(paths), hive_partitioning=False, missing_columns="insert").select(
        pl.lit(generation).alias("scan_generation"), pl.all()
    )
    if repeats or not receipt.duplicate_ids:
        return rows
    # Of a round's deliveries of one key the last holds; elsewhere all are equal.
    keep = "first" if receipt.round is None else "last"
    return rows.unique("_key_hash", keep=keep, maintain_order=True)
