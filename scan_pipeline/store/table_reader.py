"""A Delta table partitioned by generation, as readers see it: through a fresh handle each time.

A reused handle grows linearly slower and shows an old moment. `DeltaTable.to_pyarrow_table` and
`to_pyarrow_dataset` are never used: they abort at interpreter exit in a third of runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from scan_pipeline.core.column_names import GENERATION
from scan_pipeline.core.errors import ContractError, EvidenceError
from scan_pipeline.store.data_files import DataFile, Folder, data_files, file_schema, read_file
from scan_pipeline.store.lake import check_generation
from scan_pipeline.store.table_schema import check_table_schema, stored_schema

LOCATION_MEMBERS: Final = 3
"""Path members of a table below the lake: `<zone>/<scan>/<table>`."""


class TableReader:
    """One table; it has no rows before its first write.

    Rows come back in the order of the files' paths, which for the rows of one writer is the order
    in which they were committed: a path begins with the version that its writer saw.

    Args:
        uri: where it lies.
        schema: its columns, `scan_generation` first. None: those that a generation was written
            with.
        location: path below the lake's root, which receipts name; None for the last three
            members of the uri.

    Raises:
        ContractError: Delta would store the schema otherwise.
    """

    def __init__(
        self, uri: str, schema: pa.Schema | None = None, *, location: str | None = None
    ) -> None:
        if schema is not None:
            check_table_schema(schema)
        self.uri = uri
        self.location = location or "/".join(uri.split("/")[-LOCATION_MEMBERS:])
        self.name = uri.rpartition("/")[2]
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns that the table was opened with.

        Raises:
            ContractError: with none; that is enough for reading only.
        """
        if self._schema is None:
            raise ContractError(f"{self.location}: found no schema; expected one for writing")
        return self._schema

    @property
    def folder(self) -> Folder:
        """The table's folder, for its files."""
        return Folder.of(self.uri, name=self.name)

    def exists(self) -> bool:
        """Whether the table was created."""
        return DeltaTable.is_deltatable(self.uri)

    def open(self) -> DeltaTable:
        """Return a fresh handle, which stays at this moment; pass it as `at`, never keep it.

        Raises:
            EvidenceError: there is no such table, or another tool changed how it must be read.
        """
        if (handle := self.open_if_there()) is not None:
            return handle
        raise EvidenceError(
            f"{self.location}: found no table; expected one: nothing was written yet"
        )

    def open_if_there(self) -> DeltaTable | None:
        """Return a fresh handle, or None if there is no table yet; raises as `open` else."""
        try:
            handle = DeltaTable(self.uri)
        except TableNotFoundError:
            return None
        except DeltaError as error:
            raise EvidenceError(
                f"{self.location}: found a log that cannot be read ({str(error).splitlines()[0]}); "
                "expected the table as it was written: restore it, or try again where the lake "
                "could not be reached"
            ) from error
        if (reader := handle.protocol().min_reader_version) != 1:
            raise EvidenceError(
                f"{self.location}: found Delta reader version {reader}; expected 1: another tool "
                "changed the table (deletion vectors or column mapping), and its files no longer "
                "say which rows count"
            )
        return handle

    def version(self) -> int:
        """Return the latest version; raises as `open`."""
        return self.open().version()

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version an application committed, None if none or no table."""
        handle = self.open_if_there()
        return None if handle is None else handle.transaction_version(app_id)

    def latest_commit(self) -> Mapping[str, object]:
        """Return what the latest commit says of itself, the writer's metadata included."""
        return self.open().history(1)[0]

    def generations(self, *, at: DeltaTable | None = None) -> tuple[str, ...]:
        """Return the generations that have rows, sorted by name."""
        if (handle := at or self.open_if_there()) is None:
            return ()
        partitions = pa.table(handle.get_add_actions(flatten=True))
        return tuple(sorted(set(partitions.column(f"partition.{GENERATION}").to_pylist())))

    def add_actions(self, generation: str, *, at: DeltaTable) -> pa.Table:
        """Return a generation's add actions, flattened (`path`, `min.<column>` and so on)."""
        actions = pa.table(at.get_add_actions(flatten=True))
        partitions = actions.column(f"partition.{GENERATION}")
        return actions.filter(pc.call_function("equal", [partitions, check_generation(generation)]))

    def files(self, generation: str, *, at: DeltaTable | None = None) -> tuple[DataFile, ...]:
        """Return a generation's files, sorted by path; none if it or the table is not there.

        Raises:
            TamperedError: the log names a file outside the table.
        """
        handle = at or self.open_if_there()
        if handle is None:
            return ()
        return data_files(self.add_actions(generation, at=handle), name=self.name)

    def file_uris(self, generation: str) -> tuple[str, ...]:
        """Return where a generation's files lie, in the order of its rows; errors as `files`."""
        return tuple(f"{self.uri}/{file.path}" for file in self.files(generation))

    def written_schema(self, generation: str, *, at: DeltaTable | None = None) -> pa.Schema:
        """Return the columns of a generation's rows; errors as `read`."""
        return self._read_schema(self.files(generation, at=at), columns=None, at=at)

    def batches(
        self,
        generation: str,
        *,
        columns: Sequence[str] | None = None,
        batch_size: int = 65_536,
        at: DeltaTable | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield a generation's rows in order; memory stays at about one row group.

        Args:
            generation: whose rows.
            columns: columns to read, in this order; all of them for None.
            batch_size: rows of a batch, at most.
            at: a handle whose moment counts; a fresh one for None.

        Raises:
            ContractError: the table has no such column.
            TamperedError: a file is not what the table's log says.
        """
        files, folder = self.files(generation, at=at), self.folder
        schema = self._read_schema(files, columns=columns, at=at)
        for file in files:
            yield from read_file(file, folder=folder, schema=schema, batch_size=batch_size)

    def read(
        self,
        generation: str,
        *,
        columns: Sequence[str] | None = None,
        at: DeltaTable | None = None,
    ) -> pa.Table:
        """Return a generation's rows at once; order and errors as `batches`.

        Raises:
            EvidenceError: there is no table, and no schema was given to stand in for it.
        """
        batches = list(self.batches(generation, columns=columns, at=at))
        schema = batches[0].schema if batches else self._read_schema((), columns=columns, at=at)
        return pa.Table.from_batches(batches, schema)

    def _read_schema(
        self,
        files: Sequence[DataFile],
        *,
        columns: Sequence[str] | None,
        at: DeltaTable | None,
    ) -> pa.Schema:
        if self._schema is not None:
            schema = self._schema
        elif files:
            schema = file_schema(files[0], folder=self.folder)
        else:
            schema = stored_schema(at or self.open())
        if columns is None:
            return schema
        if unknown := [name for name in columns if name not in schema.names]:
            raise ContractError(
                f"{self.location}: found no column {unknown}; expected some of {schema.names}"
            )
        return pa.schema([schema.field(name) for name in columns])
