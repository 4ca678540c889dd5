"""An unmodified docker-registry of Debian's package in a process of its own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

INSTALL: Final = "apt-get install docker-registry"
STARTS_WITHIN_S: Final = 60
"""How long a registry is given to listen; past it the test fails, never passes."""

_CONFIG: Final = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


def need_docker_registry(*, environ: Mapping[str, str]) -> str:
    """Return the program; skip where it is missing on a laptop, fail where it is in CI."""
    program = shutil.which("docker-registry")
    if program is not None:
        return program
    told = f"docker-registry is not installed; install it: {INSTALL}"
    if environ.get("CI", "").lower() == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


def repository_names(count: int) -> list[str]:
    """Return names as a company would have them, some of which need escaping in a link."""
    return [f"team-{number % 37}/app_{number}" for number in range(1, count + 1)]


def write_repositories(root: Path, names: Iterable[str]) -> None:
    """Lay repositories out as the registry's own storage driver does."""
    for name in names:
        layers = root / "docker" / "registry" / "v2" / "repositories" / name / "_layers"
        layers.mkdir(parents=True)


@contextmanager
def serving(program: str, root: Path) -> Iterator[str]:
    """Serve a storage folder for the length of a `with` block; yields the base URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = root.with_suffix(".yml")
    config.write_text(_CONFIG.format(root=root, port=port), encoding="utf-8")
    told = root.with_suffix(".log")
    with told.open("wb") as log:
        server = subprocess.Popen(
            [program, "serve", str(config)],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        _wait_for(port, server, told)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(port: int, server: "subprocess.Popen[bytes]", told: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    said = told.read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"no docker-registry within {STARTS_WITHIN_S} s; it said: {said}")
