"""Runs: what each principal used since its run began, and the calls that were too large in it."""

import sqlite3
from typing import Final

from scan_pipeline.agents.private_database import PrivateDatabase
from scan_pipeline.core.value import record

SCHEMA: Final = """
create table if not exists runs (
  principal text primary key, begun_at real not null, pages integer not null,
  bytes integer not null) strict;
create table if not exists refused (
  principal text not null, call text not null, told text not null,
  primary key (principal, call)) strict;
"""


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


class Runs:
    """The runs of all principals.

    Args:
        database: where they are kept, with the tables of `SCHEMA`.
    """

    def __init__(self, database: PrivateDatabase) -> None:
        self._database = database

    def spent(self, principal: str, *, now: float, run_seconds: int) -> Spent:
        """Return what a principal used of its run, beginning one where the last is over."""
        with self._database.alone() as database:
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
        with self._database.alone() as database:
            spent = _run_of(database, principal, now=now, run_seconds=run_seconds)
            fits = (most_pages is None or spent.pages + pages <= most_pages) and (
                most_bytes is None or spent.bytes + size <= most_bytes
            )
            if fits:
                _add(database, principal, begun_at=spent.begun_at, pages=pages, size=size)
            return spent, fits

    def give_back(self, principal: str, *, begun_at: float, pages: int, size: int) -> None:
        """Give back what was taken out of a run and not used; nothing where that run is over."""
        with self._database.alone() as database:
            _add(database, principal, begun_at=begun_at, pages=-pages, size=-size)

    def refuse(self, principal: str, *, call: str, told: str) -> None:
        """Remember a call that was too large, and what its caller was told to change."""
        with self._database.opened() as database:
            database.execute(
                "insert or replace into refused values (?, ?, ?)", (principal, call, told)
            )

    def refused(self, principal: str, *, call: str) -> str | None:
        """Return what the caller of an equal call was told within this run, or None."""
        with self._database.opened() as database:
            found = database.execute(
                "select told from refused where principal = ? and call = ?", (principal, call)
            ).fetchone()
            return None if found is None else str(found[0])


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
