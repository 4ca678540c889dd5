"""A pin notices every change of a sealed generation, and none that is not one."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from scan_pipeline.core.errors import EvidenceError, TamperedError
from scan_pipeline.store import pinning
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.pinning import PinnedTable, pin, verify_pin
from scan_pipeline.store.tables import Table, open_table

GENERATION, OTHER = "20261130T020000Z", "20261201T020000Z"

SCHEMA = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = open_table(Lake(root=str(tmp_path)), "staging", "customers", "records", SCHEMA)
    for start in (0, 10, 20):
        table.append(rows(GENERATION, start), generation=GENERATION)
    table.append(rows(OTHER, 0), generation=OTHER)
    return table


def rows(generation: str, start: int) -> pa.Table:
    numbers = list(range(start, start + 10))
    columns = {"scan_generation": [generation] * 10, "number": numbers}
    return pa.table(columns, schema=SCHEMA)


def file(table: Table, index: int = 1) -> Path:
    return Path(table.file_uris(GENERATION)[index])


def unlisted(pinned: PinnedTable) -> PinnedTable:
    """As a pin of very many files is: without the list."""
    return replace(pinned, files=())


def bare(pinned: PinnedTable) -> PinnedTable:
    """As a receipt may hold it: the files' digest only."""
    return replace(pinned, files=(), layout_digest=None)


def test_the_digests_are_those_of_the_files_read_independently(table: Table) -> None:
    pinned = pin(table, GENERATION)
    listed = sorted(
        [str(path.relative_to(table.uri)), path.stat().st_size, sha256(path.read_bytes())]
        for path in map(Path, table.file_uris(GENERATION))
    )
    whole = [[path, size, digest.hexdigest()] for path, size, digest in listed]
    layout = [[path, size] for path, size, _ in listed]

    def digest_of(value: object) -> str:
        return sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()

    assert pinned.files_digest == digest_of(whole)
    assert pinned.layout_digest == digest_of(layout)
    assert [[each.path, each.size, each.sha256] for each in pinned.files] == whole
    assert (pinned.location, pinned.rows) == ("staging/customers/records", 30)
    assert pinned.version == table.version()


@pytest.mark.parametrize("contents", [True, False])
@pytest.mark.parametrize("form", [lambda pinned: pinned, unlisted, bare])
def test_a_generation_that_nobody_touched_is_what_was_sealed(
    table: Table, form: "pinning.PinnedTable", contents: bool
) -> None:
    pinned = form(pin(table, GENERATION))

    table.append(rows(OTHER, 50), generation=OTHER)
    table.replace_generation(rows(OTHER, 70), generation=OTHER)
    DeltaTable(table.uri).create_checkpoint()

    verify_pin(table, GENERATION, pinned, contents=contents)


def test_an_empty_generation_is_pinned_too(table: Table) -> None:
    table.replace_generation(SCHEMA.empty_table(), generation=GENERATION)
    pinned = pin(table, GENERATION)
    assert (pinned.rows, pinned.files) == (0, ())
    verify_pin(table, GENERATION, pinned, contents=False)

    table.append(rows(GENERATION, 0), generation=GENERATION)
    with pytest.raises(TamperedError):
        verify_pin(table, GENERATION, pinned, contents=False)


def test_a_table_that_is_gone_is_not_what_was_sealed(table: Table, tmp_path: Path) -> None:
    pinned = pin(table, GENERATION)
    elsewhere = open_table(
        Lake(root=str(tmp_path / "empty")), "staging", "customers", "records", SCHEMA
    )

    with pytest.raises(TamperedError, match="no such file"):
        verify_pin(elsewhere, GENERATION, pinned, contents=False)
    with pytest.raises(EvidenceError):
        pin(elsewhere, GENERATION)


@pytest.mark.parametrize("form", [lambda pinned: pinned, unlisted, bare])
@pytest.mark.parametrize("change", ["append", "replace", "compact", "copy"])
def test_a_change_through_the_log_is_noticed_by_paths_and_sizes(
    table: Table, form: "pinning.PinnedTable", change: str
) -> None:
    pinned = form(pin(table, GENERATION))
    if change == "append":
        table.append(rows(GENERATION, 30), generation=GENERATION)
    elif change == "replace":
        table.replace_generation(rows(GENERATION, 0), generation=GENERATION)
    elif change == "compact":
        table.compact(GENERATION)
    else:
        table.replace_generation(table.read(GENERATION), generation=GENERATION)

    with pytest.raises(TamperedError) as error:
        verify_pin(table, GENERATION, pinned, contents=False)
    assert error.value.what == "records"


def test_the_file_that_differs_is_named(table: Table) -> None:
    pinned = pin(table, GENERATION)
    table.append(rows(GENERATION, 30), generation=GENERATION)
    added = file(table, 3).name

    with pytest.raises(TamperedError, match=rf"{added}: found \d+ bytes; expected no such file"):
        verify_pin(table, GENERATION, pinned, contents=False)


@pytest.mark.parametrize("form", [lambda pinned: pinned, unlisted])
@pytest.mark.parametrize("damage", ["longer", "gone"])
def test_a_file_of_another_size_is_named_without_reading_contents(
    table: Table, form: "pinning.PinnedTable", damage: str
) -> None:
    pinned = form(pin(table, GENERATION))
    path = file(table)
    path.unlink() if damage == "gone" else path.write_bytes(path.read_bytes() + b"\0")

    with pytest.raises(TamperedError, match=path.name):
        verify_pin(table, GENERATION, pinned, contents=False)


def test_changed_contents_of_the_same_size_are_noticed_when_contents_are_read(
    table: Table,
) -> None:
    pinned = pin(table, GENERATION)
    path = file(table)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    verify_pin(table, GENERATION, pinned, contents=False)
    with pytest.raises(TamperedError, match=rf"{path.name}: found contents [0-9a-f]{{64}}"):
        verify_pin(table, GENERATION, pinned, contents=True)
    with pytest.raises(TamperedError, match="give another digest"):
        verify_pin(table, GENERATION, unlisted(pinned), contents=True)
    with pytest.raises(TamperedError, match="give another digest"):
        verify_pin(table, GENERATION, bare(pinned), contents=False)


def test_two_files_that_changed_places_are_noticed(table: Table) -> None:
    pinned = pin(table, GENERATION)
    one, other = file(table, 0), file(table, 1)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)

    with pytest.raises(TamperedError, match="records"):
        verify_pin(table, GENERATION, pinned, contents=True)


def test_a_log_that_counts_other_rows_is_noticed(table: Table) -> None:
    """Engines answer count(*) from the log alone."""
    pinned = pin(table, GENERATION)
    entry = Path(table.uri, "_delta_log", f"{1:020d}.json")
    entry.write_text(entry.read_text().replace('numRecords\\": 10', 'numRecords\\": 11'))

    with pytest.raises(TamperedError, match="counts 31 rows; expected 30"):
        verify_pin(table, GENERATION, pinned, contents=False)


def test_a_pin_whose_own_list_was_edited_is_refused(table: Table) -> None:
    pinned = pin(table, GENERATION)
    edited = replace(pinned.files[0], sha256="0" * 64)

    with pytest.raises(TamperedError, match="do not give its digest"):
        verify_pin(
            table,
            GENERATION,
            replace(pinned, files=(edited, *pinned.files[1:])),
            contents=False,
        )


def test_another_generations_files_do_not_satisfy_a_pin(table: Table) -> None:
    pinned = pin(table, GENERATION)

    with pytest.raises(TamperedError):
        verify_pin(table, OTHER, pinned, contents=False)


def test_a_pin_of_many_files_lists_none_and_still_sees_paths_and_sizes(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinning, "LISTED_FILES", 2)
    pinned = pin(table, GENERATION)
    assert pinned.files == ()
    verify_pin(table, GENERATION, pinned, contents=True)

    table.compact(GENERATION)
    with pytest.raises(TamperedError, match="lists no files"):
        verify_pin(table, GENERATION, pinned, contents=False)
