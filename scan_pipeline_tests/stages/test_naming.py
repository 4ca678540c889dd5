"""The newest name is the newest night, whatever the clock says."""

from datetime import timedelta

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.naming import free_generation
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import run_scan
from scan_pipeline.store.receipts import generation_order
from scan_pipeline_tests.conftest import laid_down


def test_clock_that_was_set_back_hides_no_newer_night(bench):
    first = bench.walk_records([[b'{"id":"a","n":1}']])
    bench.clock.now -= timedelta(hours=3)
    inner = laid_down([[b'{"id":"b","n":1}']])
    place = bench.workspace(inner=inner, project=first.workspace.project)

    second = run_scan(first.scan, workspace=place).stored.receipt

    assert second.scan_generation == f"{first.generation}.2"
    assert first.collection.latest().frame().collect()["id"].to_list() == ["b"]
    assert first.published()["id"].to_list() == ["b"]


def test_walk_without_a_receipt_counts_too(bench, things):
    workspace = bench.workspace(inner=laid_down([[b'{"id":"a","n":1}']]))
    Pipeline(things(), "20301130T010000Z", workspace=workspace).pages()

    assert free_generation("things", workspace=workspace) == "20301130T010000Z.2"


def test_generation_that_would_hide_behind_another_is_not_begun(bench, things):
    """Who names a generation himself, as a schedule does, is held to the same rule."""

    walked = bench.walk_records([[b'{"id":"a","n":1}']])
    older = Pipeline(walked.scan, "20261129T000000Z", workspace=walked.workspace)

    with pytest.raises(ContractError, match="clock"):
        older.pages()

    assert older.store.events() == []


def test_name_of_now_is_taken_where_it_is_the_newest(bench):
    walked = bench.walk_records([[b'{"id":"a","n":1}']])
    bench.clock.now += timedelta(days=1)

    name = free_generation("things", workspace=walked.workspace)

    assert generation_order(name) > generation_order(walked.generation)
    assert "." not in name
