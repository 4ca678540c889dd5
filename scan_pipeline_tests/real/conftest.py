"""Real data and a real server; see airports.yaml for the facts they are walked by."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest
import yaml

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.unlock import open_partial
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline_tests.real.datasette_server import need, serving, write_airports

FACTS = Path(__file__).with_name("airports.yaml")

Airports = Mapping[str, Mapping[str, Any]]
"""By ICAO code, as the package has them."""

Change = Callable[[dict[str, Any]], None]
"""Edits the attributes of the file of facts."""

MET: ConclusionScope = "records_encountered_in_live_traversal"
"""All that a walk over a live table may speak of."""


def unchanged(raw: dict[str, Any]) -> None:
    """Leave the file of facts as it is."""


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
    return workspace_in(tmp_path, wire)


@pytest.fixture
def facts(tmp_path: Path) -> Callable[..., Path]:
    """Write the file of facts for a server, changed here and there."""

    def write(base_url: str, change: Change = unchanged) -> Path:
        return write_facts(tmp_path, base_url, change)

    return write


@pytest.fixture
def scan_of(facts: Callable[..., Path]) -> Callable[..., Scan]:
    """Read the file of facts for a server, changed here and there."""

    def read(base_url: str, change: Change = unchanged) -> Scan:
        return read_scan_file(facts(base_url, change)).parse()

    return read


@pytest.fixture(scope="session")
def typed(base_url: str, tmp_path_factory: pytest.TempPathFactory) -> "Walked":
    """Every airport, walked once by the file as it stands."""
    return walk_once(tmp_path_factory.mktemp("typed"), base_url, unchanged)


@pytest.fixture(scope="session")
def inferred(base_url: str, tmp_path_factory: pytest.TempPathFactory) -> "Walked":
    """Every airport, walked once without a record schema."""

    def without_schema(raw: dict[str, Any]) -> None:
        del raw["record_schema"]

    return walk_once(tmp_path_factory.mktemp("inferred"), base_url, without_schema)


@dataclass(frozen=True)
class Walked:
    """A scan that was run, and where."""

    scan: Scan
    workspace: Workspace
    stored: StoredReceipt

    @property
    def receipt(self) -> Receipt:
        return self.stored.receipt

    def met(self) -> pl.DataFrame:
        """Return what was met, labelled, in order of key."""
        opened = open_partial(self.stored, self.scan, workspace=self.workspace, accept=MET)
        return opened.labelled_frame().sort("icao").collect()

    def expectation(self, name: str) -> tuple[Any, Any, str]:
        found = next(each for each in self.receipt.expectations if each.name == name)
        return found.expected, found.observed, found.result


def walk(scan: Scan, workspace: Workspace) -> Walked:
    stored = run_scan(scan, workspace=workspace).stored
    return Walked(scan=scan, workspace=workspace, stored=stored)


def walk_once(folder: Path, base_url: str, change: "Change") -> Walked:
    scan = read_scan_file(write_facts(folder, base_url, change)).parse()
    wire = Wire()
    walked = walk(scan, workspace_in(folder, wire))
    wire.close()
    return walked


def write_facts(folder: Path, base_url: str, change: "Change") -> Path:
    raw = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    raw["source"]["url"] = f"{base_url}/airports/airports.json"
    change(raw)
    path = folder / "airports.yaml"
    path.write_text(yaml.safe_dump(raw, sort_keys=False), encoding="utf-8")
    return path


def workspace_in(folder: Path, wire: Wire) -> Workspace:
    project = find_project(lake=str(folder / "lake"), cwd=folder, environ={})
    return Workspace(project, environ={}, inner=wire)
