"""The current table and the pins that are signed for its versions: what else lies there is refused.

The next round makes it anew from the sealed ones.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.simulator.mutations import Delete, Update
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.erase import erase
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.syncing.current import publish_current
from scan_pipeline.store import tables
from scan_pipeline.store.published_table import GENERATION, RECEIPT_ID, RESTS_ON
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.syncing.rounds import Following, following

PINS = "receipts/customers/current_pins"


def lake_of(followed: Following) -> Path:
    return Path(followed.workspace.project.lake)


def published(followed: Following) -> DeltaTable:
    return DeltaTable(lake_of(followed) / "published" / "customers")


def told(table: DeltaTable) -> dict[str, str]:
    """Return what the newest commit says of itself, for another one to copy."""
    (commit,) = table.history(1)
    members = (RECEIPT_ID, GENERATION, RESTS_ON, "scan_pipeline.typed_under")
    return {name: commit[name] for name in members if name in commit}


def write_over(followed: Following) -> None:
    table = published(followed)
    write_deltalake(
        table,
        followed.table.head(10).to_arrow(),
        mode="overwrite",
        commit_properties=CommitProperties(custom_metadata=told(table)),
    )


def add_rows_of_another_generation(followed: Following) -> None:
    table = published(followed)
    rows = followed.table.head(1).with_columns(scan_generation=pl.lit("20200101T000000Z"))
    properties = CommitProperties(custom_metadata=told(table))
    write_deltalake(table, rows.to_arrow(), mode="append", commit_properties=properties)


def delete_pin(followed: Following) -> None:
    newest_pin(followed).unlink()


def alter_pin(followed: Following) -> None:
    newest = newest_pin(followed)
    newest.write_bytes(newest.read_bytes().replace(b'"payload":"', b'"payload":"e30', 1))


def newest_pin(followed: Following) -> Path:
    return max((lake_of(followed) / PINS).iterdir(), key=lambda each: each.name.partition("_")[2])


def put_back(followed: Following, *, metadata: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Let the baseline's own files be the table again, and its pin the last one there."""
    lake, table = lake_of(followed), published(followed)
    kept = next((lake.parent / "kept").rglob("*.parquet"))
    path = str(kept.relative_to(lake.parent / "kept"))
    shutil.copy(kept, lake / "published" / "customers" / path)
    first = min((lake / PINS).iterdir())
    shutil.copy(first, first.with_name(first.name.replace("_2026", "_2027")))
    generation = kept.parent.name.partition("=")[2]
    table.create_write_transaction(
        [
            AddAction(
                path=path,
                size=kept.stat().st_size,
                partition_values={"scan_generation": generation},
                modification_time=0,
                data_change=True,
                stats="{}",
            )
        ],
        mode="overwrite",
        schema=table.schema(),
        partition_by=["scan_generation"],
        commit_properties=CommitProperties(custom_metadata=metadata(told(table))),
    )


def replay_under_the_newest_receipts(followed: Following) -> None:
    put_back(followed, metadata=lambda newest: newest)


def replay_as_it_was(followed: Following) -> None:
    """Replay a version that was replaced, and whose successor was replaced too."""
    first = followed.rests_on[0]
    generation = min((lake_of(followed) / PINS).iterdir()).name.partition("_")[0]
    was = {RECEIPT_ID: first, GENERATION: generation, RESTS_ON: f'["{first}"]'}
    put_back(followed, metadata=lambda _: was)


def followed_for_two_rounds(bench: Bench) -> Following:
    followed = following(bench, size=60)
    followed.round()
    lake = lake_of(followed)
    shutil.copytree(lake / "published" / "customers", lake.parent / "kept")
    for change in (Update(first=2, region="mea"), Delete(first=7)):
        followed.change(change)
        followed.round()
    return followed


def current(followed: Following, **asked: Any) -> Any:
    return Collection(followed.scan, workspace=followed.workspace).current(**asked)


@pytest.mark.parametrize(
    "spoils",
    [
        (write_over, delete_pin, replay_under_the_newest_receipts),
        pytest.param(
            (alter_pin, add_rows_of_another_generation, replay_as_it_was), marks=pytest.mark.long
        ),
    ],
    ids=lambda spoils: ", ".join(each.__name__ for each in spoils),
)
def test_table_that_no_pin_holds_for_is_refused_and_made_anew(
    bench: Bench, spoils: tuple[Callable[[Following], None], ...]
) -> None:
    followed = followed_for_two_rounds(bench)
    for night, spoil in enumerate(spoils):
        last = current(followed).receipt.scan_generation
        spoil(followed)

        with pytest.raises(TamperedError, match=r"no signed pin names .* then run the scan"):
            current(followed)
        assert not Audit("customers", last, workspace=followed.workspace).run().agrees

        followed.change(Delete(first=10 + night))
        assert followed.round().accepted
        assert followed.current == followed.source
        assert len(current(followed, contents=True).receipt_ids) == 4 + night


def write_in_place(file: Path) -> None:
    """Alter one record in a file that stays a Parquet file of the same size."""
    size, rows = file.stat().st_size, pq.ParquetFile(file).read()
    texts = rows["_raw"].to_pylist()
    texts[4] = json.dumps({**json.loads(texts[4]), "region": "me"})
    at = rows.schema.get_field_index("_raw")
    rows = rows.set_column(at, "_raw", pa.array(texts, rows["_raw"].type))
    pad = 0
    for _ in range(4):  # the length of the pad is written too
        options = {"compression": "zstd", "write_statistics": False}
        with pq.ParquetWriter(file, rows.schema, **options) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"pad": "x" * pad})
        pad += size - file.stat().st_size
    assert file.stat().st_size == size


def test_record_altered_in_place_is_not_signed_with_the_next_round(bench: Bench) -> None:
    followed = following(bench, size=60)
    followed.round()
    (file,) = lake_of(followed).glob("published/**/*.parquet")
    write_in_place(file)
    assert followed.current != followed.source

    with pytest.raises(TamperedError, match=r"expected contents .* then run the scan"):
        current(followed, contents=True)

    followed.change(Delete(first=9))
    followed.round()
    assert followed.current == followed.source
    assert len(current(followed, contents=True).receipt_ids) == 2


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "behind it"])
def test_break_between_pin_and_commit_leaves_a_version_that_can_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    followed = following(bench, size=60)
    followed.round()
    held = followed.current
    followed.change(Update(first=2, region="mea"), Delete(first=7))
    commit = tables.commit

    def killed(write: Any, *, folder: Any, **rest: Any) -> None:
        if folder.name == "customers":
            if committed:
                commit(write, folder=folder, **rest)
            raise Killed
        commit(write, folder=folder, **rest)

    with monkeypatch.context() as patched:
        patched.setattr(tables, "commit", killed)
        with pytest.raises(Killed):
            followed.round()
        if not committed:  # once more: another pin is said, and breaks off too
            with pytest.raises(Killed):
                publish_current(followed.scan, workspace=followed.workspace)

    assert len(list((lake_of(followed) / PINS).iterdir())) == (2 if committed else 3)
    assert len(current(followed, contents=True).receipt_ids) == (2 if committed else 1)
    assert followed.current == (followed.source if committed else held)
    publish_current(followed.scan, workspace=followed.workspace)
    assert len(current(followed, contents=True).receipt_ids) == 2
    assert followed.current == followed.source


def test_table_that_is_written_again_without_an_erased_record_has_a_pin_of_its_own(
    bench: Bench,
) -> None:
    followed = followed_for_two_rounds(bench)
    opened = current(followed)

    erase(
        followed.scan, ("customer-2",), because="request 9", by=None, workspace=followed.workspace
    )

    now = current(followed, contents=True)
    assert "1 record redacted" in now.word()
    assert now.arrow().num_rows == len(followed.source) - 1
    with pytest.raises(TamperedError):
        opened.arrow()  # the version that it was opened at is gone: not other rows, and not none
