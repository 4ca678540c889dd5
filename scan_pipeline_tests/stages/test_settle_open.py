"""What a run owes the generations that earlier runs left open."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan, settle_open
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.breaking import BrokeOff, break_off, events_of
from scan_pipeline_tests.stages.crashes import check_generation
from scan_pipeline_tests.stages.tampering import alter, swapped

SMALL = 300
"""Customers on three pages."""

ONE_BY_ONE = {"operation": {"commit_pages": 1}}


@pytest.fixture
def workspace(bench: Bench) -> Workspace:
    return bench.workspace(bench.registry(size=SMALL))


def model_in(folder: Path, name: str, *, greatest: int) -> str:
    """Write a module with a record schema and return the model's dotted path."""
    (folder / f"{name}.py").write_text(
        "import pandera.polars as pa\n"
        "class Model(pa.DataFrameModel):\n"
        "    customer_id: str\n"
        "    region: str\n"
        f"    schema_version: int = pa.Field(le={greatest})\n"
    )
    sys.modules.pop(name, None)
    return f"{name}.Model"


EDITS: dict[str, dict[str, Any]] = {
    "scope": {"source.params": {"region": "eu"}, "contract.expect": {}},
    "judgement": {"contract.accept": {"scope": "observed_pages_only"}},
    "operation": {"contract.limits": {"seconds": 90}},
}


@pytest.mark.parametrize(
    "block", ["scope", "judgement", pytest.param("operation", marks=pytest.mark.long)]
)
def test_an_edited_contract_is_not_taken_up(bench: Bench, workspace: Workspace, block: str) -> None:
    """The old generation is closed and certified under its own contract; a new one begins."""
    before, after = bench.scan(ONE_BY_ONE), bench.scan({**ONE_BY_ONE, **EDITS[block]})
    old = break_off(before, workspace, after=2)
    opened = workspace.store(before.name, old).opened().facts["digests"]
    bench.clock.now += timedelta(seconds=30)

    night = run_scan(after, workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    digests = (closed.scope_digest, closed.judgement_digest, closed.operation_digest)
    assert digests == (opened["scope"], opened["judgement"], opened["operation"])
    assert (closed.scan_generation, closed.pages_observed) == (old, 2)
    assert (closed.coverage_status, closed.stop_reason) == ("unknown", "abandoned")
    assert not closed.accepted
    assert night.stored.receipt.accepted
    assert night.stored.receipt.scope_digest == scope_digest(after)
    for generation in (old, night.stored.receipt.scan_generation):
        check_generation(workspace, before.name, generation)


@pytest.mark.long
def test_a_closed_walk_under_an_edited_contract_is_certified_as_finished(
    bench: Bench, workspace: Workspace
) -> None:
    """It broke off after its end: that its contract changed since takes nothing from it."""
    before = bench.scan()
    Pipeline(before, "20261130T010000Z", workspace=workspace).pages()

    night = run_scan(bench.scan(EDITS["judgement"]), workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    assert (closed.coverage_status, closed.traversal) == ("verified", "finished")
    assert night.stored.receipt.scan_generation != closed.scan_generation


def test_a_closed_walk_is_brought_to_its_receipt_without_a_request(
    bench: Bench, workspace: Workspace
) -> None:
    registry = bench.registry(size=SMALL)
    workspace, scan = bench.workspace(registry), bench.scan()
    Pipeline(scan, "20261130T010000Z", workspace=workspace).pages()
    asked = len(registry.served.pages)

    night = run_scan(scan, workspace=workspace)

    assert night.stored.receipt.scan_generation == "20261130T010000Z"
    assert len(registry.served.pages) == asked


def test_the_newest_open_walk_is_taken_up_and_the_others_are_closed_in_order(
    bench: Bench, workspace: Workspace
) -> None:
    scan = bench.scan(ONE_BY_ONE)
    for name in ("20261130T015900Z", "20261130T015930Z", "20261130T015930Z.2"):
        break_off(scan, workspace, after=1, generation=name)

    settled = settle_open(scan, workspace=workspace)

    assert settled.resumed == "20261130T015930Z.2"
    closed = [each.receipt.scan_generation for each in settled.closed]
    assert closed == ["20261130T015900Z", "20261130T015930Z"]
    assert settled.left == ()


def test_a_record_schema_edited_in_place_is_told(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is the same, the content is not: records are held against what there is now."""
    monkeypatch.syspath_prepend(str(tmp_path))
    workspace = bench.workspace(bench.registry(size=SMALL))
    scan = bench.scan({"record_schema": model_in(tmp_path, "edited_schema", greatest=3)})
    Pipeline(scan, "20261130T010000Z", workspace=workspace).pages()
    model_in(tmp_path, "edited_schema", greatest=2)

    night = run_scan(scan, workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    assert "schema_changed" in {f.code for f in closed.findings.first}
    assert closed.judgement_digest == night.stored.receipt.judgement_digest
    assert closed.extraction.nonconforming == night.stored.receipt.extraction.nonconforming > 0
    check_generation(workspace, scan.name, closed.scan_generation)


def test_a_generation_that_cannot_be_certified_does_not_keep_the_night(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays open, without a receipt, and is certified once its schema is back."""
    monkeypatch.syspath_prepend(str(tmp_path))
    workspace = bench.workspace(bench.registry(size=SMALL))
    path = model_in(tmp_path, "lost_schema", greatest=3)
    old = break_off(bench.scan({**ONE_BY_ONE, "record_schema": path}), workspace, after=2)
    (tmp_path / "lost_schema.py").unlink()
    sys.modules.pop("lost_schema")
    scan = bench.scan(ONE_BY_ONE)

    night = run_scan(scan, workspace=workspace)

    assert night.stored.receipt.accepted
    assert [left.generation for left in night.left] == [old]
    assert "lost_schema" in night.left[0].reason
    assert not workspace.receipts(scan.name).has(old)
    model_in(tmp_path, "lost_schema", greatest=3)
    again = run_scan(scan, workspace=workspace)
    assert [each.receipt.scan_generation for each in again.closed] == [old]
    assert again.left == ()


@pytest.mark.long
def test_an_open_generation_whose_files_are_damaged_does_not_keep_the_night(
    bench: Bench, workspace: Workspace
) -> None:
    scan = bench.scan(ONE_BY_ONE)
    old = break_off(scan, workspace, after=2)
    folder = Path(workspace.project.lake) / "evidence" / scan.name / "pages"
    min(folder.glob("**/*.parquet")).write_bytes(b"PAR1")

    night = run_scan(scan, workspace=workspace)

    assert night.stored.receipt.accepted
    assert [left.generation for left in night.left] == [old]


def test_a_body_altered_before_it_was_staged_ends_in_a_failed_receipt(
    bench: Bench, workspace: Workspace
) -> None:
    """There is no pin yet. The receipt says what was found, and the next night is free of it."""
    scan = bench.scan({"operation": {"commit_pages": 8}})
    Pipeline(scan, "20261130T010000Z", workspace=workspace).pages()
    pages = Path(workspace.project.lake) / "evidence" / scan.name / "pages"
    alter(pages, "20261130T010000Z", swapped("body", key="page", one=1, other=2))

    night = run_scan(scan, workspace=workspace)

    receipt = night.stored.receipt
    assert receipt.scan_generation == "20261130T010000Z"
    assert (receipt.coverage_status, receipt.accepted) == ("failed", False)
    assert {"evidence_altered", "chain_broken"} <= {f.code for f in receipt.findings.first}
    assert receipt.records_observed == 0
    audit = Audit(scan.name, receipt.scan_generation, workspace=workspace).run()
    assert {"bodies", "records by page"} <= {each.name for each in audit.disagreements}
    assert run_scan(scan, workspace=workspace).stored.receipt.accepted


def test_a_restage_that_broke_off_is_finished_and_walks_nothing(
    bench: Bench, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its open event is no walk to take up: its pages are another generation's."""
    scan, better = bench.scan(), bench.scan({"contract.accept": {"nonconforming": 1}})
    old = run_scan(scan, workspace=workspace).stored
    broken = BreakingWorkspace(workspace)
    with pytest.raises(BrokeOff):
        restage(better, old.receipt.scan_generation, workspace=broken)
    name = f"{old.receipt.scan_generation}.2"
    assert [e.event for e in events_of(scan, workspace, name)] == ["open"]

    night = run_scan(better, workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    assert (closed.scan_generation, closed.supersedes) == (name, old.receipt_id)
    assert (closed.coverage_status, closed.accept.nonconforming) == ("verified", 1)
    assert [e.event for e in events_of(scan, workspace, name)] == ["open"]
    assert night.stored.receipt.scan_generation not in (name, old.receipt.scan_generation)
    audit = Audit(scan.name, name, workspace=workspace).run()
    assert audit.agrees, audit.disagreements


class BreakingWorkspace(Workspace):
    """Breaks off before a body is taken apart."""

    def __init__(self, like: Workspace) -> None:
        super().__init__(like.project, environ=like.environ, clock=like.clock, sleep=like.sleep)

    def source(self, *_: Any, **__: Any) -> Source:
        raise BrokeOff
