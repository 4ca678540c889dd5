"""The plain table: the last accepted generation, whole, for who never heard of generations."""

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.maintain import maintain
from scan_pipeline.stages.publish import GENERATION, HIDDEN, RECEIPT_ID, published_generation
from scan_pipeline.stages.restage import restage
from scan_pipeline.store.published_table import open_published

SMALL = {"contract.expect": {}, "source.partition_counts": ...}


@pytest.fixture
def accepted(bench):
    return bench.walk(bench.registry(size=150), SMALL)


def commit(walked):
    return open_published(walked.workspace.lake, walked.scan.name).latest_commit()


def test_count_is_right_for_a_stranger(accepted):
    """As DuckDB would read it: the files that the newest version names."""
    rows = accepted.published()
    counted = duckdb.sql("select count(*), count(distinct customer_id) from rows").fetchall()

    assert counted == [(150, 150)]
    assert not set(HIDDEN) & set(rows.columns)
    assert rows["customer_id"].sort().to_list()[0] == "customer-1"


def test_commit_says_whose_receipt_it_is(accepted):
    told = commit(accepted)

    assert told[RECEIPT_ID] == accepted.night.stored.receipt_id
    assert told[GENERATION] == accepted.generation
    assert published_generation("customers", workspace=accepted.workspace) == accepted.generation


def test_bad_night_leaves_the_good_one(bench, accepted):
    before = commit(accepted)["timestamp"]
    failing = Script(faults=(EndEarly(page=1),))

    bad = bench.walk(
        bench.registry(size=150, script=failing), SMALL, project=accepted.workspace.project
    )

    assert not bad.receipt.accepted
    assert commit(bad)["timestamp"] == before
    assert bad.published().height == 150


def test_next_good_night_takes_its_place(bench, accepted):
    more = bench.walk(bench.registry(size=170), SMALL, project=accepted.workspace.project)

    assert commit(more)[GENERATION] == more.generation
    assert more.published().height == 170


def test_other_columns_of_the_next_night_take_the_place_of_the_old(bench):
    first = bench.walk_records([[b'{"id":"a","n":1}']])
    schema = [{"name": "id", "type": "string", "nullable": False}, {"name": "n", "type": "string"}]
    second = bench.walk_records(
        [[b'{"id":"a","n":"x"}']],
        {"record_schema": schema},
        project=first.workspace.project,
    )

    assert second.published().select("id", "n").rows() == [("a", "x")]


def test_nothing_is_published_before_a_night_was_accepted(bench):
    walked = bench.walk(bench.registry(size=150), {**SMALL, "contract.limits": {"pages": 1}})

    assert walked.published() is None
    assert published_generation("customers", workspace=walked.workspace) is None
    assert not (Path(walked.workspace.project.lake) / "published").exists()


def test_pages_of_a_walk_that_stopped_are_not_published_whatever_the_scan_accepts(bench):
    """A whole night before it would be replaced by a part."""
    pages = {"contract.limits": {"pages": 1}, "contract.accept": {"scope": "observed_pages_only"}}

    walked = bench.walk(bench.registry(size=150), {**SMALL, **pages})

    assert walked.receipt.accepted
    assert walked.published() is None


def test_accepted_live_night_is_published_with_its_label_on_each_row(bench):
    """The contract said that this counts as done; every row says what it is."""
    live = {
        "contract.consistency": "live",
        "source.snapshot": None,
        "source.params": {"view": "live"},
        "contract.accept": {"scope": "records_encountered_in_live_traversal"},
    }

    walked = bench.walk(bench.registry(size=150), {**SMALL, **live})

    published = walked.published()
    assert published.height == 150
    assert published["_conclusion_scope"].unique().to_list() == [
        "records_encountered_in_live_traversal"
    ]
    assert commit(walked)[RECEIPT_ID] == walked.night.stored.receipt_id


def test_published_table_that_a_break_left_behind_is_caught_up(bench, accepted, monkeypatch):
    """The receipt was written and the process ended: the next run publishes it."""
    from scan_pipeline.stages import pipeline

    with monkeypatch.context() as broken:
        broken.setattr(pipeline, "publish", lambda *_, **__: False)
        bench.walk(bench.registry(size=170), SMALL, project=accepted.workspace.project)
    assert accepted.published().height == 150

    failing = bench.registry(size=180, script=Script(faults=(EndEarly(page=1),)))
    after = bench.walk(failing, SMALL, project=accepted.workspace.project)

    assert not after.receipt.accepted
    assert after.published().height == 170


def test_table_is_withdrawn_where_the_night_before_has_no_records_any_more(bench, things):
    """The published one is judged failed, and what would take its place was dropped by policy."""
    first = bench.walk_records([[b'{"id":"a","n":1}']])
    bench.clock.now += timedelta(days=1)
    second = bench.walk_records([[b'{"id":"a","n":2}']], project=first.workspace.project)
    maintain(things({"operation.retention": {"generations": 1}}), workspace=second.workspace)

    again = restage(
        things({"contract.expect.count": 9}), second.generation, workspace=second.workspace
    )

    assert again.receipt.coverage_status == "failed"
    assert second.published() is None
