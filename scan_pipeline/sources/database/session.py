"""Connections to a database: one transaction for a whole walk, or one for each page."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import psycopg
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from scan_pipeline.core.errors import ContractError, ScanPipelineError, SnapshotExpiredError
from scan_pipeline.sources.database.errors import told
from scan_pipeline.sources.database.facts import SqlSource
from scan_pipeline.sources.database.types import load_as_json, read_as_json

SETTINGS: Final[Mapping[str, str]] = {
    "timezone": "UTC",
    "datestyle": "ISO,YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "client_encoding": "UTF8",
    "default_transaction_read_only": "on",
    # A walk waits for its own commits between two pages; the server must not take that for sleep.
    "idle_in_transaction_session_timeout": "0",
}
"""Settings of our PostgreSQL sessions, so that equal values are equal texts everywhere."""


class Session:
    """Reads a database; under a snapshot, from one transaction that lives as long as this object.

    Attributes:
        pin: what the transaction is called; None where each page has its own.

    Args:
        facts: what is declared of the table.
        environ: where the password is looked up when connecting.
        clock: time in UTC.
        timeout: seconds without an answer after which a connection counts as lost.
    """

    def __init__(
        self,
        facts: SqlSource,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], datetime],
        timeout: float,
    ) -> None:
        self._facts, self._environ, self._clock = facts, environ, clock
        self._timeout = timeout
        self._engine = self._new_engine()
        self._held: sa.Connection | None = None
        self.pin: str | None = None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Lend a connection: that of the walk's transaction, or one with a transaction of its own.

        Raises:
            TransientSourceError: there was no answer; asking again may help.
            SnapshotExpiredError: the walk's transaction is gone.
            AccessRefusedError: the database refused our credentials or rights.
            ProtocolError: it rejected a query.
        """
        if self.pin is not None and self._held is None:
            raise SnapshotExpiredError(
                f"{self.pin} ended with the connection that held it; a new generation must begin"
            )
        try:
            with told(pinned=self.pin is not None):
                if self._held is None:
                    self._held = self._begun()
                yield self._held
                if self.pin is None:
                    self._end()
        except ScanPipelineError:
            self._drop()
            raise

    def beside(self) -> sa.Connection:
        """Open a connection that sees the walk's snapshot too; PostgreSQL's alone.

        Raises:
            As `reading`.
        """
        with told(pinned=True):
            connection = self._engine.connect()
            try:
                self._repeatable(connection)
                # The name is of the server's making: hexadecimal digits and hyphens.
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{self.pin}'")
            except BaseException:
                connection.close()
                raise
        return connection

    def close(self) -> None:
        """End the transaction and close the connection."""
        self._drop()
        self._engine.dispose()

    def _begun(self) -> sa.Connection:
        connection = self._engine.connect()
        try:
            if self._facts.dialect == "sqlite":
                self._begin_sqlite(connection)
            else:
                self._repeatable(connection)
                if self._facts.snapshot is not None:
                    self.pin = connection.scalar(sa.text("SELECT pg_catalog.pg_export_snapshot()"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_sqlite(self, connection: sa.Connection) -> None:
        """Begin a transaction, which sees from its first query on what was committed before."""
        if self._facts.snapshot is not None:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            if mode != "wal":
                raise ContractError(
                    f"found journal mode {mode} of {self._facts.database}, in which a walk in one "
                    "transaction keeps every writer waiting; expected PRAGMA journal_mode=WAL, or "
                    "snapshot: null"
                )
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        if self._facts.snapshot is not None:
            begun = self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
            self.pin = f"transaction begun {begun}"

    def _repeatable(self, connection: sa.Connection) -> None:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def _end(self) -> None:
        """End one page's transaction and keep the connection."""
        if self._held is None:
            return
        if self._facts.dialect == "sqlite":
            self._drop()
        else:
            self._held.rollback()

    def _drop(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.invalidate()
            held.close()

    def _new_engine(self) -> sa.Engine:
        facts = self._facts
        if facts.dialect == "sqlite":
            return sa.create_engine(
                "sqlite://", creator=self._open_sqlite, poolclass=NullPool, hide_parameters=True
            )
        engine = sa.create_engine(
            sa.make_url(facts.database).set(drivername="postgresql+psycopg", username=facts.user),
            poolclass=NullPool,
            hide_parameters=True,  # keys of rows: no error may tell them
            use_native_hstore=False,
            connect_args={
                "connect_timeout": max(1, int(self._timeout)),
                "application_name": "scan_pipeline",
                "options": " ".join(f"-c {name}={value}" for name, value in SETTINGS.items()),
            },
        )
        event.listen(engine, "do_connect", self._with_password)
        event.listen(engine, "connect", _as_json)
        return engine

    def _with_password(self, _dialect: Any, _record: Any, _args: Any, given: Any) -> None:
        """Look the password up when connecting, and leave it nowhere else."""
        if self._facts.password is not None:
            given["password"] = self._facts.password.resolve(self._environ)

    def _open_sqlite(self) -> sqlite3.Connection:
        path = sa.make_url(self._facts.database).database or ""
        connection = sqlite3.connect(
            f"file:{quote(path)}?mode=ro",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        read_as_json(connection)
        return connection


def _as_json(connection: "psycopg.Connection[Any]", _record: Any) -> None:
    load_as_json(connection)
