"""Rounds that break off at each point between a page and the table: nothing twice, nothing lost."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from scan_pipeline.core.errors import WriterConflictError
from scan_pipeline.simulator.mutations import Delete, Insert, Update
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.maintain import maintain
from scan_pipeline.stages.naming import free_generation
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.syncing.beginning import beginning_of
from scan_pipeline.store.published_table import open_published
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.breaking import break_off, events_of
from scan_pipeline_tests.stages.crashes import FIRST, Crashed, Kill
from scan_pipeline_tests.stages.syncing.rounds import ROUNDS, Following, following

CHANGED = {
    "source.params": {"updates": "changed"},
    "source.delta.updates": "changed_members",
}


def begun(bench: Bench) -> Following:
    """A baseline, and changes of three pages waiting for the round after it."""
    followed = following(bench, CHANGED, size=60)
    followed.round()
    followed.change(
        Update(first=2, region="mea"), Insert(first=61, last=160), Delete(first=5, last=14)
    )
    return followed


def named(followed: Following) -> str:
    return free_generation(followed.scan.name, workspace=followed.workspace)


@pytest.mark.long
@pytest.mark.parametrize("after", [2, 3])
def test_round_that_breaks_off_goes_on_from_its_own_checkpoint(bench: Bench, after: int) -> None:
    followed = begun(bench)
    first, held = followed.rests_on, followed.current
    generation = break_off(followed.scan, followed.workspace, after=after)
    assert (followed.rests_on, followed.current) == (first, held)
    assert beginning_of(
        followed.scan,
        followed.workspace.store(followed.scan.name, generation),
        workspace=followed.workspace,
    )
    followed.change(Delete(first=2))  # behind what the round tells of

    receipt = followed.round()

    assert (receipt.scan_generation, receipt.accepted) == (generation, True)
    assert receipt.round is not None
    assert receipt.round.since is not None
    assert receipt.round.since.receipt_id == first[0]
    assert receipt.pages_observed == 3
    assert "customer-2" in followed.current
    followed.round()
    assert followed.current == followed.source
    assert len(followed.rests_on) == 3


@pytest.mark.parametrize(
    "done",
    [
        pytest.param("pages", marks=pytest.mark.long),
        pytest.param("records", marks=pytest.mark.long),
        pytest.param("reconciliation", marks=pytest.mark.long),
        "receipt",
        pytest.param("published", marks=pytest.mark.long),
    ],
)
def test_round_that_breaks_off_between_stages_is_laid_over_once(bench: Bench, done: str) -> None:
    followed = begun(bench)
    pipeline = Pipeline(followed.scan, named(followed), workspace=followed.workspace)
    for stage in ("pages", "records", "reconciliation", "receipt", "published"):
        getattr(pipeline, stage)()
        if stage == done:
            break
    laid = done == "published"
    assert len(followed.rests_on) == (2 if laid else 1)
    followed.change(Update(first=2, region="eu"), Insert(first=5))

    receipts = [followed.round(), followed.round()]

    assert followed.current == followed.source
    walked = done in ("receipt", "published")
    assert len(followed.rests_on) == len(set(followed.rests_on)) == (4 if walked else 3)
    assert all(each.coverage_status == "verified" for each in receipts)
    audit = Audit(
        followed.scan.name, receipts[-1].scan_generation, workspace=followed.workspace
    ).run()
    assert audit.agrees, audit.disagreements


def test_round_whose_first_page_tells_of_more_by_now_begins_again_where_it_began(
    bench: Bench,
) -> None:
    followed = begun(bench)
    (first,) = followed.rests_on
    generation = break_off(followed.scan, followed.workspace, after=1)
    followed.change(Delete(first=2))

    night = run_scan(followed.scan, workspace=followed.workspace)

    assert [each.receipt.stop_reason for each in night.earlier] == ["continuation_consumed"]
    receipt = night.stored.receipt
    assert (receipt.restart_of, receipt.accepted) == (generation, True)
    assert receipt.round is not None
    assert receipt.round.since is not None
    assert receipt.round.since.receipt_id == first
    assert followed.current == followed.source


def test_checkpoint_is_durable_only_with_its_round(bench: Bench) -> None:
    followed = begun(bench)
    generation = break_off(followed.scan, followed.workspace, after=3)
    last = events_of(followed.scan, followed.workspace)[-1]
    assert (last.event, last.end_signal) == ("page", "delta_link")

    fresh = named(followed)
    begins = beginning_of(
        followed.scan,
        followed.workspace.store(followed.scan.name, fresh),
        workspace=followed.workspace,
    )

    assert fresh != generation
    assert begins is not None
    assert begins.since.generation == FIRST


@pytest.mark.long
def test_round_that_is_judged_again_and_no_longer_accepted_takes_its_followers_along(
    bench: Bench,
) -> None:
    followed = begun(bench)
    second = followed.round()
    followed.change(Delete(first=20))
    followed.round()
    three = followed.rests_on
    assert len(three) == 3
    stricter = following_with_accept(followed)

    judged = restage(stricter.scan, second.scan_generation, workspace=followed.workspace)

    assert not judged.receipt.accepted
    assert followed.rests_on == three[:1]
    receipt = run_scan(followed.scan, workspace=followed.workspace).stored.receipt
    assert receipt.round is not None
    assert receipt.round.since is not None
    assert receipt.round.since.receipt_id == three[0]
    assert followed.current == followed.source


def following_with_accept(followed: Following) -> Following:
    """Return the same scan under a key that removals do not have."""
    contract = replace(followed.scan.contract, key=("region", "customer_id"))
    return Following(
        scan=replace(followed.scan, contract=contract),
        registry=followed.registry,
        workspace=followed.workspace,
    )


def test_table_that_another_process_wrote_meanwhile_is_not_written_over(bench: Bench) -> None:
    followed = begun(bench)
    table = open_published(followed.workspace.lake, followed.scan.name)
    before = table.open()
    rows = table.read(FIRST)
    followed.round()
    rests = followed.rests_on

    late = open_published(followed.workspace.lake, followed.scan.name, rows.schema)
    with pytest.raises(WriterConflictError):
        late.replace_all(rows, generation=FIRST, at=before)

    assert (followed.rests_on, len(rests)) == (rests, 2)
    assert followed.current == followed.source


KILLED: Mapping[str, Any] = {
    "source": ROUNDS["source"],
    "contract": {**ROUNDS["contract"], "limits": {"seconds": 600}},
    "operation": {"commit_pages": 1},
    "record_schema": None,
}


@pytest.mark.long
@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(Kill("answer", 7), id="between pages"),
        pytest.param(Kill("answer", 21), id="before the checkpoint"),
        pytest.param(Kill("receipt"), id="before the receipt"),
        pytest.param(Kill("receipt_filed"), id="between receipt and table"),
    ],
)
def test_killed_baseline_comes_to_the_same_table(bench: Bench, kill: Kill) -> None:
    crashed = Crashed(bench, edits=KILLED)
    crashed.kill(kill)

    night = crashed.run()

    receipt = night.stored.receipt
    assert receipt.coverage_status == "verified"
    followed = Following(crashed.scan, bench.registry(size=crashed.size), crashed.workspace())
    assert followed.current == followed.source
    assert followed.rests_on[0].startswith("sha256:")
    assert len(followed.rests_on) == (2 if kill.point == "receipt_filed" else 1)
    maintain(followed.scan, workspace=followed.workspace)
    assert len(followed.current) == crashed.size
