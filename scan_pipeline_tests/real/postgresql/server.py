"""A PostgreSQL cluster of Debian's postgresql in processes of its own, made for one test folder."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
import pytest

INSTALL: Final = "apt-get install postgresql"

DEBIAN: Final = Path("/usr/lib/postgresql")
"""Where Debian keeps each major version's programs, which are not on the path."""

OWNER: Final = "postgres"
"""PostgreSQL refuses to run as root; Debian's package makes this user."""

SETTINGS: Final = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "jit=off")


@dataclass(frozen=True)
class PostgresServer:
    """A running cluster, and what a second client does to it.

    Attributes:
        port: where it listens on 127.0.0.1.
    """

    port: int

    def database(self, name: str = "postgres") -> str:
        """The address as a scan file writes it."""
        return f"postgresql://127.0.0.1:{self.port}/{name}"

    def connect(self, *, user: str = OWNER) -> "psycopg.Connection[Any]":
        """Connect as another client; each statement is committed as it ends."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, dbname="postgres", autocommit=True
        )

    def run(self, *statements: LiteralString) -> None:
        """Run statements as the owner, each committed as it ends."""
        with self.connect() as connection:
            for each in statements:
                connection.execute(each)


def need_postgresql(*, environ: Mapping[str, str]) -> Path:
    """Return the folder of the programs; skip without them on a laptop, fail in CI."""
    on_path = shutil.which("initdb")
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions or on_path:
        return (versions[-1] if versions else Path(on_path or "").resolve()).parent
    told = f"PostgreSQL is not installed; install it: {INSTALL}"
    if environ.get("CI", "").lower() == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


@contextmanager
def serving_postgresql(*, environ: Mapping[str, str]) -> Iterator[PostgresServer]:
    """Serve a fresh cluster for the length of a `with` block, on a port that the system picks."""
    programs = need_postgresql(environ=environ)
    # Not below pytest's own folder, which no other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="scan-pipeline-pg-"))
    port = _free_port()
    options = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}"]
    settings = " ".join(f"-c {each}" for each in (*options, *SETTINGS))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, OWNER, OWNER)
        data, log = str(folder / "data"), str(folder / "log")
        init = ["-D", data, "-A", "trust", "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8"]
        _call([programs / "initdb", "--no-sync", *init])
        _call([programs / "pg_ctl", "-D", data, "-l", log, "-o", settings, "-w", "start"])
        try:
            yield PostgresServer(port=port)
        finally:
            _call([programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder)


def _call(command: list[str | Path]) -> None:
    as_owner = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
    # The server inherits the output of pg_ctl: a pipe would never end.
    with tempfile.TemporaryFile() as told:
        done = subprocess.run(
            [*as_owner, *map(str, command)],
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        told.seek(0)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {told.read().decode()[-2000:]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
