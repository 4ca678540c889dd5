"""Rows as writers hand them over: a batch, a table, or a stream of batches."""

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from scan_pipeline.core.errors import ContractError

Rows: TypeAlias = pa.RecordBatch | pa.Table | pa.RecordBatchReader


def of_generation(
    rows: Rows, *, schema: pa.Schema, generation: str, where: str
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of rows without the partition's column, which every row must agree to.

    Args:
        rows: the rows.
        schema: of the table; layouts of the same values are cast to it.
        generation: whose rows they must be.
        where: the table, for the message.

    Raises:
        ContractError: a row is of another generation.
    """
    for batch in batches_of(rows):
        cast = batch if batch.schema.equals(schema) else batch.cast(schema)  # values stay
        column = cast.column(0)
        same = pc.call_function("equal", [column, generation])
        if column.null_count or same.true_count != batch.num_rows:
            raise ContractError(
                f"{where}: found rows of another generation; expected {generation} only"
            )
        yield cast.remove_column(0)


def batches_of(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Yield rows batch by batch, however they come."""
    match rows:
        case pa.RecordBatch():
            yield rows
        case pa.Table():
            yield from rows.to_batches()
        case _:
            yield from rows
