"""Handles and cursors: opaque names of a question that was opened, kept on our side.

A name is random and says nothing. What it stands for lies in the ledger, bound to principal,
tenant, query, order, view, generation and receipt; every call compares them again.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.agents.failures import LedgerError
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import record

Verdict: TypeAlias = Literal["match", "no_match", "unsure"]
"""What a reader judged of one record; `unsure` is no judgement."""

BEFORE_ALL: Final = (0, -1)
"""The place before every row of a walk."""

LOCKED_S: Final = 30
"""How long one call waits for another that holds the ledger, in seconds."""

_NAME_BYTES: Final = 16
_SCHEMA: Final = """
create table if not exists handles (
  name text primary key, principal text not null, tenant text, scan text not null,
  view text not null, view_digest text not null, generation text not null,
  receipt_id text not null, query text not null, query_digest text not null,
  matching integer not null, population integer not null, opened_at real not null,
  expires_at real not null) strict;
create table if not exists cursors (
  name text primary key, handle text not null, page integer not null, first_row integer not null,
  after_page integer not null, after_position integer not null) strict;
create table if not exists pages (
  handle text not null, first_row integer not null, last_row integer not null,
  bytes integer not null) strict;
create table if not exists verdicts (
  handle text not null, row integer not null, verdict text not null,
  primary key (handle, row)) strict;
create table if not exists runs (
  principal text primary key, begun_at real not null, pages integer not null,
  bytes integer not null) strict;
create table if not exists refused (
  principal text not null, call text not null, told text not null,
  primary key (principal, call)) strict;
create table if not exists read_in_full (
  handle text not null, row integer not null, version text not null,
  primary key (handle, row)) strict;
"""


@record
class Handle:
    """One opened question.

    Attributes:
        name: the opaque name.
        principal: who opened it.
        tenant: the principal's tenant then.
        scan: of which scan.
        view: through which view.
        view_digest: what that view showed then.
        generation: the generation it stands on.
        receipt_id: that generation's receipt.
        query: the normal query as JSON.
        query_digest: its digest.
        matching: rows that match, exactly.
        population: rows in the view.
        opened_at: seconds since the epoch.
        expires_at: the same.
    """

    name: str
    principal: str
    tenant: str | None
    scan: str
    view: str
    view_digest: str
    generation: str
    receipt_id: str
    query: str
    query_digest: str
    matching: int
    population: int
    opened_at: float
    expires_at: float


@record
class Cursor:
    """Where the next page of a handle begins.

    Attributes:
        name: the opaque name.
        handle: the handle's name.
        page: number of the page, from 1.
        first_row: number of its first row among those that match, from 1.
        after_page: page of the walk on which the row before it came.
        after_position: that row's place on it.
    """

    name: str
    handle: str
    page: int
    first_row: int
    after_page: int
    after_position: int


@record
class Spent:
    """What a principal has used of its run.

    Attributes:
        begun_at: seconds since the epoch.
        pages: pages read.
        bytes: bytes of all answers.
    """

    begun_at: float
    pages: int
    bytes: int


class Ledger:
    """Handles, cursors, what was read and judged, and what was spent; one SQLite file, 0600."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            with self._opened() as database:
                database.executescript(_SCHEMA)
        except (OSError, LedgerError) as error:
            raise ConfigurationError(
                f"cannot keep the readers' ledger at {path}: {error}; expected a folder that this "
                "user may write"
            ) from error

    def add_handle(self, handle: Handle) -> None:
        """Keep a handle."""
        self._insert("handles", handle)

    def handle(self, name: str) -> Handle | None:
        """Return a handle, or None."""
        return self._one(Handle, "handles", name)

    def add_cursor(self, cursor: Cursor) -> None:
        """Keep a cursor."""
        self._insert("cursors", cursor)

    def cursor(self, name: str) -> Cursor | None:
        """Return a cursor, or None."""
        return self._one(Cursor, "cursors", name)

    def add_page(self, handle: str, *, shown: Sequence[int], size: int) -> None:
        """Note the rows that a page showed, and its bytes."""
        runs = list(_runs(shown))
        with self._opened() as database:
            database.executemany(
                "insert into pages values (?, ?, ?, ?)",
                [(handle, first, last, size) for first, last in runs],
            )

    def unread(self, handle: str, rows: Iterable[int]) -> list[int]:
        """Return those of some rows that were never given under a handle, in a page or in full."""
        with self._opened() as database:
            return [
                row
                for row in sorted(rows)
                if database.execute(
                    "select 1 from pages where handle = ? and ? between first_row and last_row "
                    "union all select 1 from read_in_full where handle = ? and row = ? limit 1",
                    (handle, row, handle, row),
                ).fetchone()
                is None
            ]

    def judge(self, handle: str, verdicts: Sequence[tuple[int, Verdict]]) -> None:
        """Keep what a reader judged; a later verdict of a row replaces the earlier one."""
        with self._opened() as database:
            database.executemany(
                "insert or replace into verdicts values (?, ?, ?)",
                [(handle, row, verdict) for row, verdict in verdicts],
            )

    def judged(self, handle: str) -> dict[Verdict, int]:
        """Return how many rows of a handle were judged as what."""
        with self._opened() as database:
            found = database.execute(
                "select verdict, count(*) from verdicts where handle = ? group by verdict",
                (handle,),
            )
            return dict(found.fetchall())

    def verdict(self, handle: str, *, row: int) -> Verdict | None:
        """Return what one row of a handle was judged as, or None."""
        with self._opened() as database:
            found = database.execute(
                "select verdict from verdicts where handle = ? and row = ?", (handle, row)
            ).fetchone()
            return None if found is None else found[0]

    def note_full_read(self, handle: str, *, row: int, version: str) -> None:
        """Note that a record was read in full, and its version (leaf hash, hex)."""
        with self._opened() as database:
            database.execute(
                "insert or replace into read_in_full values (?, ?, ?)", (handle, row, version)
            )

    def full_read(self, handle: str, *, row: int) -> str | None:
        """Return the version in which a record was read in full, or None."""
        with self._opened() as database:
            found = database.execute(
                "select version from read_in_full where handle = ? and row = ?", (handle, row)
            ).fetchone()
            return None if found is None else str(found[0])

    def spent(self, principal: str, *, now: float, run_seconds: int) -> Spent:
        """Return what a principal used of its run, beginning one where the last is over."""
        with self._alone() as database:
            return _run_of(database, principal, now=now, run_seconds=run_seconds)

    def take(
        self,
        principal: str,
        *,
        pages: int,
        size: int,
        most_pages: int | None,
        most_bytes: int | None,
        now: float,
        run_seconds: int,
    ) -> tuple[Spent, bool]:
        """Take pages and bytes out of a run, if they fit, before the answer that uses them is made.

        Looking and taking are one transaction: two processes cannot both take what is left.

        Returns:
            What was used before, and whether it was taken.
        """
        with self._alone() as database:
            spent = _run_of(database, principal, now=now, run_seconds=run_seconds)
            fits = (most_pages is None or spent.pages + pages <= most_pages) and (
                most_bytes is None or spent.bytes + size <= most_bytes
            )
            if fits:
                _add(database, principal, begun_at=spent.begun_at, pages=pages, size=size)
            return spent, fits

    def give_back(self, principal: str, *, begun_at: float, pages: int, size: int) -> None:
        """Give back what was taken out of a run and not used; nothing where that run is over."""
        with self._alone() as database:
            _add(database, principal, begun_at=begun_at, pages=-pages, size=-size)

    def refuse(self, principal: str, *, call: str, told: str) -> None:
        """Remember a call that was too large, and what its caller was told to change."""
        with self._opened() as database:
            database.execute(
                "insert or replace into refused values (?, ?, ?)", (principal, call, told)
            )

    def refused(self, principal: str, *, call: str) -> str | None:
        """Return what the caller of an equal call was told within this run, or None."""
        with self._opened() as database:
            found = database.execute(
                "select told from refused where principal = ? and call = ?", (principal, call)
            ).fetchone()
            return None if found is None else str(found[0])

    def forget(self, *, before: float) -> None:
        """Drop what belongs to handles that expired before a moment."""
        expired = "(select name from handles where expires_at < ?)"
        with self._opened() as database:
            for table in ("cursors", "pages", "verdicts", "read_in_full"):
                database.execute(f"delete from {table} where handle in {expired}", (before,))
            database.execute("delete from handles where expires_at < ?", (before,))

    def _insert(self, table: str, value: Any) -> None:
        kept = [getattr(value, each.name) for each in fields(value)]
        with self._opened() as database:
            database.execute(f"insert into {table} values ({', '.join('?' * len(kept))})", kept)

    def _one(self, kind: Any, table: str, name: str) -> Any:
        with self._opened() as database:
            found = database.execute(f"select * from {table} where name = ?", (name,)).fetchone()
        names = [each.name for each in fields(kind)]
        return None if found is None else kind(**dict(zip(names, found, strict=True)))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction: calls come from several threads and processes.

        Raises:
            LedgerError: it is locked for long, gone, damaged, or the disk is full.
        """
        try:
            # Not created here: an empty ledger in place of a lost one would begin all budgets anew.
            address = f"{self._path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(address, timeout=LOCKED_S, uri=True)
            with closing(connection) as database, database:
                yield database
        except (sqlite3.Error, OverflowError) as error:
            passing = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            raise LedgerError(f"the readers' ledger: {error}", passing=passing) from error

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """Open the file for a transaction that reads and then writes what depends on it."""
        with self._opened() as database:
            database.execute("begin immediate")
            yield database


def _run_of(database: sqlite3.Connection, principal: str, *, now: float, run_seconds: int) -> Spent:
    """Return what is used of a principal's run, beginning one where the last is over.

    A clock that was set back ends no run, and does not lengthen it either: it begins anew there,
    with what is used.
    """
    found = database.execute(
        "select begun_at, pages, bytes from runs where principal = ?", (principal,)
    ).fetchone()
    if found is not None and now < found[0]:
        database.execute("update runs set begun_at = ? where principal = ?", (now, principal))
        return Spent(begun_at=now, pages=found[1], bytes=found[2])
    if found is not None and now < found[0] + run_seconds:
        return Spent(begun_at=found[0], pages=found[1], bytes=found[2])
    database.execute("insert or replace into runs values (?, ?, 0, 0)", (principal, now))
    database.execute("delete from refused where principal = ?", (principal,))
    return Spent(begun_at=now, pages=0, bytes=0)


def _add(
    database: sqlite3.Connection, principal: str, *, begun_at: float, pages: int, size: int
) -> None:
    database.execute(
        "update runs set pages = pages + ?, bytes = bytes + ? where principal = ? and begun_at = ?",
        (pages, size, principal, begun_at),
    )


def _runs(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of numbers without a gap."""
    first = None
    nexts = [*rows[1:], None] if rows else []
    for here, following in zip(rows, nexts, strict=True):
        first = here if first is None else first
        if following != here + 1:
            yield first, here
            first = None


def new_name(prefix: str) -> str:
    """Return a name that nobody can guess, e.g. `rh_kq3...`."""
    return f"{prefix}_{secrets.token_urlsafe(_NAME_BYTES)}"


def as_text(value: Any) -> str:
    """Return plain JSON values as the ledger keeps them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
