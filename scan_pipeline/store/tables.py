"""A Delta table partitioned by generation, as writers see it: every operation is one commit."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from scan_pipeline.core.column_names import GENERATION
from scan_pipeline.core.errors import ContractError, RetryError, WriterConflictError
from scan_pipeline.store.commits import ATTEMPTS, Write, commit
from scan_pipeline.store.data_files import Layout, file_schema
from scan_pipeline.store.file_writer import NewFile, write_files
from scan_pipeline.store.lake import Lake, Zone, check_generation, make_private
from scan_pipeline.store.row_batches import Rows, of_generation
from scan_pipeline.store.table_reader import LOCATION_MEMBERS, TableReader
from scan_pipeline.store.table_schema import (
    check_rows_schema,
    merged_schema,
    stored_schema,
)

CONFIGURATION: Final[Mapping[str, str]] = {
    # Every handle replays the log from the last checkpoint: over 500 commits of 64 events, one
    # took 38 ms at an interval of 100, 25 ms at 25 and 23 ms at 10 (2 cores, 2026-11).
    "delta.checkpointInterval": "25",
    # Nobody reads an old version (receipts pin contents), and thousands of log files slow a commit.
    "delta.logRetentionDuration": "interval 1 days",
}


class Table(TableReader):
    """One table, created by its first write; reading is inherited.

    Args:
        uri: where it lies.
        schema: its columns, `scan_generation` first; stored by Delta as it stands. None for
            reading only: the columns are then those that a generation was written with.
        location: path below the lake's root, which receipts name; None for the last three
            members of the uri. Where it begins with `evidence`, the folders of a local lake are
            closed to other users.
        layout: how its columns lie in files.

    Raises:
        ContractError: Delta would store the schema otherwise.
    """

    configuration: ClassVar[Mapping[str, str]] = CONFIGURATION

    def __init__(
        self,
        uri: str,
        schema: pa.Schema | None = None,
        *,
        location: str | None = None,
        layout: Layout = Layout(),  # noqa: B008  # a frozen value
    ) -> None:
        super().__init__(uri, schema, location=location)
        self._layout = layout

    def open_or_create(self) -> DeltaTable:
        """Return a fresh handle of a table that exists from now on.

        Raises:
            ConfigurationError: the folders of evidence cannot be made private.
            EvidenceError: another tool changed how the table must be read.
            RetryError: the lake did not take the new table.
        """
        if self.location.startswith("evidence/") and "://" not in self.uri:
            make_private(self.uri, levels=LOCATION_MEMBERS)
        if (handle := self.open_if_there()) is not None:
            return handle
        try:
            DeltaTable.create(
                self.uri,
                self.schema,
                partition_by=[GENERATION],
                configuration=dict(self.configuration),
            )
        except (DeltaError, OSError) as error:
            # Of two first writers one is refused, in several ways; the table is there then.
            if (handle := self.open_if_there()) is not None:
                return handle
            raise RetryError(f"{self.location}: cannot be created: {error}") from error
        return self.open()

    def append(
        self,
        rows: Rows,
        *,
        generation: str,
        app_id: str | None = None,
        version: int | None = None,
        metadata: Mapping[str, str] | None = None,
        at: DeltaTable | None = None,
    ) -> int:
        """Add rows to a generation in one commit and return their number; none commits nothing.

        Args:
            rows: with the table's schema, all of this generation.
            generation: whose rows.
            app_id: application whose transaction fences this write; None for the generation's own.
            version: the transaction's, greater than the last one.
            metadata: told in the commit.
            at: the handle that the caller looked through. The write is refused if a writer of the
                same app_id came after it, and is tried once; for None on fresh handles.

        Raises:
            ContractError: rows of another schema or generation; a value its column does not allow.
            WriterConflictError: another writer was faster, or this version was committed before;
                no row and no file is left of this write.
            RetryError: the lake did not take the commit.
        """
        if (app_id is None) != (version is None):
            raise ContractError("found one of app_id and version; expected both or neither")
        handle = at or self.open_or_create()
        fence = None if app_id is None or version is None else (app_id, version)
        seen = fence and handle.transaction_version(fence[0])
        if fence and seen is not None and seen >= fence[1]:
            raise WriterConflictError(
                f"{self.location} {generation}: found version {seen} of {fence[0]} committed; "
                f"expected to commit {fence[1]}: these rows, or another writer's, are there"
            )
        files = self._write(rows, generation=generation, at=handle)
        if files:
            write = Write(
                files=files,
                mode="append",
                generation=generation,
                schema=_unchanged,
                begun=seen,
                guard=lambda now: fence and now.transaction_version(fence[0]),
                transaction=fence,
                metadata=metadata,
                attempts=ATTEMPTS if at is None else 1,
            )
            commit(write, folder=self.folder, at=handle, reopen=self.open)
        return sum(file.rows for file in files)

    def replace_generation(
        self,
        rows: Rows,
        *,
        generation: str,
        evolve: bool = False,
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Put rows in the place of a generation's, in one commit, and return their number.

        Other generations keep their files. No rows is an answer too (a collection may be empty):
        it is committed as a replacement by nothing, and the generation then has no files.

        Args:
            rows: with the schema this table was opened with, all of this generation.
            generation: whose rows.
            evolve: whether this generation may have other columns than earlier ones. The table
                then shows what `merged_schema` says; a reader without a schema gets each
                generation's own.
            metadata: told in the commit.

        Raises:
            ContractError: rows of another schema or generation; a value its column does not allow.
            WriterConflictError: another writer changed this generation meanwhile.
            RetryError: the lake did not take the commit.
        """
        schema = self.schema
        return self._replace(
            rows,
            generation=generation,
            at=self.open_or_create(),
            shown=(lambda stored: merged_schema(schema, stored=stored)) if evolve else None,
            metadata=metadata,
        )

    def replace_all(
        self,
        rows: Rows,
        *,
        generation: str,
        metadata: Mapping[str, str] | None = None,
        at: DeltaTable | None = None,
        announce: Callable[[Sequence[NewFile]], None] = lambda _: None,
    ) -> int:
        """Put one generation in the place of the whole table, its schema included.

        For a table whose readers know nothing of generations, and which is written in no other
        way; raises as `replace_generation`.

        Args:
            rows: with the schema this table was opened with, all of this generation.
            generation: whose rows.
            metadata: told in the commit.
            at: the handle that the rows were made through, where they rest on what was there: what
                came after it is not replaced. A fresh one for None.
            announce: told of the new files before the commit that makes them count.
        """
        schema = self.schema
        return self._replace(
            rows,
            generation=generation,
            at=at or self.open_or_create(),
            shown=lambda _: schema,
            metadata=metadata,
            whole=True,
            announce=announce,
        )

    def compact(self, generation: str) -> bool:
        """Rewrite a generation's small files into few, rows in the same order; before sealing only.

        Returns:
            Whether there was anything to do: at least two files under half of `file_bytes`.

        Raises:
            TamperedError: a file is not what the table's log says.
            WriterConflictError: another writer changed this generation meanwhile.
        """
        files = self.files(generation)
        if sum(file.size < self._layout.file_bytes // 2 for file in files) < 2:
            return False
        self.rewrite(lambda batch: batch, generation=generation)
        return True

    def rewrite(
        self,
        change: Callable[[pa.RecordBatch], pa.RecordBatch | None],
        *,
        generation: str,
        announce: Callable[[Sequence[NewFile]], None] = lambda _: None,
    ) -> None:
        """Put changed rows in the place of a generation's own, in the same order and columns.

        Args:
            change: gives a batch as it should be; None for none of its rows.
            generation: whose rows; there are some.
            announce: told of the new files before the commit that makes them count.

        Raises:
            TamperedError: a file is not what the table's log says.
            WriterConflictError: another writer changed this generation meanwhile.
        """
        handle = self.open()
        first = self.files(generation, at=handle)[0]
        schema = file_schema(first, folder=self.folder)
        own = Table(self.uri, schema, location=self.location, layout=self._layout)
        changed = (change(batch) for batch in own.batches(generation, at=handle))
        rows = pa.RecordBatchReader.from_batches(
            schema, (each for each in changed if each is not None and each.num_rows)
        )
        own._replace(rows, generation=generation, at=handle, shown=_unchanged, announce=announce)

    def _replace(
        self,
        rows: Rows,
        *,
        generation: str,
        at: DeltaTable,
        shown: Callable[[pa.Schema], pa.Schema] | None = None,
        metadata: Mapping[str, str] | None = None,
        whole: bool = False,
        announce: Callable[[Sequence[NewFile]], None] = lambda _: None,
    ) -> int:
        def rests_on(now: DeltaTable) -> object:
            return now.version() if whole else self.files(generation, at=now)

        files = self._write(rows, generation=generation, at=at, strict=shown is None)
        announce(files)
        write = Write(
            files=files,
            mode="overwrite",
            generation=generation,
            whole=whole,
            schema=shown or _unchanged,
            begun=rests_on(at),
            guard=rests_on,
            metadata=metadata,
        )
        commit(write, folder=self.folder, at=at, reopen=self.open)
        return sum(file.rows for file in files)

    def _write(
        self, rows: Rows, *, generation: str, at: DeltaTable, strict: bool = True
    ) -> tuple[NewFile, ...]:
        schema = self.schema
        check_generation(generation)
        check_rows_schema(rows.schema, expected=schema, where=f"{self.location}, rows")
        if strict:
            stored = stored_schema(at)
            check_rows_schema(stored, expected=schema, where=f"{self.location}, as stored")
        return write_files(
            of_generation(rows, schema=schema, generation=generation, where=self.location),
            folder=self.folder,
            prefix=f"{GENERATION}={generation}/part-{at.version() + 1:020d}-{uuid4()}",
            schema=schema.remove(0),
            layout=self._layout,
        )


def open_table(
    lake: Lake,
    zone: Zone,
    scan: str,
    name: str,
    schema: pa.Schema | None = None,
    *,
    layout: Layout = Layout(),  # noqa: B008  # a frozen value
) -> Table:
    """Return a scan's table; nothing is looked at or created yet."""
    uri = lake.table_uri(zone, scan, name)
    return Table(uri, schema, location=f"{zone}/{scan}/{name}", layout=layout)


def _unchanged(stored: pa.Schema) -> pa.Schema:
    return stored
