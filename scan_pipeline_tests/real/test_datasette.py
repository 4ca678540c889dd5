"""The airports of a package nobody here made, walked in an unmodified Datasette."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.publish import published_generation
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.unlock import LABELS, open_partial, unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline_tests.real.conftest import Airports, Wire
from scan_pipeline_tests.real.datasette_server import need, serving, write_airports

MET = "records_encountered_in_live_traversal"
FIELDS = (
    *("icao", "iata", "name", "city", "subd", "country"),
    *("elevation", "lat", "lon", "tz", "lid"),
)
NUMBERS = ("elevation", "lat", "lon")

ScanOf = Callable[..., Scan]


def without_schema(raw: dict[str, Any]) -> None:
    del raw["record_schema"]


def met(stored: StoredReceipt, scan: Scan, workspace: Workspace) -> pl.DataFrame:
    """Return what was met, labelled, in order of key."""
    opened = open_partial(stored, scan, workspace=workspace, accept=MET)
    return opened.labelled_frame().sort("icao").collect()


def expectation(receipt: Receipt, name: str) -> tuple[Any, Any, str]:
    found = next(each for each in receipt.expectations if each.name == name)
    return found.expected, found.observed, found.result


def test_every_field_of_every_airport_arrives(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url)

    stored = run_scan(scan, workspace=workspace).stored

    rows = met(stored, scan, workspace).select(FIELDS).to_dicts()
    assert rows == [dict(airports[key]) for key in sorted(airports)]


def test_every_field_arrives_without_a_record_schema(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url, without_schema)

    stored = run_scan(scan, workspace=workspace).stored

    frame = met(stored, scan, workspace)
    expected = [airports[key] for key in sorted(airports)]
    for name in FIELDS:
        assert frame[name].dtype == pl.String
    for name in set(FIELDS) - set(NUMBERS):
        assert frame[name].to_list() == [each[name] for each in expected]
    for name in NUMBERS:  # a number with a fraction keeps its text, so that nothing is rounded
        found = [Decimal(text) for text in frame[name]]
        assert found == [Decimal(repr(each[name])) for each in expected]


def test_the_text_of_every_record_is_kept_where_no_schema_is_declared(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url, without_schema)

    stored = run_scan(scan, workspace=workspace).stored

    texts = met(stored, scan, workspace)["_raw"].to_list()
    assert [json.loads(text) for text in texts] == [dict(airports[k]) for k in sorted(airports)]


def test_the_receipt_says_what_a_live_source_allows_and_is_accepted(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    receipt = run_scan(scan_of(base_url), workspace=workspace).stored.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.accepted
    assert (receipt.traversal, receipt.stop_reason) == ("finished", "end_signal")
    assert receipt.records_observed == receipt.unique_ids_observed == len(airports)
    assert expectation(receipt, "source_count") == (len(airports), len(airports), "met")
    assert receipt.pages_observed == -(-len(airports) // 1000)
    assert [each.code for each in receipt.findings.first] == ["live_traversal"]
    assert receipt.statement == (
        f"{len(airports):,} records of airports, generation {receipt.scan_generation}, were met by "
        "a walk to the end; others may exist, as visible to the credentials of the scan (the "
        "source names no principal)."
    )


def test_no_whole_collection_opens_on_a_live_walk(
    base_url: str, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url)
    stored = run_scan(scan, workspace=workspace).stored
    generation = stored.receipt.scan_generation

    for at_least in ("verified", "corroborated"):
        with pytest.raises(GateClosedError, match="live"):
            unlock(stored, scan, workspace=workspace, at_least=at_least)
        with pytest.raises(GateClosedError):
            Collection(scan, workspace=workspace).generation(generation, at_least=at_least)
        with pytest.raises(GateClosedError, match="no generation is"):
            Collection(scan, workspace=workspace).latest(at_least=at_least)
    with pytest.raises(GateClosedError, match="expected at least all_records_in_snapshot"):
        open_partial(stored, scan, workspace=workspace, accept="all_records_in_snapshot")


def test_the_lesser_is_labelled_on_every_row(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url)
    stored = run_scan(scan, workspace=workspace).stored

    labels = met(stored, scan, workspace).select(LABELS)

    assert labels.height == len(airports)
    assert labels.unique().rows() == [(stored.receipt_id, "unknown", MET)]


def test_an_accepted_live_night_is_published_and_audits(
    base_url: str, scan_of: ScanOf, workspace: Workspace
) -> None:
    scan = scan_of(base_url)
    receipt = run_scan(scan, workspace=workspace).stored.receipt

    audit = Audit(scan.name, receipt.scan_generation, workspace=workspace).run()

    assert audit.agrees, [each for each in audit.checks if not each.agrees]
    assert published_generation(scan.name, workspace=workspace) == receipt.scan_generation


@pytest.mark.parametrize("rows", [0, 1, 99, 100, 101, 200])
def test_the_end_is_found_whatever_the_last_page_holds(
    rows: int, airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace
) -> None:
    keys = sorted(airports)[:rows]
    write_airports(tmp_path / "airports.db", [airports[key] for key in keys])

    def smaller(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = 100

    with serving(tmp_path / "airports.db") as url:
        scan = scan_of(url, smaller)
        stored = run_scan(scan, workspace=workspace).stored

    assert stored.receipt.accepted
    assert expectation(stored.receipt, "source_count") == (rows, rows, "met")
    assert stored.receipt.pages_observed == max(1, -(-rows // 100))
    assert met(stored, scan, workspace)["icao"].to_list() == keys


def test_a_filter_is_held_against_every_record(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    def portugal(raw: dict[str, Any]) -> None:
        raw["source"]["params"]["country"] = "PT"
        raw["contract"]["expect"] = {"every_record": {"country": "PT"}}

    expected = sorted(key for key, each in airports.items() if each["country"] == "PT")

    scan = scan_of(base_url, portugal)
    stored = run_scan(scan, workspace=workspace).stored

    assert stored.receipt.accepted
    assert expectation(stored.receipt, "source_count") == (len(expected), len(expected), "met")
    assert expectation(stored.receipt, "every_record") == (0, 0, "met")
    assert met(stored, scan, workspace)["icao"].to_list() == expected


def test_a_filter_that_the_source_ignores_is_found(
    airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace
) -> None:
    """Datasette passes over an argument with an underscore that it does not know."""
    iberian = [each for each in airports.values() if each["country"] in ("PT", "ES")]
    others = sum(1 for each in iberian if each["country"] == "ES")
    write_airports(tmp_path / "airports.db", iberian)

    def misspelt(raw: dict[str, Any]) -> None:
        raw["source"]["params"]["_country"] = "PT"
        raw["contract"]["expect"] = {"every_record": {"country": "PT"}}

    with serving(tmp_path / "airports.db") as url:
        scan = scan_of(url, misspelt)
        stored = run_scan(scan, workspace=workspace).stored

    assert expectation(stored.receipt, "source_count") == (len(iberian), len(iberian), "met")
    assert expectation(stored.receipt, "every_record") == (0, others, "missed")
    assert (stored.receipt.coverage_status, stored.receipt.accepted) == ("failed", False)
    with pytest.raises(GateClosedError, match="filter missed"):
        met(stored, scan, workspace)


def test_a_foreign_next_url_is_not_followed(
    airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace, wire: Wire
) -> None:
    """Behind a proxy Datasette's `next_url` names another origin: its setting force_https_urls."""
    keys = sorted(airports)[:250]
    write_airports(tmp_path / "airports.db", [airports[key] for key in keys])

    def smaller(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = 100

    with serving(tmp_path / "airports.db", "force_https_urls", "1") as url:
        scan = scan_of(url, smaller)
        stored = run_scan(scan, workspace=workspace).stored

    bodies = [json.loads(body) for _, body in _bodies(scan, stored, workspace)]
    foreign = url.replace("http://", "https://")
    assert [str(each["next_url"]).startswith(foreign) for each in bodies] == [True, True, False]
    assert [str(each).partition("?")[0] for each in wire.asked] == [scan.source.url] * 3  # type: ignore[attr-defined]
    sent = [dict(each.params) for each in wire.asked]
    frozen = {"_shape": "objects", "_nofacet": "1", "_size": "100"}
    assert sent == [frozen, {**frozen, "_next": keys[99]}, {**frozen, "_next": keys[199]}]
    assert met(stored, scan, workspace)["icao"].to_list() == keys


def test_a_refused_page_size_is_not_an_empty_collection(
    base_url: str, scan_of: ScanOf, workspace: Workspace
) -> None:
    """Datasette answers 400 above `max_returned_rows`."""

    def larger(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = 1001

    receipt = run_scan(scan_of(base_url, larger), workspace=workspace).stored.receipt

    assert (receipt.traversal, receipt.coverage_status) == ("failed", "failed")
    assert (receipt.refused_responses, receipt.pages_observed) == (1, 0)
    assert not receipt.accepted


def test_a_count_that_the_source_withholds_decides_nothing(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    """`_nocount` takes Datasette's count away, as its own time limit does on a large table."""

    def uncounted(raw: dict[str, Any]) -> None:
        raw["source"]["params"]["_nocount"] = "1"

    receipt = run_scan(scan_of(base_url, uncounted), workspace=workspace).stored.receipt

    assert expectation(receipt, "source_count") == (None, len(airports), "not_evaluated")
    assert (receipt.records_expected, receipt.coverage_status) == (None, "unknown")
    assert {each.code for each in receipt.findings.first} == {"live_traversal", "no_denominator"}


def test_run_of_the_file_exits_0(base_url: str, airports: Airports, facts: Any) -> None:
    path: Path = facts(base_url)
    mine = {k: v for k, v in os.environ.items() if not k.startswith("SCAN_PIPELINE_")}

    ran = subprocess.run(
        [Path(sys.executable).with_name("scan-pipeline"), "--lake", path.parent / "lake"]
        + ["run", path.name, "--json"],
        cwd=path.parent,
        env=mine,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["accepted"] is True
    assert told["receipt"]["coverage_status"] == "unknown"
    assert told["receipt"]["conclusion_scope"] == MET
    assert told["receipt"]["records_observed"] == len(airports)


def test_a_missing_package_skips_on_a_laptop_and_fails_in_ci() -> None:
    command = r"pip install 'scan-pipeline\[test\]'"
    with pytest.raises(pytest.skip.Exception, match=command):
        need("no_such_package", environ={})
    with pytest.raises(pytest.fail.Exception, match=command):
        need("no_such_package", environ={"CI": "true"})
    need("json", environ={"CI": "true"})


def _bodies(scan: Scan, stored: StoredReceipt, workspace: Workspace) -> Any:
    return workspace.store(scan.name, stored.receipt.scan_generation).bodies()
