"""Exports and what is found out about them without the lake."""

import csv
import json
import shutil
from datetime import timedelta
from decimal import Decimal

import polars as pl
import pyarrow.parquet as pq
import pytest

from scan_pipeline.core.errors import ContractError, EvidenceError, GateClosedError, TamperedError
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.readers.conditions import Condition
from scan_pipeline.stages.readers.export import check_export, export, note_path

LIVE = {
    "source.snapshot": ...,
    "source.params": {"view": "live"},
    "contract.consistency": "live",
    "contract.accept": {"scope": "records_encountered_in_live_traversal"},
}


@pytest.fixture
def walked(bench):
    return bench.walk(bench.registry(size=250))


def whole(walked, folder, **arguments):
    opened = walked.collection.latest()
    return export(opened, folder, form="csv", workspace=walked.workspace, **arguments)


def test_name_carries_scan_generation_and_verdict(walked, tmp_path):
    path, note = whole(walked, tmp_path)

    assert path.name == f"customers.{walked.generation}.verified.csv"
    assert note.statement.startswith("250 of 250 records. ")
    assert check_export(path, trust=walked.workspace.trust) == note


def test_rows_of_a_filtered_file_are_said_to_be_so_many_of_all(walked, tmp_path):
    where = (Condition(field="region", value="eu"),)
    path, note = whole(walked, tmp_path, where=where, columns=("customer_id", "balance"))
    rows = list(csv.reader(path.read_text("utf-8").splitlines()))
    frame = walked.collection.latest().frame().collect()
    expected = frame.filter(pl.col("region") == "eu")

    assert path.name.endswith(".verified.filtered.csv")
    assert rows[0] == ["customer_id", "balance"]
    assert (note.rows, note.population) == (len(rows) - 1, 250) == (expected.height, 250)
    assert {row[0]: Decimal(row[1]) for row in rows[1:]} == dict(
        expected.select("customer_id", "balance").iter_rows()
    )
    assert f"{note.rows} of 250 records where region" in note.statement


def test_part_is_named_partial_and_every_row_says_what_it_is(bench, tmp_path):
    walked = bench.walk(bench.registry(size=250), LIVE)
    opened = walked.collection.partial(
        walked.generation, accept="records_encountered_in_live_traversal"
    )
    path, note = export(opened, tmp_path, form="csv", workspace=walked.workspace)
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))

    assert ".PARTIAL." in path.name
    assert {row["_receipt_id"] for row in rows} == {note.receipt_id}
    assert {row["_conclusion_scope"] for row in rows} == {"records_encountered_in_live_traversal"}


def test_parquet_has_the_receipt_in_its_metadata(walked, tmp_path):
    opened = walked.collection.latest()
    path, note = export(opened, tmp_path, form="parquet", workspace=walked.workspace)
    told = pq.read_schema(path).metadata

    assert told[b"scan_pipeline.receipt_id"].decode() == note.receipt_id
    assert told[b"scan_pipeline.rows"] == b"250 of 250"
    assert pl.read_parquet(path).height == 250


@pytest.mark.parametrize("change", ["cut", "edit", "rename", "note", "another"])
def test_file_that_was_changed_after_it_was_exported_is_found_out(walked, tmp_path, change):
    path, _ = whole(walked, tmp_path)
    trust = walked.workspace.trust
    if change == "cut":
        path.write_bytes(path.read_bytes().rsplit(b"\n", 2)[0] + b"\n")
    elif change == "edit":
        path.write_bytes(path.read_bytes().replace(b"active", b"closed", 1))
    elif change == "rename":
        other = path.with_name(path.name.replace("verified", "corroborated"))
        shutil.move(note_path(path), note_path(other))
        path = path.rename(other)
    elif change == "note":
        envelope = json.loads(note_path(path).read_bytes())
        envelope["payload"] = envelope["payload"][:-4] + "AAA="
        note_path(path).write_text(json.dumps(envelope))
    else:
        where = (Condition(field="region", value="eu"),)
        filtered, _ = whole(walked, tmp_path, where=where)
        shutil.copy(filtered, path)

    with pytest.raises(TamperedError):
        check_export(path, trust=trust)


def test_file_without_its_note_proves_nothing(walked, tmp_path):
    path, _ = whole(walked, tmp_path)
    note_path(path).unlink()

    with pytest.raises(EvidenceError, match="its note"):
        check_export(path, trust=walked.workspace.trust)


def test_receipt_is_no_note(walked, tmp_path):
    path, _ = whole(walked, tmp_path)
    receipts = walked.workspace.receipts("customers")
    note_path(path).write_bytes(receipts.envelope(walked.generation))

    with pytest.raises(TamperedError):
        check_export(path, trust=walked.workspace.trust)


def test_another_file_of_that_name_is_left_alone(walked, tmp_path):
    path, _ = whole(walked, tmp_path)
    path.write_text("mine")

    with pytest.raises(ContractError, match="another file"):
        whole(walked, tmp_path)
    assert path.read_text() == "mine"


def test_exporting_again_gives_the_same_file(walked, tmp_path, bench):
    path, _ = whole(walked, tmp_path)
    before = path.read_bytes()
    bench.clock.sleep(timedelta(hours=1).total_seconds())

    assert whole(walked, tmp_path)[0].read_bytes() == before


def test_failed_generation_is_exported_by_nobody(bench, tmp_path):
    walked = bench.walk(scenario("page_skipped_count_matches"))

    with pytest.raises(GateClosedError, match="nothing opens"):
        walked.collection.newest_part(accept="observed_pages_only")
    with pytest.raises(GateClosedError, match="failed generation"):
        walked.collection.partial(walked.generation, accept="observed_pages_only")
