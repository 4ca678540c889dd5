"""How a run names, repeats and publishes its generations."""

from datetime import timedelta
from pathlib import Path

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.faults import SnapshotExpired
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.naming import free_generation
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import finish, repair_published, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.crashes import check_published

SMALL = 300
"""Customers on three pages."""

ONE_BY_ONE = {"operation": {"commit_pages": 1}}


@pytest.fixture
def workspace(bench: Bench) -> Workspace:
    return bench.workspace(bench.registry(size=SMALL))


def test_an_expired_snapshot_is_begun_again_a_bounded_number_of_times(bench: Bench) -> None:
    registry = bench.registry(size=SMALL, script=Script(faults=(SnapshotExpired(page=3),)))
    workspace, scan = bench.workspace(registry), bench.scan({"operation": {"restarts": 1}})

    night = run_scan(scan, workspace=workspace)

    first, last = night.earlier[0].receipt, night.stored.receipt
    assert len(night.earlier) == 1
    assert (first.restart_of, last.restart_of) == (None, first.scan_generation)
    assert last.scan_generation == f"{first.scan_generation}.2"
    assert {first.stop_reason, last.stop_reason} == {"snapshot_expired"}
    assert {first.coverage_status, last.coverage_status} == {"unknown"}


@pytest.mark.long
def test_a_restart_takes_no_name_that_exists(bench: Bench) -> None:
    registry = bench.registry(
        size=SMALL, script=Script(faults=(SnapshotExpired(page=3, last_attempt=1),))
    )
    workspace, scan = bench.workspace(registry), bench.scan()
    other = bench.workspace(bench.registry(size=SMALL), project=workspace.project)
    taken = Pipeline(scan, "20261130T020000Z.2", workspace=other)
    taken.pages()
    finish(taken)

    night = run_scan(scan, workspace=workspace)

    names = [each.receipt.scan_generation for each in (*night.earlier, night.stored)]
    assert names == ["20261130T020000Z.3", "20261130T020000Z.4"]  # after every name that is known
    assert night.stored.receipt.restart_of == "20261130T020000Z.3"


@pytest.mark.long
def test_two_runs_of_one_second_have_two_names(bench: Bench, workspace: Workspace) -> None:
    scan = bench.scan()

    names = [run_scan(scan, workspace=workspace).stored.receipt.scan_generation for _ in range(2)]

    assert names == ["20261130T020000Z", "20261130T020000Z.2"]
    assert free_generation(scan.name, workspace=workspace) == "20261130T020000Z.3"


def test_a_contract_whose_field_the_schema_lacks_is_refused_before_any_request(
    bench: Bench,
) -> None:
    registry = bench.registry(size=SMALL)
    workspace = bench.workspace(registry)
    scan = bench.scan({"contract.partition_by": "regionn"})

    with pytest.raises(ContractError, match="regionn"):
        run_scan(scan, workspace=workspace)

    assert (registry.served.pages, registry.served.identity_reads) == ([], 0)
    assert not Path(workspace.project.lake).exists()


def test_published_is_the_newest_accepted_generation(bench: Bench, workspace: Workspace) -> None:
    """A night that is not accepted leaves it, a break before publishing is mended."""
    scan, few = bench.scan(), bench.scan({"contract.limits": {"pages": 1}})
    first = run_scan(scan, workspace=workspace).stored.receipt.scan_generation
    bench.clock.now += timedelta(days=1)
    assert not run_scan(few, workspace=workspace).stored.receipt.accepted
    check_published(workspace, scan.name, first)
    bench.clock.now += timedelta(days=1)
    second = Pipeline(scan, free_generation(scan.name, workspace=workspace), workspace=workspace)
    second.pages()
    second.records()
    second.receipt()
    check_published(workspace, scan.name, first)

    repair_published(scan, workspace=workspace)

    check_published(workspace, scan.name, second.generation)
    version = Path(workspace.project.lake, "published", scan.name)
    before = sorted(version.glob("_delta_log/*.json"))
    repair_published(scan, workspace=workspace)
    assert sorted(version.glob("_delta_log/*.json")) == before


def test_swing_is_measured_against_the_generation_before(
    bench: Bench, workspace: Workspace
) -> None:
    """Whenever it is certified: a later generation is no measure for an earlier one."""
    scan = bench.scan({"contract.expect": {"swing": {"records": 0.1}}})
    early, first, second = (f"20261130T0{hour}0000Z" for hour in (1, 2, 3))
    grown = bench.workspace(bench.registry(size=2 * SMALL), project=workspace.project)
    walks = {
        name: Pipeline(scan, name, workspace=each)
        for name, each in ((early, workspace), (first, workspace), (second, grown))
    }
    for each in walks.values():
        each.pages()

    swings = {}
    for name in (first, second, early):
        receipt = finish(walks[name]).receipt
        (swings[name],) = (
            (e.expected, e.result) for e in receipt.expectations if e.name == "swing"
        )

    assert swings[first] == swings[early] == (None, "not_evaluated")
    assert swings[second] == (SMALL, "missed")
    for name in walks:
        audit = Audit(scan.name, name, workspace=workspace).run()
        assert audit.agrees, audit.disagreements


@pytest.mark.long
def test_a_stray_file_among_the_receipts_is_none(bench: Bench, workspace: Workspace) -> None:
    scan = bench.scan()
    run_scan(scan, workspace=workspace)
    folder = Path(workspace.project.lake) / "receipts" / scan.name
    for name in (
        "notes.dsse.json",
        "20261130T020000Z (copy).dsse.json",
        "20261130T0200Z.dsse.json",
    ):
        (folder / name).write_text("{}")

    assert workspace.receipts(scan.name).generations() == ["20261130T020000Z"]
    assert run_scan(scan, workspace=workspace).stored.receipt.accepted
