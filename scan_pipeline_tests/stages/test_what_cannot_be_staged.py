"""A closed walk that cannot be staged or reconciled ends in a receipt, and the next one is new."""

import json
from pathlib import Path

import httpx2
import pytest

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.sources.catalogue import ScanFileError, parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.records import inference
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.stage import Staging
from scan_pipeline_tests.conftest import THINGS, edited, laid_down

INFERRED = {"record_schema": ...}


def told(walked):
    return [f.found for f in walked.receipt.findings.first if f.code == "field_without_column"]


def staged(walked):
    return walked.collection.generation(walked.generation).frame().collect()


def test_members_that_differ_in_case_alone_leave_one_column(bench):
    """Delta takes no notice of case: the first name has the column, the other stays in text."""
    walked = bench.walk_records([[b'{"id":1,"ID":"x"}', b'{"ID":"y","id":2}']], INFERRED)

    assert walked.receipt.accepted
    rows = staged(walked)
    assert rows["id"].to_list() == [1, 2]
    assert [json.loads(each) for each in rows["_extra"]] == [{"ID": "x"}, {"ID": "y"}]
    assert told(walked) == ["ID in 2 records"]


def test_the_field_that_the_contract_names_has_the_column(bench):
    edits = {**INFERRED, "contract.partition_by": "Region"}
    walked = bench.walk_records([[b'{"id":1,"region":"x","Region":"eu"}']], edits)

    assert walked.receipt.accepted
    assert staged(walked)["Region"].to_list() == ["eu"]


def test_member_name_with_a_nul_stays_in_the_text(bench):
    walked = bench.walk_records([[b'{"id":1,"a\\u0000b":"x"}']], INFERRED)

    assert walked.receipt.accepted
    rows = staged(walked)
    assert json.loads(rows["_extra"][0]) == {"a\x00b": "x"}
    assert not {"a", "a\x00b"} & {*rows.columns}


def test_a_name_in_another_case_is_the_column_of_the_next_generation(bench):
    """The table shows the newest name; each generation is read with its own."""
    first = bench.walk_records([[b'{"id":1,"Name":"x"}']], INFERRED)
    inner = laid_down([[b'{"id":1,"name":"y"}']])
    place = bench.workspace(inner=inner, project=first.workspace.project)

    second = run_scan(first.scan, workspace=place)

    assert second.stored.receipt.accepted
    assert staged(first)["Name"].to_list() == ["x"]
    later = first.collection.generation(second.stored.receipt.scan_generation)
    assert later.frame().collect()["name"].to_list() == ["y"]


def test_columns_are_inferred_up_to_a_bound(bench):
    """Records that use values as names have members without end; their text keeps them."""
    page = [
        json.dumps({"id": row, **{f"m{row}_{n}": n for n in range(20)}}).encode()
        for row in range(1_000)
    ]
    walked = bench.walk_records([page], INFERRED)

    assert walked.receipt.accepted
    rows = staged(walked)
    assert len([name for name in rows.columns if name.startswith("m")]) == 1_023
    assert json.loads(rows["_extra"][-1]) == {f"m999_{n}": n for n in range(20)}
    assert len(told(walked)) == 100
    assert walked.receipt.findings.total == 101


def test_scattered_members_are_not_laid_out_cell_by_cell(monkeypatch):
    """A reader of whole pages would make a cell of each record and each member of any."""
    cells = []
    at_once = inference._kinds_at_once

    def counted(records):
        found = at_once(records)
        cells.append(len(records) * len(found or ()))
        return found

    monkeypatch.setattr(inference, "_kinds_at_once", counted)
    page = [b"{%s}" % b",".join(b'"m%d_%d":1' % (r, n) for n in range(20)) for r in range(4_000)]

    inference.infer_columns([page, page])

    assert sum(cells) <= inference.CELLS


@pytest.mark.parametrize("name", ["_page", "scan_generation", "Scan_Generation", "a\x00b"])
@pytest.mark.parametrize("field", ["partition_by", "expect"])
def test_contract_cannot_name_a_column_of_ours(things, name, field):
    value = {"every_record": {name: 1}} if field == "expect" else name
    with pytest.raises(ScanFileError, match="no field has"):
        things({**INFERRED, f"contract.{field}": value})


def test_contract_cannot_name_one_column_in_two_cases(things):
    edits = {"contract.partition_by": "Region", "contract.expect": {"every_record": {"region": 1}}}
    with pytest.raises(ScanFileError, match="one column"):
        things({**INFERRED, **edits})


def test_walk_begun_under_a_name_of_ours_is_certified_and_left_behind(bench):
    """An earlier version let a scan file say so; its closed walks must not wait for ever."""
    raw = edited(THINGS, {**INFERRED, "contract.partition_by": "_page"})
    old, now = parse_scan(raw, stored=True), parse_scan(edited(THINGS, INFERRED))
    workspace = bench.workspace(inner=laid_down([[b'{"id":1}']]))
    Pipeline(old, "20261130T010000Z", workspace=workspace).pages()

    night = run_scan(now, workspace=workspace)

    (closed,) = (each.receipt for each in night.closed)
    assert (closed.coverage_status, closed.traversal) == ("failed", "finished")
    assert {f.code for f in closed.findings.first} == {"not_reconcilable"}
    assert (closed.records_observed, closed.unique_ids_observed) == (1, 0)
    assert closed.merkle.root is None
    assert night.left == ()
    assert night.stored.receipt.accepted
    assert Audit("things", "20261130T010000Z", workspace=workspace).run().disagreements == ()


def manifest(folder: Path, *keys: str) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text("".join(f'"{key}"\n' for key in keys), encoding="utf-8")
    return path


@pytest.mark.parametrize("lines", [None, "{\n", "1.5\n"])
def test_manifest_is_read_before_the_first_request(bench, tmp_path, lines):
    path = tmp_path / "manifest.jsonl"
    if lines is not None:
        path.write_text(lines, encoding="utf-8")
    asked = []

    def answer(request):
        asked.append(request)
        raise AssertionError

    with pytest.raises(ContractError, match="manifest"):
        bench.walk_records(
            [[b'{"id":"a"}']],
            {"contract.expect": {"manifest": str(path)}},
            inner=httpx2.MockTransport(answer),
        )

    assert asked == []


def test_manifest_that_is_gone_after_the_walk_fails_the_night_and_not_the_next(
    bench, tmp_path, things
):
    path = manifest(tmp_path, "a")
    scan = things({"contract.expect": {"manifest": str(path)}})
    workspace = bench.workspace(inner=laid_down([[b'{"id":"a","n":1}']]))
    Pipeline(scan, "20261130T010000Z", workspace=workspace).pages()
    path.unlink()

    failed = run_scan(scan, workspace=workspace).stored.receipt

    assert (failed.scan_generation, failed.coverage_status) == ("20261130T010000Z", "failed")
    assert [f.code for f in failed.findings.first] == ["not_reconcilable"]
    assert str(path) in failed.findings.first[0].found
    manifest(tmp_path, "a")
    night = run_scan(scan, workspace=workspace).stored.receipt
    assert (night.coverage_status, night.accepted) == ("verified", True)
    assert night.scan_generation > failed.scan_generation
    again = restage(scan, failed.scan_generation, workspace=workspace).receipt
    assert (again.coverage_status, again.supersedes is not None) == ("verified", True)


def test_manifest_that_cannot_be_read_is_no_receipt(bench, tmp_path, things, monkeypatch):
    """What the disk does tonight it may not do tomorrow."""
    path = manifest(tmp_path, "a")
    scan = things({"contract.expect": {"manifest": str(path)}})
    workspace = bench.workspace(inner=laid_down([[b'{"id":"a","n":1}']]))
    pipeline = Pipeline(scan, "20261130T010000Z", workspace=workspace)
    pipeline.pages()
    pipeline.records()

    def broken(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", broken)
    with pytest.raises(ConfigurationError):
        pipeline.reconciliation()

    assert not pipeline.is_sealed()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ZeroDivisionError()])
def test_fault_of_the_disk_or_of_ours_is_no_receipt(bench, things, monkeypatch, error):
    scan, workspace = things(), bench.workspace(inner=laid_down([[b'{"id":"a","n":1}']]))
    pipeline = Pipeline(scan, "20261130T010000Z", workspace=workspace)
    pipeline.pages()

    def broken(_):
        raise error

    monkeypatch.setattr(Staging, "run", broken)
    with pytest.raises(type(error)):
        run_scan(scan, workspace=workspace)

    assert not pipeline.is_sealed()


def test_partition_by_a_list_is_refused_before_the_walk(bench, tmp_path, monkeypatch):
    (tmp_path / "listed.py").write_text(
        "import pandera.polars as pa\nimport polars as pl\n"
        "class Model(pa.DataFrameModel):\n    id: str\n    n: pl.List(pl.Int64)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    edits = {"record_schema": "listed.Model", "contract.partition_by": "n"}

    with pytest.raises(ContractError, match="single values"):
        bench.walk_records([[b'{"id":"a","n":[1]}']], edits)
