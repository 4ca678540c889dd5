"""Two walkers of one generation: one wins, the other stops, and all pages are of one walk.

Each walk has cursors of its own and a customer vanishes between their starts, so that pages of
both together would hold every sequence number once and lack a row.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from scan_pipeline.core.errors import WriterConflictError
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.server import running
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import finish, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.breaking import events_of, pages_of
from scan_pipeline_tests.stages.crashes import check_generation, receipts_of

pytestmark = pytest.mark.long

GENERATION = "20261130T020000Z"
ONE_BY_ONE = {"operation": {"commit_pages": 1}}
TURN_S = 60


class Gate(httpx2.BaseTransport):
    """Lets one walker's requests through one after the other, as the test says."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner
        self.arrived, self._let_on = threading.Semaphore(0), threading.Semaphore(0)
        self._open = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._open:
            self.arrived.release()
            assert self._let_on.acquire(timeout=TURN_S)
        return self._inner.handle_request(request)

    def let_on(self, requests: int = 1) -> None:
        """Let so many requests pass; return when the next one waits at the gate."""
        for _ in range(requests):
            self._let_on.release()
            assert self.arrived.acquire(timeout=TURN_S)

    def open(self) -> None:
        """Let every further request pass."""
        self._open = True
        self._let_on.release()


@dataclass
class Walker:
    """One walker in a thread of its own; `ended` says how."""

    gate: Gate
    walk: Callable[[], None]
    ended: list[BaseException | None] = field(default_factory=list)

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.gate.arrived.acquire(timeout=TURN_S)

    def join(self) -> BaseException | None:
        self.gate.open()
        self.thread.join(TURN_S)
        assert not self.thread.is_alive()
        return self.ended[0]

    def _run(self) -> None:
        try:
            self.walk()
        except BaseException as error:  # noqa: BLE001  # the test asks how it ended
            self.ended.append(error)
        else:
            self.ended.append(None)


@dataclass
class Race:
    """Walkers of one generation over one registry."""

    bench: Bench
    registry: Registry
    project: Project
    scan: Scan

    def walker(self) -> Walker:
        gate = Gate(SimulatorTransport(self.registry, sleep=self.bench.clock.sleep))
        workspace = self.bench.workspace(project=self.project, inner=gate)
        pipeline = Pipeline(self.scan, GENERATION, workspace=workspace)
        return Walker(gate, lambda: pipeline.pages() and None)

    def workspace(self) -> Workspace:
        return self.bench.workspace(self.registry, project=self.project)

    def wait_for(self, pages: int) -> None:
        """Wait until so many pages are committed; they are by a thread of their own."""
        workspace = self.workspace()
        while pages_of(events_of(self.scan, workspace, GENERATION)) < pages:
            time.sleep(0.01)


@pytest.fixture
def race(bench: Bench) -> Race:
    return Race(
        bench=bench,
        registry=bench.registry(scenario("two_walkers")),
        project=bench.project(),
        scan=bench.scan(ONE_BY_ONE),
    )


def check_one_walk(race: Race, ended: list[BaseException | None]) -> None:
    """Check that one walker stopped, that all pages are of one walk, and what follows of it."""
    conflicts = [each for each in ended if each is not None]
    assert len(conflicts) == 1
    assert isinstance(conflicts[0], WriterConflictError)
    workspace = race.workspace()
    events = workspace.store(race.scan.name, GENERATION).events()
    pages = [event for event in events if event.event == "page"]
    assert len({event.facts["pin"] for event in pages}) == 1
    stored = finish(Pipeline(race.scan, GENERATION, workspace=workspace))
    receipt = stored.receipt
    assert (receipt.coverage_status, receipt.accepted) == ("verified", True), receipt.reasons
    assert receipt.unique_ids_observed == receipt.records_expected
    check_generation(workspace, race.scan.name, GENERATION)
    assert receipts_of(workspace, race.scan.name) == [GENERATION]


def test_both_begin_at_once(race: Race) -> None:
    """Both have asked who they are and found no event; the first to open the walk has it."""
    one, other = race.walker(), race.walker()
    one.start()
    other.start()

    one.gate.let_on()
    stopped = other.join()
    won = one.join()

    assert won is None
    check_one_walk(race, [won, stopped])


@pytest.mark.parametrize(
    "ahead", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
def test_the_second_takes_up_the_first_ones_walk_and_overtakes_it(race: Race, ahead: int) -> None:
    """The first stands still after some pages; the second re-reads the last and goes on."""
    one, other = race.walker(), race.walker()
    one.start()
    one.gate.let_on(1 + ahead)
    race.wait_for(ahead)
    other.start()

    won = other.join()
    stopped = one.join()

    assert won is None
    check_one_walk(race, [won, stopped])


def test_the_first_goes_on_and_the_second_stops(race: Race) -> None:
    """The second has its own first page, after the customer vanished, when the first commits."""
    one, other = race.walker(), race.walker()
    one.start()
    one.gate.let_on(1)
    other.start()
    other.gate.let_on(1)
    one.gate.let_on(3)
    race.wait_for(2)

    stopped = other.join()
    won = one.join()

    assert won is None
    check_one_walk(race, [won, stopped])


@pytest.mark.long
def test_turn_by_turn(race: Race) -> None:
    """Each is let on by one request in turn, from the first page on; one of them stops soon."""
    one, other = race.walker(), race.walker()
    one.start()
    one.gate.let_on(1)
    other.start()
    for _ in range(6):
        for each in (one, other):
            each.gate._let_on.release()
            each.gate.arrived.acquire(timeout=0.5)

    ended = [one.join(), other.join()]

    check_one_walk(race, ended)


def test_without_a_pin_pages_of_two_walks_never_mix(race: Race) -> None:
    """A live view has no pin to tell them apart: the cursors of their chain do."""
    live = {
        **ONE_BY_ONE,
        "source.params": {"view": "live"},
        "source.snapshot": ...,
        "contract.consistency": "live",
        "contract.accept": {"scope": "records_encountered_in_live_traversal"},
    }
    race.scan = race.bench.scan(live)
    one, other = race.walker(), race.walker()
    one.start()
    one.gate.let_on(1)
    other.start()
    other.gate.let_on(2)
    one.gate.let_on(1)

    ended = [one.join(), other.join()]

    assert sum(isinstance(each, WriterConflictError) for each in ended) == 1
    workspace = race.workspace()
    events = workspace.store(race.scan.name, GENERATION).events()
    cursors = [event.cursor_in_digest for event in events if event.event == "page"]
    follows = [event.cursor_out_digest for event in events if event.event == "page"]
    assert cursors[1:] == follows[:-1]
    receipt = finish(Pipeline(race.scan, GENERATION, workspace=workspace)).receipt
    assert receipt.unique_ids_observed in (999, 1_000)
    assert receipt.duplicate_ids == 0


@contextmanager
def served(race: Race) -> Iterator[str]:
    with running(race.registry) as url:
        yield url


def _run_in_process(url: str, folder: str, told) -> None:
    """Run a night in a process of its own; say whether it ended with a receipt or stopped."""
    import json

    import yaml

    from scan_pipeline.simulator.principals import AUDITOR_TOKEN
    from scan_pipeline.sources.catalogue import parse_scan
    from scan_pipeline_tests.conftest import REGISTRY, SHIPPED, edited
    from scan_pipeline_tests.stages.night_process import project_in

    facts = edited(yaml.safe_load(SHIPPED.read_text())["attributes"], ONE_BY_ONE)
    scan = parse_scan(json.loads(json.dumps(facts).replace(REGISTRY, url)))
    workspace = Workspace(project_in(Path(folder)), environ={"REGISTRY_TOKEN": AUDITOR_TOKEN})
    try:
        told.put(run_scan(scan, workspace=workspace).stored.receipt.accepted)
    except WriterConflictError:
        told.put(None)


@pytest.mark.long
def test_processes_at_once(race: Race, tmp_path: Path) -> None:
    """Whatever they meet of each other: each ends accepted or stops, and every audit agrees."""
    from scan_pipeline_tests.stages.night_process import project_in

    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    with served(race) as url:
        for _ in range(3):
            walkers = [
                context.Process(target=_run_in_process, args=(url, str(tmp_path), told))
                for _ in range(3)
            ]
            for each in walkers:
                each.start()
            ended = [told.get(timeout=TURN_S) for _ in walkers]
            for each in walkers:
                each.join()
            assert True in ended
            assert False not in ended
        workspace = race.bench.workspace(project=project_in(tmp_path))
        generations = workspace.receipts("customers").generations()
        assert receipts_of(workspace, "customers") == sorted(generations)
        for generation in generations:
            check_generation(workspace, "customers", generation)
