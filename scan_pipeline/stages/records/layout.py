"""The columns of the records table: the record's own, and ours beside them."""

from typing import Final

import pyarrow as pa

OURS: Final = pa.schema(
    [
        pa.field("_page", pa.int64()),
        pa.field("_position", pa.int32()),
        pa.field("_key", pa.string()),
        pa.field("_key_hash", pa.binary()),
        pa.field("_leaf_hash", pa.binary()),
        pa.field("_conforming", pa.bool_()),
        pa.field("_extra", pa.string()),
        pa.field("_raw", pa.string()),
    ]
)
"""What stands beside a record's own columns.

`_page` from 1 and `_position` from 0 say where it came; `_key` is its canonical key, None where it
has none; `_extra` holds unknown fields as JSON; `_raw` is the whole text of a record that does not
conform, and of every record where no schema is declared.
"""

REMOVED: Final = pa.field("_removed", pa.string())
"""Where records come in rounds: why one was removed, in the source's word; null for all others."""


def records_schema(columns: pa.Schema, *, in_rounds: bool = False) -> pa.Schema:
    """Return the schema of the records table: the partition, the record's columns, then ours.

    Args:
        columns: the record's own.
        in_rounds: whether records come in rounds, some of them as removals.
    """
    generation = pa.field("scan_generation", pa.string(), nullable=False)
    own = [pa.field(each.name, each.type) for each in columns]
    return pa.schema([generation, *own, *OURS, *([REMOVED] if in_rounds else [])])
