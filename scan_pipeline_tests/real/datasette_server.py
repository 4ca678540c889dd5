"""An unmodified Datasette in a process of its own, over a table of airports."""

import importlib.util
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

INSTALL: Final = "pip install 'scan-pipeline[test]'"

STARTS_WITHIN_S: Final = 60
"""How long a Datasette is given to say where it listens; past it the test fails, never passes."""

_TABLE: Final = """
    create table airports (
        icao text primary key, iata text, name text, city text, subd text, country text,
        elevation real, lat real, lon real, tz text, lid text
    )
"""
_INSERT: Final = """
    insert into airports values
    (:icao, :iata, :name, :city, :subd, :country, :elevation, :lat, :lon, :tz, :lid)
"""
_LISTENS: Final = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


def need(module: str, *, environ: Mapping[str, str]) -> None:
    """Skip where a test's package is missing on a laptop; fail where it is missing in CI."""
    if importlib.util.find_spec(module) is not None:
        return
    told = f"{module} is not installed; install the test extra: {INSTALL}"
    if environ.get("CI", "").lower() == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


def write_airports(database: Path, airports: Iterable[Mapping[str, Any]]) -> None:
    """Make the database, or add to the one that is there; committed on return."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        there = connection.execute("select count(*) from sqlite_master").fetchone()[0]
        if not there:
            connection.execute(_TABLE)
        connection.executemany(_INSERT, airports)


def delete_airports(database: Path, keys: Iterable[str]) -> None:
    """Delete rows by key from a connection of its own; committed on return."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.executemany("delete from airports where icao = ?", [(key,) for key in keys])


@contextmanager
def serving(database: Path, *settings: str) -> Iterator[str]:
    """Serve a database for the length of a `with` block, on a port that the system picks.

    Args:
        database: the file; served mutable, so that other connections may write.
        settings: name and value in turn, as `datasette serve --setting` takes them.

    Yields:
        The base URL.
    """
    told = database.with_suffix(".log")
    pairs = zip(settings[::2], settings[1::2], strict=True)
    options = [word for pair in pairs for word in ("--setting", *pair)]
    with told.open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "datasette", str(database), "-p", "0", *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield _base_url(server, told)
    finally:
        server.terminate()
        server.wait(30)


def _base_url(server: "subprocess.Popen[bytes]", told: Path) -> str:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        said = told.read_text(encoding="utf-8")
        if listens := _LISTENS.search(said):
            return listens[1]
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"no Datasette within {STARTS_WITHIN_S} s; it said: {said}")
