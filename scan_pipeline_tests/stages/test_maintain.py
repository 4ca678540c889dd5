"""Maintenance lets go of what a scan no longer keeps, and every receipt still audits."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.core.retention import Keep, Retention
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages import maintain as maintenance
from scan_pipeline.stages.audit import Audit, AuditReport
from scan_pipeline.stages.maintain import Maintained, maintain
from scan_pipeline.stages.maintaining import dropping
from scan_pipeline.stages.maintaining.holding import say_hold
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.tables import Table
from scan_pipeline_tests.conftest import Bench, SteppingClock
from scan_pipeline_tests.stages.night_process import project_in
from scan_pipeline_tests.stages.tampering import alter

KEPT = Retention(generations=2, bodies=Keep(generations=1))


@dataclass(frozen=True)
class Nights:
    """Four accepted nights of one scan, oldest first."""

    root: Path
    scan: Scan
    names: tuple[str, ...]
    clock: SteppingClock

    def workspace(self) -> Workspace:
        return Workspace(project_in(self.root), environ={}, clock=self.clock)

    def keeping(self, retention: Retention | None) -> Scan:
        return replace(self.scan, operation=replace(self.scan.operation, retention=retention))

    def maintain(self, retention: Retention | None = KEPT) -> Maintained:
        return maintain(self.keeping(retention), workspace=self.workspace())

    def audits(self) -> list[AuditReport]:
        return [
            Audit(self.scan.name, each, workspace=self.workspace()).run() for each in self.names
        ]

    def levels(self) -> list[str]:
        """Return how deep each audit can look, all of which must agree."""
        reports = self.audits()
        assert [each.disagreements for each in reports] == [()] * len(reports)
        return [each.level for each in reports]

    def files(self, zone: str, table: str, night: str) -> list[Path]:
        folder = self.root / "lake" / zone / self.scan.name / table
        return sorted(folder.glob(f"scan_generation={night}/*.parquet"))


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory, shipped: Any) -> Iterator[Nights]:
    folder = tmp_path_factory.mktemp("four")
    with ExitStack() as stack:
        bench = Bench(folder=folder, stack=stack, shipped=shipped)
        workspace = bench.workspace(bench.registry(size=200), project=project_in(folder))
        scan, names = bench.scan(), []
        for _ in range(4):
            names.append(run_scan(scan, workspace=workspace).stored.receipt.scan_generation)
            bench.clock.now += timedelta(days=1)
        yield Nights(folder, scan, tuple(names), bench.clock)


@pytest.fixture
def nights(four: Nights, tmp_path: Path) -> Nights:
    """A copy of them, to be maintained."""
    shutil.copytree(four.root, tmp_path / "nights")
    return replace(four, root=tmp_path / "nights")


def test_what_is_no_longer_kept_goes_and_every_receipt_audits(nights: Nights) -> None:
    first, second, third, _ = nights.names
    workspace = nights.workspace()
    say_hold("customers", first, state="held", because="review", by="ann", workspace=workspace)

    came = nights.maintain()

    gone = [(each.generation, each.what) for each in came.dropped]
    assert gone == [(second, "bodies"), (third, "bodies"), (second, "records")]
    assert {(each.generation, each.reason[:11]) for each in came.kept_back} == {
        (first, "held by ann")
    }
    assert nights.levels() == ["bodies", "ledger", "records", "bodies"]
    told = nights.audits()[1]
    day = f"{nights.clock.now:%Y-%m-%d}"
    assert f"records dropped on {day} (retention: records are kept for 2 accepted" in told.word()
    assert any(c.name == "files of records" and "dropped on" in c.found for c in told.not_computed)
    assert not nights.files("staging", "records", second)
    for file in nights.files("evidence", "pages", third):
        sealed = pq.ParquetFile(file).read(columns=["body", "cursor_out", "chain"])
        assert (sealed["body"].null_count, sealed["chain"].null_count) == (len(sealed), 0)
        assert len(nights.files("evidence", "pages", third)) == 1

    opened = Collection(nights.scan, workspace=nights.workspace())
    assert opened.generation(third).arrow().num_rows == 200
    with pytest.raises(GateClosedError, match=f"records dropped on {day}"):
        opened.generation(second)
    with pytest.raises(ContractError, match="bodies"):
        restage(nights.scan, third, workspace=workspace)

    assert nights.maintain().dropped == ()
    say_hold("customers", first, state="released", because="done", by=None, workspace=workspace)
    assert [(each.generation, each.what) for each in nights.maintain().dropped] == [
        (first, "bodies"),
        (first, "records"),
    ]
    assert nights.levels() == ["ledger", "ledger", "records", "bodies"]


def test_what_is_published_or_judged_again_is_kept(nights: Nights) -> None:
    """By days alone all four are over: the newest stays, and pages that a kept receipt needs."""
    first = nights.names[0]
    nights.clock.now += timedelta(days=10)
    again = restage(nights.scan, first, workspace=nights.workspace()).receipt.scan_generation

    came = nights.maintain(Retention(days=5))

    assert {(each.generation, each.what) for each in came.kept_back} == {
        (nights.names[3], "records"),
        (first, "bodies"),
    }
    assert nights.levels() == ["ledger", "ledger", "ledger", "bodies"]
    report = Audit(nights.scan.name, again, workspace=nights.workspace()).run()
    assert (report.agrees, report.level) == (True, "bodies")


def test_break_anywhere_reads_right_and_is_completed(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off after what was said, before the sweep, and between two tables, one by one."""
    whole, written = Table.rewrite, []

    def after_it_was_said(self: Table, change: Any, **arguments: Any) -> None:
        def then_break(files: Any) -> None:
            arguments["announce"](files)
            raise KeyboardInterrupt

        whole(self, change, **{**arguments, "announce": then_break})

    def at_the_third_table(self: Table, change: Any, **arguments: Any) -> None:
        written.append(self.name)
        if len(written) == 3:
            raise KeyboardInterrupt
        whole(self, change, **arguments)

    def no_sweep(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    for place, name, breaks in (
        (Table, "rewrite", after_it_was_said),
        (dropping, "sweep", no_sweep),
        (Table, "rewrite", at_the_third_table),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(place, name, breaks)
            with pytest.raises(KeyboardInterrupt):
                nights.maintain()
        nights.levels()

    nights.maintain()

    assert nights.levels() == ["ledger", "ledger", "records", "bodies"]
    assert [len(nights.files("evidence", "pages", each)) for each in nights.names[:3]] == [1, 1, 1]
    assert not nights.files("staging", "records", nights.names[1])


def test_altered_rows_are_not_signed_anew(nights: Nights) -> None:
    first = nights.names[0]
    pages = nights.root / "lake" / "evidence" / "customers" / "pages"
    alter(pages, first, lambda t: t.set_column(0, t.field(0), t.column(0)).slice(0, len(t) - 1))

    came = nights.maintain(Retention(bodies=Keep(generations=3)))

    assert [(each.generation, each.what) for each in came.refused] == [(first, "bodies")]
    assert not nights.audits()[0].agrees


def test_without_a_policy_nothing_goes_but_what_no_version_names(nights: Nights) -> None:
    """Old log entries and a broken write's files go; every audit is as deep as before."""
    table = nights.root / "lake" / "staging" / "customers" / "records"
    (kept,) = nights.files("staging", "records", nights.names[0])
    left = kept.with_name(f"part-{1:020d}-left-00000.parquet")
    shutil.copy(kept, left)
    logs = sorted(table.glob("_delta_log/*.json"))
    for log in logs:
        os.utime(log, (0, 0))

    came = nights.maintain(None)

    assert (came.swept_files, left.exists(), kept.exists()) == (1, False, True)
    assert len(sorted(table.glob("_delta_log/*.json"))) < len(logs)
    assert maintenance.tables_of("customers", workspace=nights.workspace())
    assert nights.levels() == ["bodies"] * 4


def test_word_of_before_is_not_played_again(nights: Nights) -> None:
    """The last word holds, and not one that is copied under a later name."""
    first, workspace = nights.names[0], nights.workspace()
    for state in ("held", "released", "held"):
        say_hold("customers", first, state=state, because="7", by="ann", workspace=workspace)
    notes = nights.root / "lake" / "receipts" / "customers" / "holds"
    released = sorted(notes.iterdir())[1]
    later = notes / f"{first}_20991130T020000000000Z.holds.json"
    later.write_bytes(released.read_bytes())

    came = nights.maintain()

    (told,) = {each.reason for each in came.kept_back if each.generation == first}
    assert "does not verify" in told
