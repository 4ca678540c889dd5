"""Parquet files of a Delta table, written in the order the rows come.

They are written here and not by `write_deltalake`, which (deltalake 1.6.6, measured 2026-11) puts
the batches of a stream in another order, has one compression for all columns, and leaves its
files behind when a commit is refused. Row groups are bounded in rows and bytes, so that the
memory of a writer and of a later reader is too.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.store.data_files import Folder, Layout


@record
class NewFile:
    """A file that was written and is part of no table yet.

    Attributes:
        path: relative to the table.
        size: in bytes.
        modified_ms: milliseconds since 1970, by the file system.
        rows: number of rows.
        stats: JSON, as an add action of the Delta log has it.
    """

    path: str
    size: int
    modified_ms: int
    rows: int
    stats: str


def write_files(
    batches: Iterable[pa.RecordBatch],
    *,
    folder: Folder,
    prefix: str,
    schema: pa.Schema,
    layout: Layout,
) -> tuple[NewFile, ...]:
    """Write rows, in order, to as many files as they need; none for no rows.

    Args:
        batches: rows of `schema`.
        folder: the table.
        prefix: what a file's path begins with; its number and `.parquet` follow.
        schema: columns of the files, without the partition's.
        layout: how the columns lie.

    Raises:
        ContractError: a value that its column does not allow. Nothing is left behind then, nor
            when anything else goes wrong.
    """
    if folder.filesystem.type_name == "local":  # an object store has no folders
        folder.filesystem.create_dir(f"{folder.path}/{prefix.rpartition('/')[0]}")
    started: list[str] = []
    written: list[NewFile] = []
    groups = _row_groups(batches, schema=schema, layout=layout)
    try:
        group = next(groups, None)
        while group is not None:
            started.append(f"{prefix}-{len(started):05d}.parquet")
            with _OpenFile(folder, path=started[-1], schema=schema, layout=layout) as file:
                while group is not None and file.size < layout.file_bytes:
                    file.write(group)
                    group = next(groups, None)
            written.append(file.closed())
    except BaseException as error:
        folder.discard(started)
        if isinstance(error, pa.ArrowInvalid):
            raise ContractError(f"{folder.name}: rows were refused: {error}") from error
        raise
    return tuple(written)


class _OpenFile:
    """A Parquet file while it is written."""

    def __init__(self, folder: Folder, *, path: str, schema: pa.Schema, layout: Layout) -> None:
        self._folder, self._path, self._schema = folder, path, schema
        self._footers: list[pq.FileMetaData] = []
        self._sink = folder.filesystem.open_output_stream(f"{folder.path}/{path}")
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            store_schema=False,
            metadata_collector=self._footers,
            **_writer_options(schema, layout),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._writer.close()
            self._sink.close()
            return
        for close in (self._writer.close, self._sink.close):
            # A writer that failed also fails to close, with RuntimeError; the file goes anyway.
            with suppress(OSError, pa.ArrowException, RuntimeError):
                close()

    @property
    def size(self) -> int:
        return self._sink.tell()

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    def closed(self) -> NewFile:
        footer = self._footers[0]
        info = self._folder.filesystem.get_file_info(f"{self._folder.path}/{self._path}")
        return NewFile(
            path=self._path,
            size=info.size,
            modified_ms=info.mtime_ns // 1_000_000,
            rows=footer.num_rows,
            stats=_delta_stats(footer, schema=self._schema),
        )


def _row_groups(
    batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, layout: Layout
) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        fitting = batch.num_rows * layout.row_group_bytes // max(1, batch.nbytes)
        step = max(1, min(layout.row_group_rows, fitting))
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            over_rows = rows + piece.num_rows > layout.row_group_rows
            if held and (over_rows or size + piece.nbytes > layout.row_group_bytes):
                yield pa.Table.from_batches(held, schema)
                held, rows, size = [], 0, 0
            held.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
    if held:
        yield pa.Table.from_batches(held, schema)


@lru_cache(maxsize=64)
def _writer_options(schema: pa.Schema, layout: Layout) -> dict[str, Any]:
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    described = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    leaves = [described.column(index).path for index in range(len(described))]
    opaque = set(_below(leaves, layout.opaque))
    packed = [leaf for leaf in leaves if leaf not in opaque]
    return {
        "compression": {
            **dict.fromkeys(leaves, "NONE"),
            **dict.fromkeys(packed, layout.compression.upper()),
        },
        "compression_level": dict.fromkeys(packed, 1) if layout.compression == "zstd" else None,
        "use_dictionary": _below(leaves, layout.dictionary) or False,
        "write_statistics": packed or False,
    }


def _below(leaves: Sequence[str], columns: Sequence[str]) -> list[str]:
    return [
        leaf
        for leaf in leaves
        if any(leaf == column or leaf.startswith(f"{column}.") for column in columns)
    ]


def _delta_stats(footer: pq.FileMetaData, *, schema: pa.Schema) -> str:
    """Say the row count, and of whole numbers the least, the greatest and the nulls."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    nulls: dict[str, int] = {}
    whole = {field.name for field in schema if pa.types.is_integer(field.type)}
    leaves = {footer.schema.column(index).path: index for index in range(len(footer.schema))}
    for name in sorted(whole & leaves.keys()):
        chunks = [
            footer.row_group(group).column(leaves[name]).statistics
            for group in range(footer.num_row_groups)
        ]
        if any(chunk is None or not chunk.has_null_count for chunk in chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in chunks)
        bounds = [(chunk.min, chunk.max) for chunk in chunks if chunk.has_min_max]
        if bounds:
            low[name] = min(least for least, _ in bounds)
            high[name] = max(greatest for _, greatest in bounds)
    return json.dumps(
        {"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    )
