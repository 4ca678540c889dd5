"""Handles and cursors: opaque names of a question that was opened, kept on our side.

A name is random and says nothing. What it stands for lies in the ledger, bound to principal,
tenant, query, order, view, generation and receipt; every call compares them again.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.agents.private_database import PrivateDatabase
from scan_pipeline.agents.runs import SCHEMA as RUNS
from scan_pipeline.agents.runs import Runs
from scan_pipeline.core.value import record

Verdict: TypeAlias = Literal["match", "no_match", "unsure"]
"""What a reader judged of one record; `unsure` is no judgement."""

BEFORE_ALL: Final = (0, -1)
"""The place before every row of a walk."""

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
create table if not exists read_in_full (
  handle text not null, row integer not null, version text not null,
  primary key (handle, row)) strict;
create table if not exists conclusions (
  handle text not null, facts text not null, claim text not null, at real not null,
  primary key (handle, facts)) strict;
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


class Ledger:
    """Handles, cursors, what was read, judged and concluded, and runs; one private file.

    Args:
        path: the file; made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._database = PrivateDatabase(path, schema=_SCHEMA + RUNS, what="the readers' ledger")
        self.runs = Runs(self._database)

    def add_handle(self, handle: Handle) -> None:
        """Keep a handle."""
        self._database.insert("handles", handle)

    def handle(self, name: str) -> Handle | None:
        """Return a handle, or None."""
        return next(iter(self._database.select(Handle, "handles", "where name = ?", name)), None)

    def add_cursor(self, cursor: Cursor) -> None:
        """Keep a cursor."""
        self._database.insert("cursors", cursor)

    def cursor(self, name: str) -> Cursor | None:
        """Return a cursor, or None."""
        return next(iter(self._database.select(Cursor, "cursors", "where name = ?", name)), None)

    def add_page(self, handle: str, *, shown: Sequence[int], size: int) -> None:
        """Note the rows that a page showed, and its bytes."""
        runs = list(_runs(shown))
        with self._database.opened() as database:
            database.executemany(
                "insert into pages values (?, ?, ?, ?)",
                [(handle, first, last, size) for first, last in runs],
            )

    def unread(self, handle: str, rows: Iterable[int]) -> list[int]:
        """Return those of some rows that were never given under a handle, in a page or in full."""
        with self._database.opened() as database:
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
        with self._database.opened() as database:
            database.executemany(
                "insert or replace into verdicts values (?, ?, ?)",
                [(handle, row, verdict) for row, verdict in verdicts],
            )

    def judged(self, handle: str) -> dict[Verdict, int]:
        """Return how many rows of a handle were judged as what."""
        with self._database.opened() as database:
            found = database.execute(
                "select verdict, count(*) from verdicts where handle = ? group by verdict",
                (handle,),
            )
            return dict(found.fetchall())

    def verdict(self, handle: str, *, row: int) -> Verdict | None:
        """Return what one row of a handle was judged as, or None."""
        with self._database.opened() as database:
            found = database.execute(
                "select verdict from verdicts where handle = ? and row = ?", (handle, row)
            ).fetchone()
            return None if found is None else found[0]

    def note_full_read(self, handle: str, *, row: int, version: str) -> None:
        """Note that a record was read in full, and its version (leaf hash, hex)."""
        with self._database.opened() as database:
            database.execute(
                "insert or replace into read_in_full values (?, ?, ?)", (handle, row, version)
            )

    def full_read(self, handle: str, *, row: int) -> str | None:
        """Return the version in which a record was read in full, or None."""
        with self._database.opened() as database:
            found = database.execute(
                "select version from read_in_full where handle = ? and row = ?", (handle, row)
            ).fetchone()
            return None if found is None else str(found[0])

    def note_conclusion(self, handle: str, *, facts: str, claim: str, at: float) -> None:
        """Note the claim that was signed of some facts under a handle.

        Args:
            handle: the handle.
            facts: digest of what the claim says, without the moment.
            claim: its id.
            at: that moment, in seconds since the epoch.
        """
        with self._database.opened() as database:
            database.execute(
                "insert or replace into conclusions values (?, ?, ?, ?)", (handle, facts, claim, at)
            )

    def conclusion(self, handle: str, *, facts: str, since: float) -> str | None:
        """Return the id of the claim that was signed of these facts since a moment, or None."""
        with self._database.opened() as database:
            found = database.execute(
                "select claim from conclusions where handle = ? and facts = ? and at >= ?",
                (handle, facts, since),
            ).fetchone()
            return None if found is None else str(found[0])

    def forget(self, *, before: float) -> None:
        """Drop what belongs to handles that expired before a moment."""
        expired = "(select name from handles where expires_at < ?)"
        with self._database.opened() as database:
            for table in ("cursors", "pages", "verdicts", "read_in_full", "conclusions"):
                database.execute(f"delete from {table} where handle in {expired}", (before,))
            database.execute("delete from handles where expires_at < ?", (before,))


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
