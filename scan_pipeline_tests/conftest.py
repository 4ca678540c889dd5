"""What the tests share: a workspace of their own, the shipped scan, and registries to walk."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest
import yaml
from hypothesis import settings

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.scenario import Scenario, registry_for
from scan_pipeline.simulator.server import running
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.unlock import LABELS
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project

SHIPPED = Path(__file__).parents[1] / "scan_pipeline" / "defs" / "customers" / "defs.yaml"
REGISTRY = "simulator://registry"


IN_MEMORY = Path("/dev/shm")  # the folder that Linux keeps in memory
ROOM = 4 * 2**30
"""Bytes that must be free in memory before the tests put their folders there."""


settings.register_profile("default_run", max_examples=40, deadline=None)


def pytest_configure() -> None:
    """Put the tests' folders into memory where there is room: commits wait for the disk.

    Properties are tried on fewer examples than hypothesis would take by itself.
    """
    settings.load_profile("default_run")
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


class SteppingClock:
    """A clock that moves by a millisecond each time it is read, and by what is slept."""

    def __init__(self, start: datetime) -> None:
        self.now = start
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


def edited(attributes: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scan file's attributes with some changed, by dotted path; `...` takes one out."""
    changed = deepcopy(dict(attributes))
    for path, value in edits.items():
        *parents, last = path.split(".")
        inner = changed
        for step in parents:
            inner = inner.setdefault(step, {})
        if value is ...:
            inner.pop(last, None)
        else:
            inner[last] = deepcopy(value)  # a later path may lead into it
    return changed


THINGS: Mapping[str, Any] = {
    "name": "things",
    "source": {
        "protocol": "page_token",
        "url": "http://source.test/things",
        "records_at": "items",
        "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
        "snapshot": {"at": "version", "send_as": "version"},
        "count": {"at": "total", "means": "total", "exactness": "exact"},
    },
    "contract": {"key": ["id"], "consistency": "snapshot"},
    "record_schema": [
        {"name": "id", "type": "string", "nullable": False},
        {"name": "n", "type": "int64"},
    ],
}
"""A scan of whatever records a test lays down, under a pin and with an exact count."""


def laid_down(
    pages: Sequence[Sequence[bytes]], *, total: int | None = None
) -> httpx2.MockTransport:
    """Return a source that serves these records page by page, whatever the address."""
    counted = sum(map(len, pages)) if total is None else total

    def answer(request: httpx2.Request) -> httpx2.Response:
        number = int(request.url.params.get("cursor", "0"))
        follows = f'"{number + 1}"' if number + 1 < len(pages) else "null"
        around = f'"next":{follows},"version":"v1","total":{counted}'
        body = b'{"items":[%b],%b}' % (b",".join(pages[number]), around.encode())
        return httpx2.Response(200, content=body)

    return httpx2.MockTransport(answer)


@dataclass(frozen=True)
class Opens:
    """How many rows each way of reading gives; None where it is refused or there is none.

    Attributes:
        whole: `unlock`, which asks for a verified whole.
        partial: `open_partial`, content with any pages at all.
        published: the plain table, for who never heard of generations.
    """

    whole: int | None = None
    partial: int | None = None
    published: int | None = None


@dataclass(frozen=True)
class Walked:
    """A scan that was run once, and where."""

    scan: Scan
    workspace: Workspace
    registry: Registry | None
    night: Night

    @property
    def receipt(self) -> Receipt:
        return self.night.stored.receipt

    @property
    def verdict(self) -> tuple[str, str, bool]:
        """Status, scope, and whether the scan counts as done."""
        receipt = self.receipt
        return receipt.coverage_status, receipt.conclusion_scope, receipt.accepted

    @property
    def codes(self) -> set[str]:
        """Codes of the findings that weigh something."""
        return {f.code for f in self.receipt.findings.first if f.severity != "note"}

    @property
    def notes(self) -> set[str]:
        """Codes of the findings that decide nothing."""
        return {f.code for f in self.receipt.findings.first if f.severity == "note"}

    @property
    def results(self) -> dict[str, str]:
        """Result of each expectation by its name."""
        return {each.name: each.result for each in self.receipt.expectations}

    @property
    def collection(self) -> Collection:
        return Collection(self.scan, workspace=self.workspace)

    @property
    def generation(self) -> str:
        return self.receipt.scan_generation

    @property
    def opens(self) -> Opens:
        """What this generation opens, each reader tried, every row's label looked at."""
        whole = partial = None
        with suppress(GateClosedError):
            frame = self.collection.generation(self.generation).frame()
            whole = frame.select(pl.len()).collect().item()
        with suppress(GateClosedError):
            accept: ConclusionScope = "observed_pages_only"
            opened = self.collection.partial(self.generation, accept=accept).labelled_frame()
            rows = opened.collect()
            labels = rows.select(LABELS).unique().rows()
            stored, receipt = self.night.stored, self.receipt
            told = (stored.receipt_id, receipt.coverage_status, receipt.conclusion_scope)
            assert labels == ([told] if rows.height else [])
            partial = rows.height
        table = self.published()
        return Opens(whole=whole, partial=partial, published=None if table is None else len(table))

    def published(self) -> pl.DataFrame | None:
        """Read the published table the way a stranger would: its newest version, whole."""
        folder = Path(self.workspace.project.lake) / "published" / self.scan.name
        return pl.read_delta(str(folder)) if (folder / "_delta_log").exists() else None

    def again(self, scan: Scan | None = None) -> "Walked":
        """Run once more in the same place."""
        scan = scan or self.scan
        night = run_scan(scan, workspace=self.workspace)
        return Walked(scan=scan, workspace=self.workspace, registry=self.registry, night=night)


@dataclass
class Bench:
    """Runs scans against registries, each in a workspace of its own."""

    folder: Path
    stack: ExitStack
    shipped: Mapping[str, Any]
    clock: SteppingClock = field(
        default_factory=lambda: SteppingClock(datetime(2026, 11, 30, 2, tzinfo=UTC))
    )
    workspaces: int = 0

    def scan(self, edits: Mapping[str, Any] | None = None, *, base: str = REGISTRY) -> Scan:
        """Return the shipped scan, edited, its addresses led to `base`."""
        text = json.dumps(edited(self.shipped, edits or {}))
        return parse_scan(json.loads(text.replace(REGISTRY, base)))

    def project(self) -> Project:
        self.workspaces += 1
        root = self.folder / f"project-{self.workspaces}"
        return Project(
            lake=str(root / "lake"),
            keys=root / "keys",
            trust=root / "scan_pipeline_trust.json",
            dagster_home=root / "dagster_home",
            root=None,
        )

    def workspace(self, registry: Registry | None = None, **arguments: Any) -> Workspace:
        """Return a workspace of its own; with a registry, it answers in this process."""
        inner = None
        if registry is not None:
            inner = SimulatorTransport(registry, sleep=self.clock.sleep)
        kept = {
            "environ": {"REGISTRY_TOKEN": AUDITOR_TOKEN},
            "inner": inner,
            "clock": self.clock,
            "sleep": self.clock.sleep,
            **arguments,
        }
        return Workspace(kept.pop("project", None) or self.project(), **kept)

    def registry(self, scenario: Scenario | None = None, **arguments: Any) -> Registry:
        if scenario is not None:
            return registry_for(scenario, clock=self.clock)
        return Registry(**{"size": 1_000, "clock": self.clock, **arguments})

    def walk(
        self,
        source: Registry | Scenario | None = None,
        edits: Mapping[str, Any] | None = None,
        *,
        over: str = "process",
        **arguments: Any,
    ) -> Walked:
        """Run the shipped scan, edited, against a registry; over a real port where asked to.

        Args:
            source: what answers; a scenario also says what is asked.
            edits: changes to the scan, by dotted path.
            over: `process` or `port`.
            arguments: of the workspace.
        """
        registry = source if isinstance(source, Registry) else self.registry(source)
        query = dict(source.query) if isinstance(source, Scenario) else {}
        edits = {**({"source.params": query} if query else {}), **(edits or {})}
        if over == "port":
            scan = self.scan(edits, base=self.stack.enter_context(running(registry)))
            workspace = self.workspace(**arguments)
        else:
            scan, workspace = self.scan(edits), self.workspace(registry, **arguments)
        night = run_scan(scan, workspace=workspace)
        return Walked(scan=scan, workspace=workspace, registry=registry, night=night)

    def walk_records(
        self,
        pages: Sequence[Sequence[bytes]],
        edits: Mapping[str, Any] | None = None,
        *,
        total: int | None = None,
        **arguments: Any,
    ) -> Walked:
        """Run the scan of things, edited, over records that a test lays down.

        Args:
            pages: records of each page, as their bytes.
            edits: changes to `THINGS`, by dotted path.
            total: count that the source reports; None for the right one.
            arguments: of the workspace.
        """
        scan = parse_scan(edited(THINGS, edits or {}))
        workspace = self.workspace(**{"inner": laid_down(pages, total=total), **arguments})
        night = run_scan(scan, workspace=workspace)
        return Walked(scan=scan, workspace=workspace, registry=None, night=night)


@pytest.fixture(scope="session")
def shipped() -> Mapping[str, Any]:
    """The attributes of the scan that ships."""
    return yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["attributes"]


@pytest.fixture
def bench(tmp_path: Path, shipped: Mapping[str, Any]) -> Iterator[Bench]:
    """Runs scans, in process or over a real port."""
    with ExitStack() as stack:
        yield Bench(folder=tmp_path, stack=stack, shipped=shipped)


@pytest.fixture(scope="session")
def things() -> Callable[..., Scan]:
    """Makes the scan of things, edited by dotted path; see `THINGS`."""
    return lambda edits=None: parse_scan(edited(THINGS, edits or {}))


@pytest.fixture(scope="session", name="laid_down")
def serves_records() -> Callable[..., httpx2.MockTransport]:
    """Makes a source that serves records page by page; see `laid_down`."""
    return laid_down


@pytest.fixture(scope="session")
def opens() -> type[Opens]:
    """What a generation opens, to compare with `Walked.opens`; nothing, unless told otherwise."""
    return Opens


@pytest.fixture(scope="module")
def shared_bench(
    tmp_path_factory: pytest.TempPathFactory, shipped: Mapping[str, Any]
) -> Iterator[Bench]:
    """A bench for nights that the tests of a module only read."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("shared")
        yield Bench(folder=folder, stack=stack, shipped=shipped)


@pytest.fixture
def edit() -> Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]:
    """Edits a scan file's attributes by dotted path."""
    return edited
