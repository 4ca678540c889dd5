"""The only way in: what each receipt opens, to whom, and how every row says what it is."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from scan_pipeline.core.errors import GateClosedError, TamperedError
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES
from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.unlock import (
    LABELS,
    PartialCollection,
    VerifiedCollection,
    open_partial,
    unlock,
)

SMALL = {"contract.expect": {}, "source.partition_counts": ...}


@pytest.fixture(scope="module")
def verified(shared_bench):
    return shared_bench.walk(shared_bench.registry(size=150), SMALL)


@pytest.fixture(scope="module")
def limited(shared_bench):
    pages = {**SMALL, "contract.limits": {"pages": 1}}
    return shared_bench.walk(shared_bench.registry(size=150), pages)


@pytest.fixture(scope="module")
def failed(shared_bench):
    early = shared_bench.registry(size=150, script=Script(faults=(EndEarly(page=1),)))
    return shared_bench.walk(early, SMALL)


@pytest.fixture
def fresh(bench):
    """A verified night of its own, for tests that go on from it."""
    return bench.walk(bench.registry(size=150), SMALL)


def test_verified_receipt_opens_the_whole(verified):
    opened = unlock(verified.night.stored, verified.scan, workspace=verified.workspace)

    assert isinstance(opened, VerifiedCollection)
    assert opened.frame().select(pl.len()).collect().item() == 150
    assert opened.arrow().num_rows == 150
    assert opened.receipt_id == verified.night.stored.receipt_id
    assert opened.word() == verified.receipt.statement
    assert opened.frame().collect()["scan_generation"].unique().to_list() == [verified.generation]
    assert opened.frame().collect_schema().names() == opened.arrow().column_names


def test_partial_type_has_no_reader_in_common_with_the_whole():
    """Code that means the whole cannot be handed a part by mistake."""

    def readers(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    assert not readers(VerifiedCollection) & readers(PartialCollection)
    assert not issubclass(PartialCollection, VerifiedCollection)


@pytest.mark.parametrize("at_least", ["verified", "corroborated"])
def test_pages_alone_open_no_whole(limited, at_least):
    with pytest.raises(GateClosedError) as closed:
        unlock(limited.night.stored, limited.scan, workspace=limited.workspace, at_least=at_least)

    assert "coverage is unknown, observed_pages_only" in closed.value.reason
    assert "limit reached" in closed.value.reason
    assert closed.value.generation == limited.generation


def test_pages_are_labelled_row_by_row(limited):
    opened = limited.collection.partial(limited.generation, accept="observed_pages_only")
    rows = opened.labelled_frame().collect()

    assert isinstance(opened, PartialCollection)
    assert rows.height == 100
    assert rows.select(LABELS).unique().rows() == [
        (limited.night.stored.receipt_id, "unknown", "observed_pages_only")
    ]
    assert opened.warning == limited.receipt.statement


@pytest.mark.parametrize(
    "accept", [scope for scope in CONCLUSION_SCOPES if scope != "observed_pages_only"]
)
def test_pages_open_as_nothing_more(limited, accept):
    with pytest.raises(GateClosedError, match=f"expected at least {accept}"):
        limited.collection.partial(limited.generation, accept=accept)


@pytest.mark.parametrize("accept", CONCLUSION_SCOPES)
def test_failed_generation_opens_to_nobody(failed, accept):
    with pytest.raises(GateClosedError, match="a failed generation opens to nobody"):
        failed.collection.partial(failed.generation, accept=accept)
    with pytest.raises(GateClosedError, match="coverage is failed"):
        failed.collection.generation(failed.generation)


@pytest.mark.parametrize(
    ("accept", "opens"),
    [
        ("all_records_in_snapshot", True),
        ("records_encountered_in_live_traversal", True),
        ("bounded_view", True),
        ("observed_pages_only", True),
        ("all_records_up_to_high_water_mark", False),
        ("all_records_at_change_token", False),
        ("all_records_present_throughout_both_walks", False),
        ("all_changes_since_checkpoint", False),
    ],
)
def test_whole_opens_as_itself_and_every_lesser_scope(verified, accept, opens):
    try:
        opened = verified.collection.partial(verified.generation, accept=accept)
    except GateClosedError:
        assert not opens
    else:
        assert opens
        assert opened.labelled_frame().collect()["_coverage_status"].unique().to_list() == [
            "verified"
        ]


def test_nonconforming_records_close_the_whole_and_not_the_parts(bench):
    odd = bench.walk_records([[b'{"id":"a","n":1.5}', b'{"id":"b","n":1}']])

    with pytest.raises(GateClosedError, match="1 records do not conform; expected at most 0"):
        odd.collection.generation(odd.generation)
    opened = odd.collection.partial(odd.generation, accept="all_records_in_snapshot")
    assert opened.labelled_frame().select("id", "n", "_conforming").collect().rows() == [
        ("a", None, False),
        ("b", 1, True),
    ]


@pytest.mark.parametrize(
    "edits",
    [
        {"source.params": {"region": "eu"}},
        {"source.next.ends_when": [{"is": "absent"}]},
        {"source.snapshot.send_as": "version"},
        {"contract.mode": "bounded", "contract.limits": {"records": 1_000}},
    ],
    ids=["filter", "end signal", "pin", "mode"],
)
def test_receipt_of_another_scope_opens_nothing(bench, verified, edits):
    other = Collection(bench.scan({**SMALL, **edits}), workspace=verified.workspace)

    with pytest.raises(GateClosedError, match="the receipt is of another contract"):
        other.generation(verified.generation)
    with pytest.raises(GateClosedError, match="the receipt is of another contract"):
        other.partial(verified.generation, accept="observed_pages_only")
    with pytest.raises(GateClosedError, match="no generation is verified"):
        other.latest()


def test_change_of_judgement_or_operation_leaves_the_scope(bench, verified):
    other = bench.scan({**SMALL, "contract.expect": {"count": 7}, "source.page_size.value": 10})

    assert Collection(other, workspace=verified.workspace).generation(verified.generation)


def test_receipts_of_two_scans_do_not_stand_in_for_each_other(bench, fresh):
    """Same source, same contract, another name: still not the scan that was meant."""
    scan = bench.scan({**SMALL, "name": "clients"})
    workspace = bench.workspace(fresh.registry, project=fresh.workspace.project)
    other = Collection(scan, workspace=workspace)

    with pytest.raises(GateClosedError, match="the receipt is of another contract"):
        unlock(fresh.night.stored, scan, workspace=workspace)
    with pytest.raises(GateClosedError):
        other.generation(fresh.generation)
    with pytest.raises(GateClosedError):
        other.latest()


def test_generation_without_a_receipt_opens_nothing(verified):
    with pytest.raises(GateClosedError):
        verified.collection.generation("20200101T000000Z")


def test_latest_is_the_newest_that_is_whole(bench, fresh):
    """A bad night leaves the good one open, and says so."""
    bad = fresh.again(bench.scan({**SMALL, "contract.limits": {"pages": 1}}))

    assert bad.collection.latest().receipt.scan_generation == fresh.generation
    standing = bad.collection.standing()
    assert standing.opened == fresh.generation
    assert [generation for generation, _ in standing.newer] == [bad.generation]
    assert "limit reached" in standing.word()
    assert standing.word().startswith(
        f"data of last night, generation {fresh.generation}, 0.0 days old; the newer generation "
        f"{bad.generation} was not accepted: "
    )


def test_latest_moves_to_the_next_good_night(fresh):
    after = fresh.again()

    assert after.generation != fresh.generation
    assert after.collection.latest().receipt.scan_generation == after.generation
    assert after.collection.standing().newer == ()


def test_latest_may_be_too_old(bench, fresh):
    bench.clock.sleep(3 * 86_400)

    assert fresh.collection.latest(max_age=timedelta(days=4))
    with pytest.raises(GateClosedError, match=r"3\.0 days old; .*expected at most 2 days"):
        fresh.collection.latest(max_age=timedelta(days=2))


def test_nothing_at_all_is_told(bench):
    empty = Collection(bench.scan({**SMALL}), workspace=bench.workspace())

    with pytest.raises(GateClosedError, match="no generation is verified over the whole"):
        empty.latest()


def records_files(walked):
    held = walked.receipt.evidence["records"]
    return [Path(walked.workspace.project.lake, held.table, each.path) for each in held.files]


def test_rows_that_are_not_the_sealed_ones_open_nothing(fresh):
    (path,) = records_files(fresh)
    sealed = path.read_bytes()

    path.write_bytes(sealed + b"\0")
    with pytest.raises(TamperedError):
        fresh.collection.generation(fresh.generation)

    path.write_bytes(sealed[:-20] + bytes(20))
    stored, scan, workspace = fresh.night.stored, fresh.scan, fresh.workspace
    with pytest.raises(TamperedError):
        unlock(stored, scan, workspace=workspace, contents=True)
    with pytest.raises(TamperedError):
        open_partial(stored, scan, workspace=workspace, accept="observed_pages_only", contents=True)

    path.unlink()
    with pytest.raises(TamperedError):
        fresh.collection.generation(fresh.generation)
