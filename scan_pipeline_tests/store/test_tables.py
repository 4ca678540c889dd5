"""Tables on real files: what a write does to its generation, and what it leaves alone."""

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from scan_pipeline.core.errors import (
    ContractError,
    EvidenceError,
    TamperedError,
    WriterConflictError,
)
from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.published_table import open_published
from scan_pipeline.store.tables import Table, open_table

FIRST, RESTART, SECOND = "20261130T020000Z", "20261130T020000Z.2", "20261201T020000Z"

SCHEMA = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("sealed", pa.binary()),
    ]
)

LAYOUT = Layout(opaque=("sealed",), dictionary=("name",))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "a lake, ünter @1"))


@pytest.fixture
def table(lake: Lake) -> Table:
    return open_table(lake, "staging", "customers", "records", SCHEMA, layout=LAYOUT)


def rows(generation: str, numbers: range) -> pa.Table:
    at = datetime(2026, 11, 30, 2, tzinfo=UTC)
    return pa.Table.from_pylist(
        [
            {
                "scan_generation": generation,
                "number": number,
                "name": f"name {number % 3}" if number % 7 else None,
                "at": at,
                "tags": ["a", None][: number % 3],
                "sealed": hashlib.sha256(b"%d" % number).digest(),
            }
            for number in numbers
        ],
        schema=SCHEMA,
    )


def numbers(table: Table, generation: str) -> list[int]:
    return table.read(generation, columns=["number"]).column(0).to_pylist()


def contents(table: Table, generation: str) -> dict[str, str]:
    """Give the digest of every file of a generation."""
    return {
        file.path: hashlib.sha256(Path(table.uri, file.path).read_bytes()).hexdigest()
        for file in table.files(generation)
    }


def files_on_disk(table: Table) -> set[str]:
    return {str(path.relative_to(table.uri)) for path in Path(table.uri).rglob("*.parquet")} - {
        str(path.relative_to(table.uri)) for path in Path(table.uri, "_delta_log").rglob("*")
    }


def test_rows_come_back_as_they_were_written(table: Table) -> None:
    written = rows(FIRST, range(10))

    assert table.append(written, generation=FIRST) == 10
    assert table.read(FIRST).equals(written)
    assert table.read(FIRST, columns=["name", "scan_generation"]).equals(
        written.select(["name", "scan_generation"])
    )
    assert table.read(FIRST, columns=["scan_generation"]).num_rows == 10


def test_a_table_that_nobody_wrote_has_no_rows_and_is_not_created_by_a_look(table: Table) -> None:
    assert not table.exists()
    assert table.read(FIRST).equals(SCHEMA.empty_table())
    assert table.files(FIRST) == ()
    assert table.generations() == ()
    assert table.transaction_version("a") is None
    with pytest.raises(EvidenceError, match="found no table"):
        table.version()
    assert not Path(table.uri).exists()


def test_a_table_opened_without_a_schema_reads_the_columns_that_were_written(
    table: Table,
) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST)
    reader = Table(table.uri)

    assert reader.location == "staging/customers/records"
    assert reader.read(FIRST).equals(table.read(FIRST))
    assert reader.read(SECOND).equals(SCHEMA.empty_table())
    with pytest.raises(ContractError, match="found no schema"):
        reader.append(rows(FIRST, range(3)), generation=FIRST)


def test_replacing_a_generation_leaves_the_others_byte_for_byte(table: Table) -> None:
    for generation in (FIRST, RESTART, SECOND):
        table.append(rows(generation, range(5)), generation=generation)
        table.append(rows(generation, range(5, 8)), generation=generation)
    first, second = contents(table, FIRST), contents(table, SECOND)

    assert table.replace_generation(rows(RESTART, range(100, 104)), generation=RESTART) == 4

    assert numbers(table, RESTART) == [100, 101, 102, 103]
    assert (contents(table, FIRST), contents(table, SECOND)) == (first, second)
    assert table.generations() == (FIRST, RESTART, SECOND)


@pytest.mark.parametrize("kind", ["table", "batch", "stream"])
def test_replacing_a_generation_by_nothing_empties_it_and_no_other(table: Table, kind: str) -> None:
    nothing = {
        "table": SCHEMA.empty_table(),
        "batch": pa.RecordBatch.from_pylist([], schema=SCHEMA),
        "stream": pa.RecordBatchReader.from_batches(SCHEMA, iter(())),
    }[kind]
    for generation in (FIRST, RESTART, SECOND):
        table.append(rows(generation, range(5)), generation=generation)
    first, second = contents(table, FIRST), contents(table, SECOND)

    assert table.replace_generation(nothing, generation=RESTART) == 0

    assert table.read(RESTART).equals(SCHEMA.empty_table())
    assert table.generations() == (FIRST, SECOND)
    assert (contents(table, FIRST), contents(table, SECOND)) == (first, second)


def test_a_collection_of_nothing_creates_the_table(table: Table) -> None:
    assert table.replace_generation(SCHEMA.empty_table(), generation=FIRST) == 0
    assert table.exists()
    assert table.read(FIRST).num_rows == 0


def test_appending_nothing_commits_nothing(table: Table) -> None:
    table.append(rows(FIRST, range(2)), generation=FIRST)
    version = table.version()

    assert table.append(SCHEMA.empty_table(), generation=FIRST) == 0
    assert table.version() == version


def test_other_delta_readers_see_the_same_rows(table: Table) -> None:
    """The log's files, partition values and statistics are those the Delta library expects."""
    table.append(rows(FIRST, range(20)), generation=FIRST)
    table.replace_generation(rows(SECOND, range(30, 40)), generation=SECOND)
    reader = DeltaTable(table.uri).scan(predicate="number >= 35 AND number < 99")

    assert sorted(pa.table(reader).column("number").to_pylist()) == [35, 36, 37, 38, 39]
    assert DeltaTable(table.uri).count() == 30


@pytest.mark.parametrize("operation", ["append", "replace"])
def test_a_stream_keeps_its_order_over_files_and_row_groups(lake: Lake, operation: str) -> None:
    layout = Layout(row_group_rows=100, file_bytes=8_000, opaque=("sealed",))
    table = open_table(lake, "staging", "customers", "records", SCHEMA, layout=layout)
    batches = (rows(FIRST, range(n, n + 37)).to_batches()[0] for n in range(0, 3_700, 37))
    stream = pa.RecordBatchReader.from_batches(SCHEMA, batches)

    if operation == "append":
        table.append(stream, generation=FIRST)
    else:
        table.replace_generation(stream, generation=FIRST)

    assert numbers(table, FIRST) == list(range(3_700))
    assert len(table.files(FIRST)) > 3
    for uri in table.file_uris(FIRST):
        footer = pq.read_metadata(uri)
        groups = [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
        assert max(groups) <= 100


def test_row_groups_are_bounded_in_bytes(lake: Lake) -> None:
    layout = Layout(row_group_bytes=50_000)
    table = open_table(lake, "staging", "customers", "records", SCHEMA, layout=layout)
    large = [{**row, "sealed": b"x" * 20_000} for row in rows(FIRST, range(10)).to_pylist()]

    table.append(pa.Table.from_pylist(large, schema=SCHEMA), generation=FIRST)

    footer = pq.read_metadata(table.file_uris(FIRST)[0])
    assert [footer.row_group(index).num_rows for index in range(footer.num_row_groups)] == [2] * 5
    assert [batch.num_rows for batch in table.batches(FIRST)] == [2] * 5


def test_sealed_columns_are_neither_compressed_nor_encoded_nor_described(table: Table) -> None:
    table.append(rows(FIRST, range(1_000)), generation=FIRST)
    group = pq.read_metadata(table.file_uris(FIRST)[0]).row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(5)}

    sealed, name, number = columns["sealed"], columns["name"], columns["number"]
    assert (sealed.compression, sealed.has_dictionary_page) == ("UNCOMPRESSED", False)
    assert sealed.statistics is None
    assert (name.compression, name.has_dictionary_page) == ("ZSTD", True)
    assert (number.compression, number.has_dictionary_page) == ("ZSTD", False)


def test_a_writers_files_are_read_in_the_order_of_its_commits(table: Table) -> None:
    for start in range(0, 60, 5):
        table.append(rows(FIRST, range(start, start + 5)), generation=FIRST)

    assert numbers(table, FIRST) == list(range(60))
    paths = [file.path for file in table.files(FIRST)]
    assert paths == sorted(paths)


def test_compaction_leaves_few_files_with_the_same_rows_in_order(table: Table) -> None:
    for start in range(0, 60, 5):
        table.append(rows(FIRST, range(start, start + 5)), generation=FIRST)
    table.append(rows(SECOND, range(3)), generation=SECOND)
    before, other = table.read(FIRST), contents(table, SECOND)

    assert table.compact(FIRST)

    assert len(table.files(FIRST)) == 1
    assert table.read(FIRST).equals(before)
    assert contents(table, SECOND) == other
    assert not table.compact(FIRST)


def test_each_generation_may_be_written_in_another_layout_of_strings(table: Table) -> None:
    large = pa.schema(
        [
            pa.field("scan_generation", pa.string_view(), nullable=False),
            SCHEMA.field("number"),
            pa.field("name", pa.large_string()),
            SCHEMA.field("at"),
            pa.field("tags", pa.large_list(pa.large_string())),
            pa.field("sealed", pa.large_binary()),
        ]
    )
    table.append(rows(FIRST, range(5)).cast(large), generation=FIRST)

    assert table.read(FIRST).equals(rows(FIRST, range(5)))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("number", pa.array([1.5])),
        ("number", pa.array(["12"])),
        ("number", pa.array([2**63], pa.uint64())),
        ("number", pa.array([1], pa.int32())),
        ("at", pa.array([0], pa.timestamp("us"))),
        ("at", pa.array([1], pa.timestamp("ns", "UTC"))),
        ("at", pa.array([1], pa.timestamp("us", "Europe/Berlin"))),
        ("name", pa.array([b"bytes"])),
    ],
    ids=["float", "text", "uint64", "int32", "naive", "ns", "berlin", "bytes"],
)
@pytest.mark.parametrize("operation", ["append", "replace_generation", "replace_all"])
def test_rows_of_another_schema_are_refused_and_leave_nothing(
    table: Table, operation: str, column: str, values: pa.Array
) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST)
    version, held, disk = table.version(), contents(table, FIRST), files_on_disk(table)
    index = SCHEMA.get_field_index(column)
    field = pa.field(column, values.type, nullable=SCHEMA.field(column).nullable)
    wrong = rows(FIRST, range(1)).set_column(index, field, values)

    with pytest.raises(ContractError, match=f"column `{column}`"):
        getattr(table, operation)(wrong, generation=FIRST)

    assert (table.version(), contents(table, FIRST)) == (version, held)
    assert files_on_disk(table) == disk


def test_a_table_of_another_schema_is_not_written(lake: Lake, table: Table) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST)
    schema = SCHEMA.set(1, pa.field("number", pa.float64(), nullable=False))
    other = open_table(lake, "staging", "customers", "records", schema)

    with pytest.raises(ContractError, match="as stored: column `number`"):
        other.append(rows(FIRST, range(3)).cast(schema), generation=FIRST)
    with pytest.raises(TamperedError, match="number"):
        other.read(FIRST)


@pytest.mark.parametrize("operation", ["append", "replace_generation"])
def test_rows_of_another_generation_are_refused(table: Table, operation: str) -> None:
    mixed = pa.concat_tables([rows(FIRST, range(3)), rows(SECOND, range(1))])
    stream = pa.RecordBatchReader.from_batches(SCHEMA, iter(mixed.to_batches()))

    with pytest.raises(ContractError, match=f"expected {FIRST} only"):
        getattr(table, operation)(stream, generation=FIRST)
    assert table.generations() == ()
    assert files_on_disk(table) == set()


@pytest.mark.parametrize("column", ["scan_generation", "number"])
def test_a_null_where_none_may_be_is_refused(table: Table, column: str) -> None:
    columns = [
        pa.nulls(1, field.type) if field.name == column else rows(FIRST, range(1)).column(index)
        for index, field in enumerate(SCHEMA)
    ]
    with pytest.raises(ContractError):
        table.append(pa.Table.from_arrays(columns, schema=SCHEMA), generation=FIRST)
    assert files_on_disk(table) == set()


def columns(**kinds: pa.DataType) -> pa.Schema:
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    return pa.schema([SCHEMA.field(0), *fields])


def test_a_generation_may_have_columns_of_its_own_where_that_is_asked_for(lake: Lake) -> None:
    first = columns(number=pa.int64(), old=pa.string())
    second = columns(number=pa.int64(), new=pa.float64())
    one = pa.table({"scan_generation": [FIRST], "number": [1], "old": ["x"]}, schema=first)
    two = pa.table({"scan_generation": [SECOND], "number": [2], "new": [0.5]}, schema=second)
    earlier = open_table(lake, "staging", "customers", "records", first)
    later = open_table(lake, "staging", "customers", "records", second)
    earlier.replace_generation(one, generation=FIRST)

    with pytest.raises(ContractError, match="as stored: columns differ"):
        later.replace_generation(two, generation=SECOND)
    later.replace_generation(two, generation=SECOND, evolve=True)

    reader = open_table(lake, "staging", "customers", "records")
    assert reader.read(FIRST).equals(one)
    assert reader.read(SECOND).equals(two)
    shown = pa.table(DeltaTable(reader.uri).scan())
    assert sorted(shown.select(["number", "new", "old"]).to_pylist(), key=str) == [
        {"number": 1, "new": None, "old": "x"},
        {"number": 2, "new": 0.5, "old": None},
    ]


def test_a_column_may_change_its_type_from_one_generation_to_the_next(lake: Lake) -> None:
    first, second = columns(number=pa.int64()), columns(number=pa.string())
    one = pa.table({"scan_generation": [FIRST], "number": [1]}, schema=first)
    two = pa.table({"scan_generation": [SECOND], "number": ["1"]}, schema=second)
    for schema, rows_of, generation in ((first, one, FIRST), (second, two, SECOND)):
        table = open_table(lake, "staging", "customers", "records", schema)
        table.replace_generation(rows_of, generation=generation, evolve=True)

    reader = open_table(lake, "staging", "customers", "records")
    assert reader.read(FIRST).equals(one)
    assert reader.read(SECOND).equals(two)


def test_compaction_keeps_the_columns_of_the_generation(lake: Lake) -> None:
    first, second = columns(number=pa.int64()), columns(number=pa.string())
    old = open_table(lake, "staging", "customers", "records", first)
    for number in range(3):
        one = pa.table({"scan_generation": [FIRST], "number": [number]}, schema=first)
        old.append(one, generation=FIRST)
    two = pa.table({"scan_generation": [SECOND], "number": ["1"]}, schema=second)
    new = open_table(lake, "staging", "customers", "records", second)
    new.replace_generation(two, generation=SECOND, evolve=True)

    reader = open_table(lake, "staging", "customers", "records")
    assert reader.compact(FIRST)
    assert len(reader.files(FIRST)) == 1
    assert reader.read(FIRST).column("number").to_pylist() == [0, 1, 2]
    assert pa.schema(DeltaTable(reader.uri).schema().to_arrow()).equals(second)


@pytest.mark.parametrize("generation", ["x' OR '1' = '1", "..", "", "20261130"])
def test_a_generation_of_another_form_is_refused(table: Table, generation: str) -> None:
    table.append(rows(FIRST, range(1)), generation=FIRST)

    with pytest.raises(ContractError):
        table.append(rows(generation, range(1)), generation=generation)
    with pytest.raises(ContractError):
        table.read(generation)


def test_an_error_in_a_stream_is_raised_as_it_is_and_leaves_nothing(table: Table) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST)
    disk = files_on_disk(table)

    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(FIRST, range(3, 6)).to_batches()[0]
        raise TamperedError("pages", "a body is not the one that was sealed")

    with pytest.raises(TamperedError, match="a body is not"):
        table.replace_generation(
            pa.RecordBatchReader.from_batches(SCHEMA, broken()), generation=FIRST
        )
    assert numbers(table, FIRST) == [0, 1, 2]
    assert files_on_disk(table) == disk


def test_an_unknown_column_is_refused(table: Table) -> None:
    table.append(rows(FIRST, range(1)), generation=FIRST)

    with pytest.raises(ContractError, match="found no column"):
        table.read(FIRST, columns=["number", "nowhere"])


@pytest.mark.parametrize("damage", ["longer", "shorter", "gone", "rewritten"])
def test_a_file_that_is_not_what_the_log_says_is_named(table: Table, damage: str) -> None:
    table.append(rows(FIRST, range(500)), generation=FIRST)
    path = Path(table.file_uris(FIRST)[0])
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        damaged = {"longer": data + b"\0", "shorter": data[:-1], "rewritten": b"\0" * len(data)}
        path.write_bytes(damaged[damage])

    with pytest.raises(TamperedError, match=path.name) as error:
        table.read(FIRST)
    assert error.value.what == "records"


def test_a_file_with_other_rows_than_the_log_counts_is_named(table: Table) -> None:
    table.append(rows(FIRST, range(500)), generation=FIRST)
    entry = Path(table.uri, "_delta_log", f"{1:020d}.json")
    entry.write_text(entry.read_text().replace('numRecords\\": 500', 'numRecords\\": 499'))

    with pytest.raises(TamperedError, match="500 rows; expected 499"):
        table.read(FIRST)


def test_a_log_that_names_a_file_outside_the_table_is_refused(table: Table) -> None:
    table.append(rows(FIRST, range(5)), generation=FIRST)
    entry = Path(table.uri, "_delta_log", f"{1:020d}.json")
    entry.write_text(entry.read_text().replace(f"scan_generation={FIRST}/", "../../../"))

    with pytest.raises(TamperedError, match="expected a path below the table"):
        table.read(FIRST)


def test_a_table_that_another_tool_gave_deletion_vectors_is_refused(table: Table) -> None:
    """Its files hold rows that no longer count, which only the log knows."""
    table.append(rows(FIRST, range(5)), generation=FIRST)
    entry = Path(table.uri, "_delta_log", f"{2:020d}.json")
    entry.write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        '"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}'
    )

    with pytest.raises(EvidenceError, match="deletion vectors"):
        table.read(FIRST)


def test_a_committed_version_of_an_application_is_not_committed_again(table: Table) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST, app_id="receipt", version=1)

    with pytest.raises(WriterConflictError, match="found version 1"):
        table.append(rows(FIRST, range(3)), generation=FIRST, app_id="receipt", version=1)
    assert numbers(table, FIRST) == [0, 1, 2]
    assert table.transaction_version("receipt") == 1


def test_of_two_writers_of_one_application_one_wins_and_the_other_leaves_no_file(
    table: Table,
) -> None:
    table.append(rows(FIRST, range(3)), generation=FIRST)
    early, late = table.open(), table.open()
    table.append(rows(FIRST, range(3, 5)), generation=FIRST, app_id="a", version=1, at=early)

    with pytest.raises(WriterConflictError):
        table.append(rows(FIRST, range(3, 5)), generation=FIRST, app_id="a", version=1, at=late)

    assert numbers(table, FIRST) == [0, 1, 2, 3, 4]
    assert files_on_disk(table) == {file.path for file in table.files(FIRST)}


@pytest.mark.parametrize("there", [0, 3], ids=["empty", "rows"])
@pytest.mark.parametrize("other", ["replace", "append"])
def test_a_generation_is_not_replaced_under_another_writer(
    table: Table, there: int, other: str
) -> None:
    """Delta alone lets both replace an empty generation, and overlooks the appended row."""
    table.replace_generation(rows(FIRST, range(there)), generation=FIRST)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield rows(FIRST, range(100, 102)).to_batches()[0]
        if other == "append":
            table.append(rows(FIRST, range(50, 51)), generation=FIRST)
        else:
            table.replace_generation(rows(FIRST, range(50, 51)), generation=FIRST)

    with pytest.raises(WriterConflictError):
        table.replace_generation(
            pa.RecordBatchReader.from_batches(SCHEMA, interrupted()), generation=FIRST
        )

    kept = list(range(there)) if other == "append" else []
    assert numbers(table, FIRST) == [*kept, 50]


@pytest.mark.parametrize("whole", [False, True], ids=["generation", "table"])
def test_row_that_any_delta_client_appends_meanwhile_does_not_stay_beside_an_overwrite(
    lake: Lake, whole: bool
) -> None:
    """A stranger names no transaction, and the library would commit the overwrite all the same."""
    table = open_published(lake, "customers", SCHEMA)
    table.replace_all(rows(FIRST, range(3)), generation=FIRST)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield rows(FIRST, range(100, 102)).to_batches()[0]
        write_deltalake(table.uri, rows(FIRST, range(50, 51)), mode="append")

    stream = pa.RecordBatchReader.from_batches(SCHEMA, interrupted())
    replace = table.replace_all if whole else table.replace_generation
    with pytest.raises(WriterConflictError):
        replace(stream, generation=FIRST)

    assert sorted(numbers(table, FIRST)) == [0, 1, 2, 50]


def test_writers_of_different_generations_do_not_hinder_each_other(table: Table) -> None:
    for generation in (FIRST, SECOND):
        table.append(rows(generation, range(2)), generation=generation)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield rows(SECOND, range(10, 12)).to_batches()[0]
        table.replace_generation(rows(FIRST, range(5)), generation=FIRST)

    stream = pa.RecordBatchReader.from_batches(SCHEMA, interrupted())
    assert table.replace_generation(stream, generation=SECOND) == 2
    assert (numbers(table, FIRST), numbers(table, SECOND)) == ([0, 1, 2, 3, 4], [10, 11])


def test_many_threads_create_a_table_and_append_to_it(table: Table) -> None:
    start = threading.Barrier(4)

    def work(worker: int) -> None:
        start.wait()
        for step in range(5):
            number = worker * 5 + step
            table.append(rows(FIRST, range(number, number + 1)), generation=FIRST)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert sorted(numbers(table, FIRST)) == list(range(20))


def test_the_published_table_holds_one_generation_and_its_schema(lake: Lake) -> None:
    first = open_published(lake, "customers", SCHEMA)
    first.replace_all(rows(FIRST, range(5)), generation=FIRST, metadata={"receipt_id": "r1"})
    assert first.latest_commit()["receipt_id"] == "r1"

    schema = SCHEMA.append(pa.field("more", pa.float64()))
    more = rows(SECOND, range(3)).append_column("more", pa.array([1.0] * 3)).cast(schema)
    second = open_published(lake, "customers", schema)
    second.replace_all(more, generation=SECOND, metadata={"receipt_id": "r2"})

    assert second.location == "published/customers"
    assert second.generations() == (SECOND,)
    assert DeltaTable(second.uri).count() == 3
    assert pa.schema(DeltaTable(second.uri).schema().to_arrow()).names == schema.names
    assert second.latest_commit()["receipt_id"] == "r2"


def test_evidence_is_closed_to_other_users(lake: Lake) -> None:
    pages = open_table(lake, "evidence", "customers", "pages", SCHEMA)
    pages.append(rows(FIRST, range(1)), generation=FIRST)

    for folder in ("evidence", "evidence/customers", "evidence/customers/pages"):
        assert Path(lake.root, folder).stat().st_mode & 0o777 == 0o700


def test_files_that_another_writer_compacted_by_the_delta_library_are_read(table: Table) -> None:
    """The files need not be of our writing: names, order and compression are free."""
    table.append(rows(FIRST, range(3)), generation=FIRST)
    write_deltalake(
        table.uri,
        rows(FIRST, range(3, 6)),
        mode="append",
        commit_properties=CommitProperties(app_transactions=[Transaction("other", 1)]),
    )
    DeltaTable(table.uri).optimize.compact()

    assert sorted(numbers(table, FIRST)) == list(range(6))


def test_the_interpreter_ends_well_after_reading_and_writing(tmp_path: Path) -> None:
    code = f"""
import pyarrow as pa
from scan_pipeline.store.tables import Table
schema = pa.schema([pa.field("scan_generation", pa.string(), nullable=False), ("n", pa.int64())])
table = Table({str(tmp_path / "staging/customers/records")!r}, schema)
for n in range(20):
    rows = pa.table({{"scan_generation": ["{FIRST}"], "n": [n]}}, schema=schema)
    table.append(rows, generation="{FIRST}")
    assert table.read("{FIRST}").column("n").to_pylist() == list(range(n + 1))
table.compact("{FIRST}")
assert table.read("{FIRST}").num_rows == 20
"""
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert (run.returncode, run.stderr) == (0, b"")
        for path in sorted((tmp_path / "staging").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
