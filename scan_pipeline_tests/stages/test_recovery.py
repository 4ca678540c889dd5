"""A night killed by SIGKILL at any point is finished by the next run as if nothing had happened."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.server import running
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.crashes import (
    FIRST,
    SIZE,
    Crashed,
    Kill,
    check_generation,
    check_published,
    check_whole,
    receipts_of,
)

pytestmark = pytest.mark.long

ONE_BY_ONE = {"operation": {"commit_pages": 1}}

UNSEALED = {
    # request 1 asks who we are, 2 to 11 are the pages, 12 and 13 the recheck, 14 and 15 the close
    "before_anything": Kill("request", 1),
    "before_the_first_page": Kill("request", 2),
    "before_the_first_page_is_committed": Kill("answer", 2),
    "between_fetch_and_commit": Kill("answer", 6),
    "between_first_commit_and_next_request": Kill("committed", 1, ONE_BY_ONE),
    "between_commit_and_next_request": Kill("committed", 4, ONE_BY_ONE),
    "with_the_last_page_committed": Kill("committed", 10, ONE_BY_ONE),
    "before_the_recheck": Kill("request", 12),
    "in_the_recheck": Kill("answer", 13),
    "before_the_close": Kill("answer", 15),
    "before_the_first_record": Kill("body", 1),
    "in_records": Kill("body", 5),
    "between_records_and_their_findings": Kill("staged"),
    "between_records_and_reconciliation": Kill("staged_findings"),
    "in_reconciliation": Kill("figures"),
    "between_summaries_and_findings": Kill("summaries"),
    "after_reconciliation": Kill("findings"),
    "before_the_receipt": Kill("receipt"),
}

SEALED = {
    "between_the_receipt_and_its_file": Kill("receipt_committed"),
    "between_receipt_and_publishing": Kill("receipt_filed"),
}

FEW = ("between_fetch_and_commit", "in_reconciliation")


def kills(points: dict[str, Kill], few: tuple[str, ...]) -> list[pytest.param]:
    return [
        pytest.param(kill, id=name, marks=() if name in few else pytest.mark.long)
        for name, kill in points.items()
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, shipped) -> str:
    """The root of the same collection, walked by a night that nobody disturbed."""
    with ExitStack() as stack:
        bench = Bench(folder=tmp_path_factory.mktemp("calm"), stack=stack, shipped=shipped)
        root = bench.walk(bench.registry(size=SIZE)).receipt.merkle.root
    assert root is not None
    return root


@pytest.fixture
def crashed(bench: Bench) -> Crashed:
    """A project whose nights meet the registry in their own process."""
    return Crashed(bench)


@pytest.fixture
def served(bench: Bench) -> Iterator[Crashed]:
    """A project whose nights meet a registry that lives on, over a port."""
    with running(Registry(size=SIZE, clock=bench.clock)) as url:
        yield Crashed(bench, url=url)


@pytest.mark.parametrize("kill", kills(UNSEALED, FEW))
def test_killed_night_is_finished_as_if_undisturbed(
    crashed: Crashed, undisturbed: str, kill: Kill
) -> None:
    """A new process has a new registry: cursors and snapshot outlive the one they came from."""
    crashed.kill(kill)

    night = crashed.run()

    workspace = crashed.workspace()
    check_whole(night, workspace, root=undisturbed)
    expected = FIRST if kill.point != "request" or kill.number > 1 else "20261130T020030Z"
    assert receipts_of(workspace, "customers") == [expected]
    assert (night.earlier, night.closed, night.left) == ((), (), ())
    check_published(workspace, "customers", expected)


@pytest.mark.parametrize("kill", kills(UNSEALED, ("between_commit_and_next_request",)))
def test_killed_night_is_finished_over_a_port(
    served: Crashed, undisturbed: str, kill: Kill
) -> None:
    served.kill(kill)

    night = served.run()

    check_whole(night, served.workspace(), root=undisturbed)
    assert len(receipts_of(served.workspace(), "customers")) == 1


@pytest.mark.parametrize("kill", kills(SEALED, ("between_the_receipt_and_its_file",)))
def test_night_killed_after_its_receipt_is_filed_and_published(
    crashed: Crashed, undisturbed: str, kill: Kill
) -> None:
    """The next run mends it before its own walk, here one that is refused."""
    crashed.kill(kill)
    crashed.bench.clock.now += timedelta(days=1)

    refused = crashed.workspace(environ={"REGISTRY_TOKEN": "nobody"})

    night = run_scan(crashed.scan, workspace=refused)

    workspace = crashed.workspace()
    assert night.stored.receipt.stop_reason == "access_refused"
    assert receipts_of(workspace, "customers") == [FIRST, night.stored.receipt.scan_generation]
    check_generation(workspace, "customers", FIRST)
    check_published(workspace, "customers", FIRST)


@pytest.mark.long
def test_kill_after_kill_loses_nothing(crashed: Crashed, undisturbed: str) -> None:
    """Each run gets one step further and dies; the last one finds the work nearly done."""
    for kill in (
        Kill("request", 2, {"operation": {"commit_pages": 2}}),
        Kill("request", 6),
        Kill("request", 8),
        Kill("answer", 9),
        Kill("staged"),
        Kill("figures"),
        Kill("summaries"),
        Kill("receipt"),
    ):
        crashed.kill(kill)
        crashed.bench.clock.now -= timedelta(seconds=25)

    night = crashed.run()

    check_whole(night, crashed.workspace(), root=undisturbed)
    assert receipts_of(crashed.workspace(), "customers") == [FIRST]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(crashed: Crashed, seed: int) -> None:
    """From outside, wherever it is: also in a commit, between a file and the log that names it."""
    moments = random.Random(seed)
    crashed.edits = ONE_BY_ONE
    for _ in range(6):
        crashed.kill_after(moments.uniform(0.6, 2.0))

    night = crashed.run()

    workspace = crashed.workspace()
    assert night.left == ()
    assert night.stored.receipt.coverage_status == "verified"
    generations = workspace.receipts("customers").generations()
    assert receipts_of(workspace, "customers") == generations
    for generation in generations:
        check_generation(workspace, "customers", generation)
    check_published(workspace, "customers", night.stored.receipt.scan_generation)
