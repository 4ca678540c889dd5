"""A key erased on request is in no file that remains, and every receipt still says what it said."""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from scan_pipeline.core.errors import ContractError, ErasedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.faults import PageReplaced, RowsWithheld
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.audit import Audit, AuditReport
from scan_pipeline.stages.bundle import bundle
from scan_pipeline.stages.bundling.audit import audit_bundle
from scan_pipeline.stages.erase import Erasure, erase
from scan_pipeline.stages.erasing.rewriting import Rewriting
from scan_pipeline.stages.maintain import maintain
from scan_pipeline.stages.readers.changes import changes
from scan_pipeline.stages.readers.export import export
from scan_pipeline.stages.readers.inclusion import prove_key
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.reporting.gather import gather
from scan_pipeline.stages.reporting.report import make_report
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.trial import run_trial
from scan_pipeline.stages.trial_place import trials_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.published_table import REDACTED, open_published
from scan_pipeline_tests.conftest import Bench, SteppingClock
from scan_pipeline_tests.stages.night_process import project_in

KEY = "customer-1"
"""The first of its partition, on the first page of every night."""

NAMES_IT = re.compile(rb"(?<![\w-])customer-1(?![\w-])|\bada\.1@example|\.1@example\.com")
"""The key as a word of its own, or the address that only this customer has."""


@dataclass(frozen=True)
class Lake:
    """Nights of one scan: whole, rows withheld, a page twice, whole; one restaged, and a trial."""

    root: Path
    scan: Scan
    names: tuple[str, ...]
    clock: SteppingClock

    def workspace(self) -> Workspace:
        return Workspace(project_in(self.root), environ={}, clock=self.clock)

    def erase(self, because: str = "request 7") -> Erasure:
        return erase(self.scan, (KEY,), because=because, by="dpo", workspace=self.workspace())

    def audit(self, name: str) -> AuditReport:
        return Audit(self.scan.name, name, workspace=self.workspace()).run()

    def receipt(self, name: str) -> bytes:
        return (self.root / "lake/receipts/customers" / f"{name}.dsse.json").read_bytes()

    def naming(self) -> set[str]:
        """Return the files whose bytes, or what they decode to, name the customer."""
        files = (each for each in (self.root / "lake").rglob("*") if each.is_file())
        found = {str(each) for each in files if any(map(NAMES_IT.search, decoded(each)))}
        for place in (self.workspace(), self.workspace().at(trials_of(project_in(self.root)))):
            pages = place.store("customers", self.names[0]).pages()
            for generation in pages.generations():
                store = place.store("customers", generation)
                bodies = [body for _, body in store.bodies(past_erased=True)]
                tokens = [
                    store.sealer().open(
                        cell, context=f"customers/{generation}/0/{seq}/{n}".encode()
                    )
                    for n in ("cursor_in", "cursor_out")
                    for seq, cell in zip(
                        *(pages.read(generation)[c].to_pylist() for c in ("seq", n)), strict=True
                    )
                    if cell is not None
                ]
                if any(map(NAMES_IT.search, (*bodies, *tokens))):
                    found.add(f"sealed {generation}")
        return found


def decoded(file: Path) -> Iterator[bytes]:
    """Yield a file's bytes, its signed payload, its columns decoded, and their statistics."""
    data = file.read_bytes()
    yield data
    if file.suffix == ".json" and data.startswith(b'{"payload"'):
        yield base64.b64decode(json.loads(data)["payload"])
    if file.suffix == ".parquet":
        parquet = pq.ParquetFile(file)
        for column in parquet.read().columns:
            for value in column.to_pylist():
                text = value if isinstance(value, bytes) else str(value).encode()
                yield text
                if text.startswith(b'{"payload"'):
                    yield base64.b64decode(json.loads(text)["payload"])
        yield str(parquet.metadata.to_dict()).encode()


@pytest.fixture(scope="module")
def laid_in(tmp_path_factory: pytest.TempPathFactory, shipped: Any) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("erasing")
    nights = ((), (RowsWithheld(page=1, rows=100),), (PageReplaced(page=2, by=1),), ())
    with ExitStack() as stack:
        bench = Bench(folder=folder, stack=stack, shipped=shipped)
        scan, names = bench.scan(), []
        workspace = bench.workspace(project=project_in(folder))
        for faults in nights:
            registry = bench.registry(size=200, script=Script(faults=faults))
            workspace = bench.workspace(registry, project=project_in(folder))
            names.append(run_scan(scan, workspace=workspace).stored.receipt.scan_generation)
            bench.clock.now += timedelta(days=1)
        run_trial(scan, pages=1, workspace=workspace)
        again = restage(scan, names[0], workspace=workspace).receipt.scan_generation
        yield Lake(folder, scan, (*names, again), bench.clock)


@pytest.fixture
def lake(laid_in: Lake, tmp_path: Path) -> Lake:
    shutil.copytree(laid_in.root, tmp_path / "lake_of_one")
    return replace(laid_in, root=tmp_path / "lake_of_one")


def test_erased_key_is_in_no_file_and_every_receipt_audits(lake: Lake) -> None:
    whole, withheld, twice, newest, again = lake.names
    before = {name: lake.receipt(name) for name in lake.names}
    levels = {name: lake.audit(name).level for name in lake.names}
    assert len(lake.naming()) > 20

    came = lake.erase()

    assert lake.naming() == set()
    assert came.left == ()
    records = {each.generation: each.records for each in came.erased}
    assert [records[name] for name in lake.names] == [1, 0, 2, 1, 1]
    assert sum(each.generation.startswith("trials/") for each in came.erased) == 1
    said = f"1 record redacted on {lake.clock.now:%Y-%m-%d}"
    for name in (whole, newest, again):
        report = lake.audit(name)
        assert (report.disagreements, report.word()) == ((), f"verified, {said}")
        assert report.level == levels[name] == "bodies"
        computed = {each.name for each in report.checks if each.agrees}
        assert {"merkle.root", "missing_id_ranges", "expectations", "findings"} <= computed
        assert lake.receipt(name) == before[name]
    for name in (withheld, twice):  # their receipts named it: gaps, and keys that came twice
        report = lake.audit(name)
        assert (report.disagreements, report.level) == ((), levels[name])
        assert "receipt copied without a redacted key in place of sha256:" in report.word()
        assert lake.receipt(name) != before[name]

    opened = Collection(lake.scan, workspace=lake.workspace())
    assert opened.latest().arrow().num_rows == 199
    assert opened.latest().word().endswith(f"Since then: {said}.")
    _, note = export(opened.latest(), lake.root, form="csv", workspace=lake.workspace())
    assert note.statement.endswith(f"Since then: {said}.")
    commit = open_published(lake.workspace().lake, "customers").latest_commit()
    assert commit[REDACTED] == said
    stored = opened.receipt(newest)
    reported = make_report(gather(stored, workspace=lake.workspace(), audited=False))
    assert said in str(reported.glance[-1])
    told = changes(
        opened.generation(again),
        opened.latest(),
        partition_by=lake.scan.contract.partition_by,
        workspace=lake.workspace(),
    )
    assert (told.redacted, f"; {said}, in no count." in told.statement()) == (said, True)
    with pytest.raises(ErasedError):
        prove_key(opened.latest(), [KEY], scan=lake.scan, workspace=lake.workspace())
    other = prove_key(opened.latest(), ["customer-150"], scan=lake.scan, workspace=lake.workspace())
    assert (other.result, other.root) == ("included", opened.latest().receipt.merkle.root)
    for name in (newest, twice):
        made = lake.root / f"{name}.zip"
        depth = "table" if name == newest else "none"
        bundle(opened.receipt(name), made, workspace=lake.workspace(), records=depth)
        found = audit_bundle(made, trust=lake.workspace().trust)
        assert found.disagreements == ()
    with pytest.raises(ContractError, match="redacted on"):
        restage(lake.scan, newest, workspace=lake.workspace())

    assert lake.erase().left == ()
    maintain(lake.scan, workspace=lake.workspace())
    assert lake.audit(newest).word() == f"verified, {said}"


@pytest.mark.long
def test_break_anywhere_reads_right_and_is_completed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off once after each thing that is said, again and again, until it comes through."""
    whole, broken = Rewriting._announce, 0

    while True:
        told = []

        def once(self: Rewriting, generation: str, **arguments: Any) -> None:
            whole(self, generation, **arguments)
            told.append(generation)  # noqa: B023
            if len(told) == 2:  # noqa: B023
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Rewriting, "_announce", once)
            try:
                lake.erase()
                break
            except KeyboardInterrupt:
                broken += 1
        report = lake.audit(lake.names[broken % len(lake.names)])
        assert report.disagreements == ()

    assert broken > 3
    assert lake.naming() == set()
    assert [lake.audit(name).disagreements for name in lake.names] == [()] * 5


def test_what_cannot_be_erased_is_told(lake: Lake) -> None:
    """A file of somebody else beside ours; and a reason, which is kept, must not name the key."""
    with pytest.raises(ContractError, match="names the key"):
        lake.erase(because=f"{KEY} asked")
    beside = Path(lake.root / "lake" / "staging" / "customers" / "notes.json")
    beside.write_text(json.dumps({"note": f"see {KEY}"}))

    came = lake.erase()

    assert [each.where for each in came.left] == ["staging/customers/notes.json"]


def test_number_is_in_no_statistic_or_log(bench: Bench) -> None:
    """The greatest of a column of whole numbers stands in footers, log entries and checkpoints."""
    number, other = 987_654_321, 987_654_320
    pages = [[b'{"id":%d,"n":%d}' % (n, n) for n in (1, other)], [b'{"id":%d,"n":7}' % number]]
    columns = [{"name": "id", "type": "int64"}, {"name": "n", "type": "int64"}]
    walked = bench.walk_records(pages, {"record_schema": columns})
    walked = walked.again()
    root = Path(walked.workspace.project.lake)
    packed = (str(number).encode(), number.to_bytes(8, "little"))

    def naming() -> list[Path]:
        files = [each for each in root.rglob("*") if each.is_file()]
        return [f for f in files if any(p in text for text in decoded(f) for p in packed)]

    assert len(naming()) > 5

    came = erase(walked.scan, (number,), because="request 8", by=None, workspace=walked.workspace)

    assert ([each.records for each in came.erased], came.left) == ([1, 1], ())
    assert naming() == []
    published = walked.published()
    assert published is not None
    assert published["id"].to_list() == [1, other]
    report = Audit("things", walked.generation, workspace=walked.workspace).run()
    assert (report.disagreements, report.level) == ((), "bodies")

    bench.clock.now -= timedelta(days=3)  # set back: what was said last holds all the same
    erase(walked.scan, (1,), because="request 9", by=None, workspace=walked.workspace)
    report = Audit("things", walked.generation, workspace=walked.workspace).run()
    assert report.disagreements == ()
    assert "2 records redacted on 2026-11-30" in report.word()
