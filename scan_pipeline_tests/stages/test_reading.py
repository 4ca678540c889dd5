"""Ways to open a collection, and how old it may be."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.stages.reading import Collection, open_collection
from scan_pipeline.store.project import VARIABLES
from scan_pipeline_tests.conftest import THINGS


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

    for opened in (
        lambda held: held.latest(),
        lambda held: held.generation(walked.receipt.scan_generation),
        lambda held: held.partial(walked.receipt.scan_generation, accept="observed_pages_only"),
        lambda held: held.newest_part(accept="observed_pages_only"),
    ):
        allowed, refused = (
            Collection(walked.scan, workspace=walked.workspace, max_age=timedelta(hours=hours))
            for hours in (31, 24)
        )
        assert opened(allowed)
        with pytest.raises(GateClosedError, match="at most 1 day"):
            opened(refused)
    with pytest.raises(GateClosedError, match="at most 1 day"):
        collection.latest(max_age=timedelta(hours=24))


NIGHTLY = {"schedule": {"cron": "0 2 * * *", "timezone": "UTC"}}


def test_late_data_is_told_and_not_refused(bench):
    """One period plus half is late; until then, and without a schedule, nobody is told."""
    pages = [[b'{"id":"a","n":1}']]
    walked = bench.walk_records(pages, NIGHTLY)
    told = []
    nightly, unscheduled = (
        Collection(scan, workspace=walked.workspace, tell=told.append)
        for scan in (walked.scan, replace(walked.scan, schedule=None))
    )
    bench.clock.sleep(timedelta(hours=35).total_seconds())
    assert nightly.latest()
    assert told == []
    assert "data of 2 nights ago, generation " in nightly.standing().word()
    bench.clock.sleep(timedelta(hours=26).total_seconds())
    assert nightly.latest()
    assert unscheduled.latest()
    (word,) = told
    assert word.startswith("things: data of 3 nights ago, generation ")
    assert word.endswith("; no generation since 2026-11-30, one is due every night")
    assert unscheduled.standing().word().endswith("2.5 days old")
    with pytest.raises(GateClosedError, match=r"data of 3 nights ago.*no generation since"):
        nightly.latest(max_age=timedelta(hours=36))


def test_word_says_when_a_newer_generation_failed_and_why(bench):
    """`data of 3 nights ago; last night failed: …`, and what is said to who may not see why."""
    walked = bench.walk_records([[b'{"id":"a","n":1}']], NIGHTLY)
    bench.clock.sleep(timedelta(hours=48).total_seconds())
    bench.walk_records([[b'{"id":"a","n":1}']], NIGHTLY, total=2, project=walked.workspace.project)
    bench.clock.sleep(timedelta(hours=2).total_seconds())
    standing = walked.collection.standing()

    assert standing.word().startswith("data of 3 nights ago, generation 2026")
    assert "; last night, 20261202T02" in standing.word()
    assert ", failed: " in standing.word()
    assert standing.plain_word().endswith(", was not accepted")
    assert "no generation since" not in standing.word()
    bench.clock.sleep(timedelta(hours=48).total_seconds())
    later = walked.collection.standing().word()
    assert "; 3 nights ago, 20261202T02" in later
    assert later.endswith("; no generation since 2026-12-02, one is due every night")


def test_late_data_is_logged_where_python_opens_it(bench, shipped, tmp_path, caplog):
    """`open_collection(...).latest()` gives the rows, and says so in the library's own log."""
    bench.clock.now = datetime(2020, 1, 1, 2, tzinfo=UTC)
    project = bench.walk_records([[b'{"id":"a","n":1}']], NIGHTLY).workspace.project
    file = tmp_path / "things.yaml"
    file.write_text(json.dumps({**THINGS, **NIGHTLY}))
    environ = {variable: str(getattr(project, name)) for name, variable in VARIABLES.items()}
    opening = {"folder": tmp_path, "environ": environ}

    assert open_collection(str(file), **opening).latest().arrow().num_rows == 1
    (told,) = caplog.records
    assert (told.name, told.levelname) == ("scan_pipeline", "WARNING")
    assert "no generation since 2020-01-01, one is due every night" in told.getMessage()
    with pytest.raises(GateClosedError, match="expected at most 1 day"):
        open_collection(str(file), max_age=timedelta(days=1), **opening).latest()


def test_places_are_given_as_paths_or_text(tmp_path: Path, shipped):
    for lake in (tmp_path / "lake", str(tmp_path / "lake")):
        opened = open_collection("customers", lake=lake, folder=tmp_path, environ={})
        assert opened.scan.name == "customers"


def test_what_was_read_after_now_is_of_no_age(bench):
    """A clock was set back, or the walker's is ahead: nobody can call it young enough."""
    walked = bench.walk_records([[b'{"id":"a","n":1}']], NIGHTLY)
    bench.clock.now -= timedelta(days=30)
    told: list[str] = []
    collection = Collection(walked.scan, workspace=walked.workspace, tell=told.append)

    assert collection.latest().arrow().num_rows == 1
    assert "read 30.00 days after now: a clock is wrong" in told[0]
    assert collection.standing().late_word() is not None
    for opening in (
        lambda: collection.latest(max_age=timedelta(days=99)),
        lambda: Collection(
            walked.scan, workspace=walked.workspace, max_age=timedelta(days=99)
        ).generation(walked.generation),
    ):
        with pytest.raises(GateClosedError, match="after now"):
            opening()
