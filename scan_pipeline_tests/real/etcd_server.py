"""A single etcd of Debian's etcd-server in a process of its own, on ports the system picks."""

import json
import shutil
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

INSTALL: Final = "apt-get install etcd-server"

STARTS_WITHIN_S: Final = 60
"""How long an etcd is given to answer; past it the test fails, never passes."""

MOST_OPERATIONS: Final = 128
"""Operations of one transaction, etcd's own default of --max-txn-ops."""


@dataclass(frozen=True)
class EtcdServer:
    """A running etcd, and what a second client does to it."""

    url: str
    client: httpx2.Client

    def call(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.client.post(f"{self.url}{path}", content=json.dumps(body))
        answer.raise_for_status()
        return answer.json()

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        waiting = [{"requestPut": {"key": _b64(k), "value": _b64(v)}} for k, v in pairs]
        for start in range(0, len(waiting), MOST_OPERATIONS):
            self.call("/v3/kv/txn", {"success": waiting[start : start + MOST_OPERATIONS]})

    def delete(self, key: bytes) -> None:
        assert self.call("/v3/kv/deleterange", {"key": _b64(key)})["deleted"] == "1"

    def revision(self) -> int:
        return int(self.call("/v3/kv/range", {"key": _b64(b"?")})["header"]["revision"])

    def compact(self) -> None:
        """Forget everything before the present revision."""
        self.call("/v3/kv/compaction", {"revision": str(self.revision()), "physical": True})


def need_etcd(*, environ: Mapping[str, str]) -> str:
    """Return the program; skip where it is missing on a laptop, fail where it is in CI."""
    program = shutil.which("etcd")
    if program is not None:
        return program
    told = f"etcd is not installed; install it: {INSTALL}"
    if environ.get("CI", "").lower() == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


@contextmanager
def serving_etcd(folder: Path, *, environ: Mapping[str, str]) -> Iterator[EtcdServer]:
    """Serve an empty etcd from a folder for the length of a `with` block."""
    program = need_etcd(environ=environ)
    client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    options = {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    log = folder / "etcd.log"
    with log.open("wb") as told:
        server = subprocess.Popen(
            [program, *(f"--{name}={value}" for name, value in options.items())],
            stdout=told,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            # Debian builds for architectures that etcd does not call supported.
            env={**environ, "ETCD_UNSUPPORTED_ARCH": "arm64"},
        )
    try:
        with httpx2.Client(timeout=30) as caller:
            _wait(server, client, log)
            yield EtcdServer(url=client, client=caller)
    finally:
        server.terminate()
        server.wait(30)


def _wait(server: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx2.get(f"{url}/health", timeout=5).json().get("health") == "true":
                return
        except (httpx2.HTTPError, ValueError):
            pass
        time.sleep(0.05)
    raise RuntimeError(f"no etcd within {STARTS_WITHIN_S} s; it said: {log.read_text()[-2000:]}")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _b64(raw: bytes) -> str:
    return b64encode(raw).decode("ascii")
