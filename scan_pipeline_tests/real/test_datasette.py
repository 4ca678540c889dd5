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

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.publish import published_generation
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.unlock import LABELS, open_partial, unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import MET, Airports, Walked, Wire, walk
from scan_pipeline_tests.real.datasette_server import need, serving, write_airports

FIELDS = (
    *("icao", "iata", "name", "city", "subd", "country"),
    *("elevation", "lat", "lon", "tz", "lid"),
)
NUMBERS = ("elevation", "lat", "lon")

ScanOf = Callable[..., Scan]


def pages_of_100(raw: dict[str, Any]) -> None:
    raw["source"]["page_size"]["value"] = 100


def test_every_field_of_every_airport_arrives(typed: Walked, airports: Airports) -> None:
    rows = typed.met().select(FIELDS).to_dicts()

    assert rows == [dict(airports[key]) for key in sorted(airports)]


def test_every_field_arrives_without_a_record_schema(inferred: Walked, airports: Airports) -> None:
    """A number with a fraction keeps its text, so that nothing is rounded."""
    frame, expected = inferred.met(), [airports[key] for key in sorted(airports)]

    for name in FIELDS:
        found, sent = frame[name].to_list(), [each[name] for each in expected]
        assert frame[name].dtype == pl.String
        if name in NUMBERS:
            found, sent = list(map(Decimal, found)), list(map(Decimal, map(repr, sent)))
        assert found == sent


def test_the_text_of_every_record_is_kept_where_no_schema_is_declared(
    inferred: Walked, airports: Airports
) -> None:
    texts = inferred.met()["_raw"].to_list()

    assert [json.loads(text) for text in texts] == [dict(airports[k]) for k in sorted(airports)]


def test_a_record_schema_changes_nothing_of_what_is_proven(typed: Walked, inferred: Walked) -> None:
    assert inferred.receipt.merkle == typed.receipt.merkle
    assert inferred.receipt.scope_digest == typed.receipt.scope_digest
    assert inferred.receipt.judgement_digest != typed.receipt.judgement_digest


def test_the_receipt_says_what_a_live_source_allows_and_is_accepted(
    typed: Walked, airports: Airports
) -> None:
    receipt = typed.receipt

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", MET)
    assert receipt.accepted
    assert (receipt.traversal, receipt.stop_reason) == ("finished", "end_signal")
    assert receipt.records_observed == receipt.unique_ids_observed == len(airports)
    assert typed.expectation("source_count") == (len(airports), len(airports), "met")
    assert receipt.pages_observed == -(-len(airports) // 1000)
    assert [each.code for each in receipt.findings.first] == ["live_traversal"]
    assert receipt.statement == (
        f"{len(airports):,} records of airports, generation {receipt.scan_generation}, were met by "
        "a walk to the end; others may exist, as visible to the credentials of the scan (the "
        "source names no principal)."
    )


@pytest.mark.parametrize("at_least", ["verified", "corroborated"])
def test_no_whole_collection_opens_on_a_live_walk(typed: Walked, at_least: Any) -> None:
    collection = Collection(typed.scan, workspace=typed.workspace)

    with pytest.raises(GateClosedError, match="live"):
        unlock(typed.stored, typed.scan, workspace=typed.workspace, at_least=at_least)
    with pytest.raises(GateClosedError, match="live"):
        collection.generation(typed.receipt.scan_generation, at_least=at_least)
    with pytest.raises(GateClosedError, match="no generation is"):
        collection.latest(at_least=at_least)


def test_a_live_walk_is_no_snapshot_to_a_partial_reader_either(typed: Walked) -> None:
    with pytest.raises(GateClosedError, match="expected at least all_records_in_snapshot"):
        open_partial(
            typed.stored, typed.scan, workspace=typed.workspace, accept="all_records_in_snapshot"
        )


def test_the_lesser_is_labelled_on_every_row(typed: Walked, airports: Airports) -> None:
    labels = typed.met().select(LABELS)

    assert labels.height == len(airports)
    assert labels.unique().rows() == [(typed.stored.receipt_id, "unknown", MET)]


def test_an_accepted_live_night_is_published_and_audits(typed: Walked) -> None:
    generation = typed.receipt.scan_generation

    audit = Audit(typed.scan.name, generation, workspace=typed.workspace).run()

    assert audit.agrees, [each for each in audit.checks if not each.agrees]
    assert published_generation(typed.scan.name, workspace=typed.workspace) == generation


@pytest.mark.parametrize(
    "rows",
    [0, 100, 101, *(pytest.param(rows, marks=pytest.mark.long) for rows in (1, 99, 200, 8_742))],
)
def test_the_end_is_found_whatever_the_last_page_holds(
    rows: int, airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace
) -> None:
    keys = sorted(airports)[:rows]
    write_airports(tmp_path / "airports.db", [airports[key] for key in keys])

    with serving(tmp_path / "airports.db") as url:
        walked = walk(scan_of(url, pages_of_100), workspace)

    assert walked.receipt.accepted
    assert walked.expectation("source_count") == (rows, rows, "met")
    assert walked.receipt.pages_observed == max(1, -(-rows // 100))
    assert walked.met()["icao"].to_list() == keys


def test_a_filter_is_held_against_every_record(
    base_url: str, airports: Airports, scan_of: ScanOf, workspace: Workspace
) -> None:
    def portugal(raw: dict[str, Any]) -> None:
        raw["source"]["params"]["country"] = "PT"
        raw["contract"]["expect"] = {"every_record": {"country": "PT"}}

    expected = sorted(key for key, each in airports.items() if each["country"] == "PT")

    walked = walk(scan_of(base_url, portugal), workspace)

    assert walked.receipt.accepted
    assert walked.expectation("source_count") == (len(expected), len(expected), "met")
    assert walked.expectation("every_record") == (0, 0, "met")
    assert walked.met()["icao"].to_list() == expected


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
        walked = walk(scan_of(url, misspelt), workspace)

    assert walked.expectation("source_count") == (len(iberian), len(iberian), "met")
    assert walked.expectation("every_record") == (0, others, "missed")
    assert (walked.receipt.coverage_status, walked.receipt.accepted) == ("failed", False)
    with pytest.raises(GateClosedError, match="filter missed"):
        walked.met()


def test_a_foreign_next_url_is_not_followed(
    airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace, wire: Wire
) -> None:
    """Behind a proxy Datasette's `next_url` names another origin: its setting force_https_urls."""
    keys = sorted(airports)[:250]
    write_airports(tmp_path / "airports.db", [airports[key] for key in keys])

    with serving(tmp_path / "airports.db", "force_https_urls", "1") as url:
        walked = walk(scan_of(url, pages_of_100), workspace)

    store = workspace.store(walked.scan.name, walked.receipt.scan_generation)
    named = [json.loads(body)["next_url"] for _, body in store.bodies()]
    foreign = url.replace("http://", "https://")
    assert [str(each).startswith(foreign) for each in named] == [True, True, False]
    assert {str(each).partition("?")[0] for each in wire.asked} == {f"{url}/airports/airports.json"}
    sent = [dict(each.params) for each in wire.asked]
    frozen = {"_shape": "objects", "_nofacet": "1", "_size": "100"}
    assert sent == [frozen, {**frozen, "_next": keys[99]}, {**frozen, "_next": keys[199]}]
    assert walked.met()["icao"].to_list() == keys


def test_a_refused_page_size_is_not_an_empty_collection(
    base_url: str, scan_of: ScanOf, workspace: Workspace
) -> None:
    """Datasette answers 400 above `max_returned_rows`."""

    def larger(raw: dict[str, Any]) -> None:
        raw["source"]["page_size"]["value"] = 1001

    receipt = walk(scan_of(base_url, larger), workspace).receipt

    assert (receipt.traversal, receipt.coverage_status) == ("failed", "failed")
    assert (receipt.refused_responses, receipt.pages_observed) == (1, 0)
    assert not receipt.accepted


def test_a_count_that_the_source_withholds_decides_nothing(
    airports: Airports, tmp_path: Path, scan_of: ScanOf, workspace: Workspace
) -> None:
    """`_nocount` takes Datasette's count away, as its own time limit does on a large table."""
    write_airports(tmp_path / "airports.db", [airports[key] for key in sorted(airports)[:250]])

    def uncounted(raw: dict[str, Any]) -> None:
        pages_of_100(raw)
        raw["source"]["params"]["_nocount"] = "1"

    with serving(tmp_path / "airports.db") as url:
        walked = walk(scan_of(url, uncounted), workspace)

    receipt = walked.receipt
    assert walked.expectation("source_count") == (None, 250, "not_evaluated")
    assert (receipt.records_expected, receipt.coverage_status) == (None, "unknown")
    assert {each.code for each in receipt.findings.first} == {"live_traversal", "no_denominator"}


def test_run_of_the_file_exits_0(base_url: str, airports: Airports, facts: Any) -> None:
    path: Path = facts(base_url)
    mine = {k: v for k, v in os.environ.items() if not k.startswith("SCAN_PIPELINE_")}

    ran = subprocess.run(
        [
            *(Path(sys.executable).with_name("scan-pipeline"), "--lake", path.parent / "lake"),
            *("run", path.name, "--json"),
        ],
        cwd=path.parent,
        env=mine,
        capture_output=True,
        text=True,
        timeout=180,
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
