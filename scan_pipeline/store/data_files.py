"""The Parquet files below a Delta table: how they lie, and how they are read back, strictly."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, FileType

from scan_pipeline.core.column_names import GENERATION
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.value import record
from scan_pipeline.store.lake import open_filesystem


@record
class Layout:
    """How a table's columns lie in its files.

    Attributes:
        opaque: columns of sealed bytes or digests: not compressed, encoded, or told in statistics.
        dictionary: columns of few distinct values; only these are dictionary-encoded.
        compression: of all other columns. Of a million records of 324 bytes, zstd (level 1) made
            138 MB in 0.86 s and took 0.37 s to read, lz4 173 MB in 0.61 s and 0.24 s (pyarrow 26).
        row_group_rows: rows of a row group, at most.
        row_group_bytes: Arrow bytes of a row group, at most (a single row may be larger).
        file_bytes: a file is closed at the first row group that ends beyond it.
    """

    opaque: tuple[str, ...] = ()
    dictionary: tuple[str, ...] = ()
    compression: Literal["zstd", "lz4", "none"] = "zstd"
    row_group_rows: int = 131_072
    row_group_bytes: int = 64 * 2**20
    file_bytes: int = 256 * 2**20


@record
class DataFile:
    """One file of a table as its log states it.

    Attributes:
        path: relative to the table, as it lies on disk (the log has it URL-encoded).
        size: in bytes.
        partition: the generation.
        rows: by the log's statistics; None where it has none.
    """

    path: str
    size: int
    partition: str
    rows: int | None = None


@record
class Folder:
    """A table's folder, through the file system that reaches it.

    Attributes:
        filesystem: local or remote.
        path: of the folder, in that file system.
        name: of the table, for messages and errors.
    """

    filesystem: FileSystem
    path: str
    name: str

    @classmethod
    def of(cls, uri: str, *, name: str) -> Self:
        """Return the folder of a table."""
        filesystem, path = open_filesystem(uri)
        return cls(filesystem=filesystem, path=path, name=name)

    def discard(self, paths: Iterable[str]) -> None:
        """Remove files that no table refers to; one that cannot be removed only wastes room."""
        for path in paths:
            with suppress(OSError):
                self.filesystem.delete_file(f"{self.path}/{path}")

    def open(self, file: DataFile) -> pa.NativeFile:
        """Open a file for reading after a look at its size.

        Raises:
            TamperedError: it is gone, or of another size.
        """
        try:
            source = self.filesystem.open_input_file(f"{self.path}/{file.path}")
        except OSError as error:
            raise TamperedError(
                self.name,
                f"{self.name}: file {file.path} cannot be opened ({type(error).__name__}); "
                f"expected {file.size} bytes, as its table's log says",
            ) from error
        if source.size() != file.size:
            found = source.size()
            source.close()
            raise TamperedError(
                self.name,
                f"{self.name}: file {file.path} has {found} bytes; expected {file.size}, as its "
                "table's log says",
            )
        return source

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes without opening it, None if it is not there."""
        info = self.filesystem.get_file_info(f"{self.path}/{path}")
        return info.size if info.type == FileType.File else None


def data_files(actions: pa.Table, *, name: str) -> tuple[DataFile, ...]:
    """Return the files of flattened add actions, sorted by path.

    Raises:
        TamperedError: a path leads out of the table.
    """
    files: list[DataFile] = []
    for path, size, partition, rows in zip(
        *(
            actions.column(column).to_pylist()
            for column in ("path", "size_bytes", f"partition.{GENERATION}", "num_records")
        ),
        strict=True,
    ):
        plain = unquote(path)
        if plain.startswith("/") or "://" in plain or ".." in plain.split("/"):
            raise TamperedError(
                name, f"{name}: the log names the file {plain}; expected a path below the table"
            )
        files.append(DataFile(path=plain, size=size, partition=partition, rows=rows))
    return tuple(sorted(files, key=lambda file: file.path))


def read_file(
    file: DataFile, *, folder: Folder, schema: pa.Schema, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in order, row group by row group.

    Args:
        file: as its table's log states it.
        folder: the table.
        schema: columns to read, in this order; the partition's is filled in.
        batch_size: rows of a batch, at most.

    Raises:
        TamperedError: the file is gone, of another size, unreadable, or holds other columns or
            another number of rows than the table says.
    """
    stored = [field for field in schema if field.name != GENERATION]
    with folder.open(file) as source:
        try:
            parquet = pq.ParquetFile(source, pre_buffer=False)
            _check_file(parquet, file=file, stored=stored, name=folder.name)
            for group in range(parquet.num_row_groups):
                for batch in parquet.iter_batches(
                    batch_size, row_groups=[group], columns=[field.name for field in stored]
                ):
                    yield _with_partition(batch, schema=schema, partition=file.partition)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(file, folder, error) from error


def footer_of(file: DataFile, *, folder: Folder) -> pq.FileMetaData:
    """Return what a file says of itself; raises as `read_file`."""
    with folder.open(file) as source:
        try:
            return pq.read_metadata(source)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(file, folder, error) from error


def file_schema(file: DataFile, *, folder: Folder) -> pa.Schema:
    """Return the columns that a file's rows have, the partition's first; raises as `read_file`."""
    stored = footer_of(file, folder=folder).schema.to_arrow_schema()
    return pa.schema([pa.field(GENERATION, pa.string(), nullable=False), *stored])


def _unreadable(file: DataFile, folder: Folder, error: Exception) -> TamperedError:
    return TamperedError(
        folder.name,
        f"{folder.name}: file {file.path} cannot be read ({error}); expected the Parquet file "
        "that was committed",
    )


def _check_file(
    parquet: pq.ParquetFile, *, file: DataFile, stored: Sequence[pa.Field], name: str
) -> None:
    found = parquet.schema_arrow
    for field in stored:
        held = found.field(field.name) if field.name in found.names else None
        if held != field:
            raise TamperedError(
                name,
                f"{name}: file {file.path} has {held or f'no column {field.name}'}; expected "
                f"{field}",
            )
    if file.rows is not None and parquet.metadata.num_rows != file.rows:
        raise TamperedError(
            name,
            f"{name}: file {file.path} has {parquet.metadata.num_rows} rows; expected "
            f"{file.rows}, as its table's log says",
        )


def _with_partition(batch: pa.RecordBatch, *, schema: pa.Schema, partition: str) -> pa.RecordBatch:
    columns = [
        pa.repeat(partition, batch.num_rows)
        if field.name == GENERATION
        else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
