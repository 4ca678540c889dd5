"""An altered published table is named; a damaged lake is a disagreement and no crash."""

import pyarrow as pa
import pytest

from scan_pipeline_tests.stages.tampering import (
    SealedLake,
    alter,
    append,
    live_files,
    rows,
    with_value,
)

pytestmark = pytest.mark.long

FEW = {("pages", "log garbled"), ("records", "file removed"), ("findings", "file cut")}

BOTH = pytest.mark.parametrize("careful", [False, True], ids=["careless", "careful"])


@BOTH
def test_published_edited(sealed: SealedLake, careful: bool) -> None:
    edit = with_value(lambda row: row["customer_id"] == "customer-7", schema_version=1)
    alter(sealed.published, sealed.second, edit, careful=careful)

    assert sealed.wrong() == {"published rows"}


def test_published_added_to(sealed: SealedLake) -> None:
    row = rows(sealed.published, sealed.second).slice(0, 1)
    append(sealed.published, row.append_column("scan_generation", pa.array([sealed.second])))

    assert {"published", "published rows"} <= sealed.wrong()


@pytest.mark.long
def test_published_of_another_generation_beside_it(sealed: SealedLake) -> None:
    row = rows(sealed.published, sealed.second).slice(0, 1)
    append(sealed.published, row.append_column("scan_generation", pa.array([sealed.first])))

    assert {"published", "published generations"} <= sealed.wrong()


def test_published_is_not_held_against_an_older_generation(sealed: SealedLake) -> None:
    assert sealed.wrong(sealed.first) == set()


@pytest.mark.parametrize(
    ("table", "damage"),
    [
        pytest.param(table, damage, marks=() if (table, damage) in FEW else pytest.mark.long)
        for table in ("pages", "records", "partition_summaries", "findings")
        for damage in ("log cut", "log garbled", "file removed", "file cut")
    ],
)
def test_damage_is_a_disagreement_and_no_crash(sealed: SealedLake, table: str, damage: str) -> None:
    folder = sealed.table(table)
    log = max(folder.glob("_delta_log/*.json"))
    file = folder / live_files(folder, sealed.second)[0]
    match damage:
        case "log cut":
            log.unlink()
        case "log garbled":
            log.write_text('{"add": {"path"')
        case "file removed":
            file.unlink()
        case _:
            file.write_bytes(file.read_bytes()[:-100])

    report = sealed.audit()

    told = {each.name for each in (*report.disagreements, *report.not_computed)}
    assert f"files of {table}" in told
    assert not report.agrees or report.level in ("ledger", "receipt")
