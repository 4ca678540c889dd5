"""Whatever somebody alters of sealed evidence and records is named: by the audit, by a reader."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from scan_pipeline.core.errors import TamperedError
from scan_pipeline_tests.stages.tampering import (
    SealedLake,
    alter,
    append,
    flipped,
    is_page,
    live_files,
    opens,
    rows,
    swapped,
    with_value,
    without,
)

pytestmark = pytest.mark.long

CARELESS, CAREFUL = pytest.param(False, id="careless"), pytest.param(True, id="careful")

BOTH = pytest.mark.parametrize("careful", [CARELESS, CAREFUL])
CARELESS_IF_LONG = pytest.mark.parametrize(
    "careful", [pytest.param(False, id="careless", marks=pytest.mark.long), CAREFUL]
)


def test_nothing_altered_nothing_disagrees(sealed_once: SealedLake) -> None:
    for generation in (sealed_once.first, sealed_once.second):
        report = sealed_once.audit(generation)
        assert (report.agrees, report.level) == (True, "bodies"), report.disagreements
        assert report.not_computed == ()
    opens(sealed_once, contents=True)


# ------------------------------------------------------------------------------------- evidence


@BOTH
def test_page_dropped(sealed: SealedLake, careful: bool) -> None:
    alter(sealed.table("pages"), sealed.second, without(is_page(2)), careful=careful)

    # What a careless hand leaves does not even read as the table that its log tells of.
    expected = {"files of pages", "chain" if careful else "events"}
    assert expected <= sealed.wrong()


@CARELESS_IF_LONG
def test_bodies_of_two_pages_swapped(sealed: SealedLake, careful: bool) -> None:
    swap = swapped("body", key="page", one=1, other=2)
    alter(sealed.table("pages"), sealed.second, swap, careful=careful)

    assert {"files of pages", "bodies" if careful else "events"} <= sealed.wrong()


def test_two_pages_swapped_whole(sealed: SealedLake) -> None:
    """Bodies, tokens, digests and all but their numbers."""

    def change(table: pa.Table) -> pa.Table:
        for column in set(table.column_names) - {"seq", "page"}:
            table = swapped(column, key="page", one=1, other=2)(table)
        return table

    alter(sealed.table("pages"), sealed.second, change)

    assert {"files of pages", "chain", "bodies"} <= sealed.wrong()


def test_page_copied_from_another_generation(sealed: SealedLake) -> None:
    """The same page of the same customers, a day older, in its place."""
    (older,) = (
        row for row in rows(sealed.table("pages"), sealed.first).to_pylist() if is_page(2)(row)
    )

    alter(sealed.table("pages"), sealed.second, with_value(is_page(2), **older))

    assert {"files of pages", "chain", "bodies"} <= sealed.wrong()


@pytest.mark.long
def test_generation_replaced_by_another(sealed: SealedLake) -> None:
    """All events of the night before under this night's name: a whole chain of its own."""
    older = rows(sealed.table("pages"), sealed.first)
    alter(
        sealed.table("pages"), sealed.second, lambda t: older if t.num_rows > 1 else t.slice(0, 0)
    )

    assert {"files of pages", "chain", "bodies"} <= sealed.wrong()


@CARELESS_IF_LONG
def test_body_edited(sealed: SealedLake, careful: bool) -> None:
    alter(sealed.table("pages"), sealed.second, flipped("body"), careful=careful)

    assert {"files of pages", "bodies" if careful else "events"} <= sealed.wrong()


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("facts", {"chain"}),
        ("chain", {"chain"}),
        ("returned", {"records returned"}),
        ("end_signal", {"terminal_cursor_observed"}),
        pytest.param("body_bytes", {"bytes_observed"}, marks=pytest.mark.long),
        pytest.param("attempts", {"attempts"}, marks=pytest.mark.long),
        pytest.param("items_digest", {"chain", "records by page"}, marks=pytest.mark.long),
        pytest.param("cursor_out_digest", {"chain"}, marks=pytest.mark.long),
        pytest.param("received_at", {"last_page_at"}, marks=pytest.mark.long),
    ],
)
def test_event_edited(sealed: SealedLake, column: str, names: set[str]) -> None:
    """Whether the column is in the chain or not."""
    page = rows(sealed.table("pages"), sealed.second).to_pylist()
    (third,) = (row for row in page if is_page(3)(row))
    edited = (
        {
            "facts": third["facts"].replace('"returned":100', '"returned":101'),
            "returned": 99,
            "body_bytes": 7,
            "attempts": 5,
            "received_at": third["received_at"].replace(year=2020),
            "end_signal": None,
        }.get(column)
        if not isinstance(third[column], bytes)
        else bytes(32)
    )

    alter(sealed.table("pages"), sealed.second, with_value(is_page(3), **{column: edited}))

    assert {"files of pages", *names} <= sealed.wrong()


def test_contract_edited(sealed: SealedLake) -> None:
    """Another limit, so that the walk seems to have been held to less."""

    def change(table: pa.Table) -> pa.Table:
        return with_value(
            lambda row: row["event"] == "open",
            facts=table.to_pylist()[0]["facts"].replace('"seconds":120', '"seconds":999'),
        )(table)

    alter(sealed.table("pages"), sealed.second, change)

    assert {"files of pages", "chain", "operation_digest"} <= sealed.wrong()


# -------------------------------------------------------------------------------------- records


@BOTH
def test_record_edited(sealed: SealedLake, careful: bool) -> None:
    """A value in its typed column; the hashes beside it stay. As many rows and bytes as before."""
    edit = with_value(lambda row: row["customer_id"] == "customer-7", schema_version=1)
    alter(sealed.table("records"), sealed.second, edit, careful=careful)

    assert "files of records" in sealed.wrong()
    with pytest.raises(TamperedError) as refused:
        opens(sealed, contents=True)
    assert refused.value.what == "records"


@pytest.mark.long
def test_record_edited_in_place_is_found_by_its_contents(sealed: SealedLake) -> None:
    """One byte of a file of the same size: paths and sizes do not tell, contents and audit do."""
    (path,) = live_files(sealed.table("records"), sealed.second)
    file = sealed.table("records") / path
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(bytes(raw))

    assert "files of records" in sealed.wrong()
    with pytest.raises(TamperedError):
        opens(sealed, contents=True)


def test_record_edited_with_its_leaf(sealed: SealedLake) -> None:
    edit = with_value(lambda row: row["customer_id"] == "customer-7", _leaf_hash=bytes(32))
    alter(sealed.table("records"), sealed.second, edit)

    assert {"files of records", "records by page", "merkle.root"} <= sealed.wrong()


def test_record_added_in_its_file(sealed: SealedLake) -> None:
    def change(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, table.slice(0, 1)])

    alter(sealed.table("records"), sealed.second, change)

    assert {"files of records", "records by page", "records_observed"} <= sealed.wrong()
    with pytest.raises(TamperedError, match="records"):
        opens(sealed)


def test_record_added_as_any_delta_client_adds_it(sealed: SealedLake) -> None:
    row = rows(sealed.table("records"), sealed.second).slice(0, 1)
    generation = pa.array([sealed.second])
    append(sealed.table("records"), row.append_column("scan_generation", generation))

    assert "files of records" in sealed.wrong()
    with pytest.raises(TamperedError, match="records"):
        opens(sealed)


@pytest.mark.long
def test_record_dropped(sealed: SealedLake) -> None:
    drop = without(lambda row: row["customer_id"] == "customer-7")
    alter(sealed.table("records"), sealed.second, drop)

    assert {"files of records", "records by page", "missing_id_ranges"} <= sealed.wrong()
    with pytest.raises(TamperedError, match="records"):
        opens(sealed)


def test_records_deleted_as_any_delta_client_deletes_them(sealed: SealedLake) -> None:
    table = DeltaTable(str(sealed.table("records")))
    table.delete(f"scan_generation = '{sealed.second}' and customer_id = 'customer-7'")

    assert "files of records" in sealed.wrong()
    with pytest.raises(TamperedError, match="records"):
        opens(sealed)


@CARELESS_IF_LONG
def test_summary_edited(sealed: SealedLake, careful: bool) -> None:
    edit = with_value(lambda row: row["partition"] == "eu", records=1)
    alter(sealed.table("partition_summaries"), sealed.second, edit, careful=careful)

    assert {"files of partition_summaries", "partition summaries"} <= sealed.wrong()


def test_finding_removed(sealed: SealedLake) -> None:
    drop = without(lambda row: row["number"] == 0)
    alter(sealed.table("findings"), sealed.second, drop)

    assert {"files of findings", "stored findings"} <= sealed.wrong()


@pytest.mark.long
def test_finding_made_milder(sealed: SealedLake) -> None:
    alter(sealed.table("findings"), sealed.second, with_value(lambda _: True, remedy="none"))

    assert {"files of findings", "stored findings"} <= sealed.wrong()
