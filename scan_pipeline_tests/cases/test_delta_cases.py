"""The cases of the family `delta`, replayed step by step through the tables as writers see them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError, WriterConflictError
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reading import Collection
from scan_pipeline.store.admission import Admission
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.published_table import open_published
from scan_pipeline.store.tables import Table, open_table
from scan_pipeline_tests.cases.replay import field_case
from scan_pipeline_tests.conftest import Bench

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"

Row = Mapping[str, Any]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def schema_of(*names: str) -> pa.Schema:
    fields = [pa.field(name, pa.string() if name == "id" else pa.int64()) for name in names]
    return pa.schema([pa.field("scan_generation", pa.string(), nullable=False), *fields])


def rows_of(rows: Sequence[Row], *, generation: str = NIGHT) -> pa.Table:
    said = [{"scan_generation": generation, **row} for row in rows]
    return pa.Table.from_pylist(said, schema=schema_of(*rows[0]))


def shown(table: Table, column: str) -> list[str]:
    """Return a column of the newest version, as anyone reads it who knows no generation."""
    found: list[str] = []
    for generation in table.generations():
        found += map(str, table.read(generation, columns=[column])[column].to_pylist())
    return sorted(found)


def test_c103_overwrite_from_an_old_handle_leaves_no_row_of_another_writer(lake: Lake) -> None:
    """Delta commits such an overwrite and keeps the row that it never saw."""
    told = field_case("C103")
    first, _, _, appended, overwritten = told["scenario"]["steps"]
    table = open_published(lake, "replayed", schema_of("k"))
    table.append(rows_of(first["write"]), generation=NIGHT)
    second = rows_of(overwritten["overwrite"])

    def meanwhile() -> Iterator[pa.RecordBatch]:
        """Give the rows of the overwrite, whose handle is open, after the other's append."""
        table.append(rows_of(appended["append"]), generation=NIGHT)
        yield from second.to_batches()

    late = pa.RecordBatchReader.from_batches(second.schema, meanwhile())
    with pytest.raises(WriterConflictError):
        table.replace_all(late, generation=NIGHT)

    assert shown(table, "k") in told["expected"]["allowed_tables"]
    assert table.replace_all(second, generation=NIGHT) == 1
    assert shown(table, "k") in told["expected"]["allowed_tables"]


def test_c104_overwritten_generation_holds_the_new_rows_alone(lake: Lake) -> None:
    told = field_case("C104")
    written, overwritten, _ = told["scenario"]["steps"]
    table = open_table(lake, "staging", "replayed", "records", schema_of("k"))
    for rows in (written["write"], overwritten["overwrite"]):
        kept = [{"k": row["k"]} for row in rows]
        table.replace_generation(rows_of(kept), generation=NIGHT)

    assert shown(table, "k") == told["expected"]["ids"]
    assert table.read(NIGHT).num_rows == told["expected"]["rows"]


def test_c104_overwrite_that_left_the_old_rows_is_found_when_read_back(bench: Bench) -> None:
    """Whatever a library makes of a write, the figures are those of the tables as they are."""
    scan = bench.scan()
    workspace = bench.workspace(bench.registry(size=200))
    pipeline = Pipeline(scan, NIGHT, workspace=workspace)
    pipeline.pages()
    pipeline.records()
    table = workspace.store(scan.name, NIGHT).records()
    staged = Table(table.uri, table.written_schema(NIGHT), location=table.location)
    old = pa.Table.from_batches(table.batches(NIGHT), schema=staged.schema)

    staged.append(old, generation=NIGHT)
    pipeline.reconciliation()
    receipt = pipeline.receipt().receipt

    assert (receipt.coverage_status, receipt.records_observed) == ("failed", 400)
    assert receipt.duplicate_ids == 200
    with pytest.raises(GateClosedError):
        Collection(scan, workspace=workspace).generation(NIGHT)


def test_c108_rows_with_a_column_that_the_table_lacks_are_refused_by_name(lake: Lake) -> None:
    told = field_case("C108")
    written, merged = told["scenario"]["steps"]
    (dropped,) = told["expected"]["dropped_columns"]
    before = open_table(lake, "staging", "replayed", "records", schema_of("id", "v"))
    before.append(rows_of(written["write"]), generation=NIGHT)
    more = rows_of(merged["merge"], generation=NEXT_NIGHT)

    with pytest.raises(ContractError, match=dropped):
        before.append(more, generation=NEXT_NIGHT)
    after = Table(before.uri, more.schema, location=before.location)
    with pytest.raises(ContractError, match=dropped):
        after.append(more, generation=NEXT_NIGHT)

    assert before.generations() == (NIGHT,)


def test_c108_generation_with_another_column_keeps_it_where_that_is_asked_for(lake: Lake) -> None:
    told = field_case("C108")
    written, merged = told["scenario"]["steps"]
    before = open_table(lake, "staging", "replayed", "records", schema_of("id", "v"))
    before.append(rows_of(written["write"]), generation=NIGHT)
    more = rows_of(merged["merge"], generation=NEXT_NIGHT)

    after = Table(before.uri, more.schema, location=before.location)
    after.replace_generation(more, generation=NEXT_NIGHT, evolve=True)

    assert after.read(NEXT_NIGHT).to_pylist() == more.to_pylist()


def test_c108_field_that_the_schema_does_not_know_is_kept_and_told(bench: Bench) -> None:
    told = field_case("C108")
    rows = told["scenario"]["steps"][1]["merge"]
    (dropped,) = told["expected"]["dropped_columns"]
    columns = [{"name": "id", "type": "string", "nullable": False}, {"name": "v", "type": "int64"}]
    lines = [json.dumps(each).encode() for each in rows]

    walked = bench.walk_records([lines], {"record_schema": columns})

    frame = walked.collection.generation(walked.generation).frame().collect()
    assert frame["id"].to_list() == told["expected"]["ids"]
    assert frame["_extra"].to_list() == [f'{{"{dropped}":{each[dropped]}}}' for each in rows]
    assert walked.notes == {"unknown_field"}


EVENTS = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("cursor_out_digest", pa.binary(), nullable=False),
        pa.field("chain", pa.binary(), nullable=False),
        pa.field("k", pa.int64()),
    ]
)


def test_c109_commit_that_is_sent_again_doubles_no_row(lake: Lake) -> None:
    """The library takes it twice; the fence before it looks what was committed."""
    told = field_case("C109")
    table = open_table(lake, "evidence", "replayed", "pages", EVENTS)
    fence = Admission(table, scan="replayed", generation=NIGHT, shard=0)
    outcomes: list[bool] = []
    for step in told["scenario"]["steps"]:
        rows = [
            {
                "scan_generation": NIGHT,
                "shard": 0,
                "seq": seq,
                "event": "open" if seq == 0 else "page",
                "cursor_out_digest": sha256(b"%d" % seq).digest(),
                "chain": sha256(b"chain %d" % seq).digest(),
                "k": row["k"],
            }
            for seq, row in enumerate(step["append"])
        ]
        group = pa.RecordBatch.from_pylist(rows, schema=EVENTS)
        try:
            fence.commit(group, expected=None, sealed=lambda: False)
        except WriterConflictError:
            outcomes.append(False)
        else:
            outcomes.append(True)

    assert outcomes == [True, False]
    assert shown(table, "k") == told["expected"]["ids"]
    assert table.read(NIGHT).num_rows == told["expected"]["rows"]


def test_c109_write_under_a_committed_version_is_refused(lake: Lake) -> None:
    told = field_case("C109")
    table = open_table(lake, "staging", "replayed", "records", schema_of("k"))
    first, again = told["scenario"]["steps"]
    app_id, version = first["txn"]
    table.append(rows_of(first["append"]), generation=NIGHT, app_id=app_id, version=version)

    with pytest.raises(WriterConflictError, match=f"found version {version}"):
        table.append(rows_of(again["append"]), generation=NIGHT, app_id=app_id, version=version)

    assert shown(table, "k") == told["expected"]["ids"]
