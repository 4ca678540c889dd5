"""One SQLite file that its owner alone may read: how it is made, and opened for one transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeVar

from scan_pipeline.agents.failures import LedgerError
from scan_pipeline.core.errors import ConfigurationError

T = TypeVar("T")

LOCKED_S: Final = 30
"""How long one call waits for another that holds the file, in seconds."""


class PrivateDatabase:
    """A file, 0600, in a folder, 0700; calls come from several threads and processes.

    Args:
        path: the file; made where it is not there.
        schema: its tables, made where they are not there.
        what: what it keeps, for messages.
        durable: whether what is written is on the disk when a transaction ends, so that it
            outlives the machine's fall and not only the process's.

    Raises:
        ConfigurationError: it cannot be made.
    """

    def __init__(self, path: Path, *, schema: str, what: str, durable: bool = False) -> None:
        self._path, self._what, self._durable = path, what, durable
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            with self.opened() as database:
                database.executescript(schema)
        except (OSError, LedgerError) as error:
            raise ConfigurationError(
                f"cannot keep {what} at {path}: {error}; expected a folder that this user may write"
            ) from error

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction.

        Raises:
            LedgerError: it is locked for long, gone, damaged, or the disk is full; its cause says
                what SQLite said.
        """
        try:
            # Not created here: an empty file in place of a lost one would begin everything anew.
            address = f"{self._path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(address, timeout=LOCKED_S, uri=True)
            with closing(connection) as database, database:
                if self._durable:
                    database.execute("pragma synchronous = full")
                yield database
        except (sqlite3.Error, OverflowError) as error:
            passing = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            raise LedgerError(f"{self._what}: {error}", passing=passing) from error

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """Open the file for a transaction that reads and then writes what depends on it."""
        with self.opened() as database:
            database.execute("begin immediate")
            yield database

    def insert(self, table: str, value: Any) -> None:
        """Add a value, whose fields are the table's columns."""
        names = [each.name for each in fields(value)]
        marks = ", ".join("?" * len(names))
        with self.opened() as database:
            database.execute(
                f"insert into {table} ({', '.join(names)}) values ({marks})",
                [getattr(value, name) for name in names],
            )

    def select(self, kind: type[T], table: str, how: str, *values: Any) -> list[T]:
        """Return the rows of a table as values.

        Args:
            kind: whose fields are the table's columns.
            table: the table.
            how: what follows in the statement, e.g. `where name = ?`.
            values: of its marks.
        """
        names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a record
        with self.opened() as database:
            rows: list[Any] = database.execute(
                f"select {', '.join(names)} from {table} {how}", values
            ).fetchall()
        return [kind(**dict(zip(names, row, strict=True))) for row in rows]
