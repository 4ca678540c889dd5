"""Ways to open a collection, and how old it may be."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.stages.reading import open_collection


@pytest.fixture
def walked(bench):
    return bench.walk_records([[b'{"id":"a","n":1}', b'{"id":"b","n":2}']])


def test_duckdb_has_the_rows_and_columns_of_arrow(walked):
    opened = walked.collection.latest()
    relation = opened.duckdb()

    assert relation.columns == opened.arrow().column_names
    assert sorted(relation.project("id, n").fetchall()) == [("a", 1), ("b", 2)]


def test_missing_duckdb_names_its_extra(walked, monkeypatch):
    opened = walked.collection.latest()
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(ConfigurationError, match=r"scan-pipeline\[duckdb\]"):
        opened.duckdb()


def test_what_is_older_than_allowed_is_refused(bench, walked):
    collection = walked.collection
    bench.clock.sleep(timedelta(hours=30).total_seconds())

    collection.refuse_older(walked.receipt, max_age=timedelta(hours=31))
    with pytest.raises(GateClosedError, match="at most 1 day"):
        collection.refuse_older(walked.receipt, max_age=timedelta(hours=24))
    with pytest.raises(GateClosedError, match="at most 1 day"):
        collection.latest(max_age=timedelta(hours=24))


def test_places_are_given_as_paths_or_text(tmp_path: Path, shipped):
    for lake in (tmp_path / "lake", str(tmp_path / "lake")):
        opened = open_collection("customers", lake=lake, folder=tmp_path, environ={})
        assert opened.scan.name == "customers"
