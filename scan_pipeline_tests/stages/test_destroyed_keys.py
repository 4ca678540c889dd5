"""A data key destroyed while a generation is open: it is certified, and another begins."""

import json

import pytest

from scan_pipeline.core.errors import ConfigurationError, TamperedError
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import run_scan, settle_open
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.breaking import break_off

ONE_BY_ONE = {"operation": {"commit_pages": 1}}


@pytest.fixture
def workspace(bench: Bench) -> Workspace:
    return bench.workspace(bench.registry(size=300))


def destroy_keys(workspace: Workspace) -> str:
    """Erase what the scan's keys sealed; return the id of the last of them."""
    path = workspace.project.keys / "customers.data_key.json"
    held = json.loads(path.read_text())
    for key in held["keys"]:
        key.update(key=None, destroyed_at="2026-11-30T01:00:00Z")
    path.write_text(json.dumps(held))
    return str(held["keys"][-1]["key_id"])


@pytest.mark.parametrize("after", [1, 2])
def test_open_generation_whose_key_is_gone_is_certified_and_another_begins(
    bench: Bench, workspace: Workspace, after: int
) -> None:
    """In one run: the receipt of the old one names the key, and the new one is whole."""
    scan = bench.scan(ONE_BY_ONE)
    old = break_off(scan, workspace, after=after)
    key = destroy_keys(workspace)
    night = run_scan(scan, workspace=workspace)

    (left,) = (*night.earlier, *night.closed)
    told = [each for each in left.receipt.findings.first if each.code == "data_key_destroyed"]
    assert left.receipt.scan_generation == old
    assert (left.receipt.traversal, left.receipt.coverage_status) == ("interrupted", "failed")
    assert left.receipt.stop_reason == "data_key_destroyed"
    assert any(key in str(each.found) for each in told)
    assert night.stored.receipt.accepted
    assert not Audit("customers", old, workspace=workspace).run().disagreements


def test_closed_walk_whose_key_is_gone_is_certified(bench: Bench, workspace: Workspace) -> None:
    """It was read to the end, and nobody can open it: failed, and nothing is staged."""
    scan = bench.scan()
    workspace.begin(scan.name)
    pipeline = Pipeline(scan, "20261130T010000Z", workspace=workspace)
    pipeline.pages()
    destroy_keys(workspace)
    night = run_scan(scan, workspace=workspace)
    told = {each.code for each in night.stored.receipt.findings.first}

    assert night.stored.receipt.scan_generation == "20261130T010000Z"
    assert night.stored.receipt.coverage_status == "failed"
    assert "data_key_destroyed" in told
    assert run_scan(scan, workspace=workspace).stored.receipt.accepted


def test_key_that_is_missing_is_still_an_error(bench: Bench, workspace: Workspace) -> None:
    """Nobody said that it is gone for good: it may be brought back."""
    scan = bench.scan(ONE_BY_ONE)
    break_off(scan, workspace, after=1)
    (workspace.project.keys / "customers.data_key.json").unlink()

    with pytest.raises(ConfigurationError, match="no data key at"):
        run_scan(scan, workspace=workspace)


def test_generation_that_cannot_be_looked_at_does_not_hold_back_the_others(
    bench: Bench, workspace: Workspace
) -> None:
    """Two receipts were committed for one generation: it is left, the open one is closed."""
    scan = bench.scan(ONE_BY_ONE)
    bad = run_scan(scan, workspace=workspace).stored.receipt.scan_generation
    receipts = workspace.receipts(scan.name)
    table = receipts.table()  # what our own code never writes
    rows = table.read(bad)
    table.append(rows, generation=bad)
    old = break_off(scan, workspace, after=1)
    settled = settle_open(bench.scan({"contract.limits": {"seconds": 90}}), workspace=workspace)

    with pytest.raises(TamperedError):
        receipts.has(bad)
    assert [each.generation for each in settled.left] == [bad]
    assert [each.receipt.scan_generation for each in settled.closed] == [old]
