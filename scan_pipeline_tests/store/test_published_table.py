"""The published table's folder: what is swept, and what is left alone."""

from pathlib import Path

import pyarrow as pa
import pytest

from scan_pipeline.store.lake import Lake
from scan_pipeline.store.published_table import PublishedTable, open_published

SCHEMA = pa.schema(
    [pa.field("scan_generation", pa.string(), nullable=False), pa.field("id", pa.int64())]
)


@pytest.fixture
def table(tmp_path: Path) -> PublishedTable:
    return open_published(Lake(root=str(tmp_path / "lake")), "things", SCHEMA)


def put(table: PublishedTable, number: int) -> str:
    generation = f"202611{number:02d}T020000Z"
    rows = pa.table({"scan_generation": [generation], "id": [number]}, schema=SCHEMA)
    table.replace_all(rows, generation=generation)
    return generation


def lying(table: PublishedTable) -> list[Path]:
    return sorted(Path(table.uri).rglob("*.parquet"))


def named(table: PublishedTable, generation: str) -> list[Path]:
    return sorted(Path(each) for each in table.file_uris(generation))


def test_files_of_the_replaced_generation_are_removed(table: PublishedTable) -> None:
    put(table, 1)
    second = put(table, 2)

    assert len(lying(table)) == 2
    assert table.sweep() == 1
    assert lying(table) == named(table, second)
    assert table.sweep() == 0


def test_write_under_way_is_left_alone_until_it_can_no_longer_be_committed(
    table: PublishedTable,
) -> None:
    """Its number is of the version that it would make."""
    first = put(table, 1)
    under_way = named(table, first)[0].with_name(f"part-{table.version() + 1:020d}-x-0.parquet")
    under_way.write_bytes(b"half a file")
    assert table.sweep() == 0
    assert under_way.exists()

    second = put(table, 2)
    assert table.sweep() == 2
    assert lying(table) == named(table, second)


def test_file_that_is_not_of_a_write_of_ours_is_left_alone(table: PublishedTable) -> None:
    put(table, 1)
    foreign = Path(table.uri) / "mine.parquet"
    foreign.write_bytes(b"")
    table.sweep()

    assert foreign.exists()


def test_log_has_no_checkpoint_which_would_be_parquet_too(table: PublishedTable) -> None:
    for number in range(1, 29):
        last = put(table, number)
        table.sweep()

    assert lying(table) == named(table, last)
    assert list((Path(table.uri) / "_delta_log").glob("*.parquet")) == []
