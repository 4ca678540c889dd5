"""Real data and a real server; see airports.yaml for the facts they are walked by."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from scan_pipeline.core.contract import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.real.datasette_server import need, serving, write_airports

FACTS = Path(__file__).with_name("airports.yaml")

Airports = Mapping[str, Mapping[str, Any]]
"""By ICAO code, as the package has them."""


class Wire(httpx2.BaseTransport):
    """The network, with what happens elsewhere between two requests.

    Attributes:
        asked: every URL asked for, in order.
        before: what happens before the n-th request (from 1) is sent.
    """

    def __init__(self) -> None:
        self._network = httpx2.HTTPTransport()
        self.asked: list[httpx2.URL] = []
        self.before: dict[int, Callable[[], None]] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request.url)
        self.before.get(len(self.asked), lambda: None)()
        return self._network.handle_request(request)

    def close(self) -> None:
        self._network.close()


@pytest.fixture(scope="session")
def airports() -> Airports:
    for module in ("datasette", "airportsdata"):
        need(module, environ=os.environ)
    import airportsdata

    return airportsdata.load("ICAO")


@pytest.fixture(scope="session")
def base_url(airports: Airports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Every airport of the package, served and left alone."""
    database = tmp_path_factory.mktemp("datasette") / "airports.db"
    write_airports(database, airports.values())
    with serving(database) as url:
        yield url


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


@pytest.fixture
def workspace(tmp_path: Path, wire: Wire) -> Workspace:
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    return Workspace(project, environ={}, inner=wire)


@pytest.fixture
def facts(tmp_path: Path) -> Callable[..., Path]:
    """Write the file of facts for a server, changed here and there."""

    def write(base_url: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Path:
        raw = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        raw["source"]["url"] = f"{base_url}/airports/airports.json"
        change(raw)
        path = tmp_path / "airports.yaml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False), encoding="utf-8")
        return path

    return write


@pytest.fixture
def scan_of(facts: Callable[..., Path]) -> Callable[..., Scan]:
    """Read the file of facts for a server, changed here and there."""

    def read(base_url: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Scan:
        return read_scan_file(facts(base_url, change)).parse()

    return read
