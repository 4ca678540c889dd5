"""Rounds of changes: `current` equal to the source after each, and what a receipt says of one."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.simulator.mutations import Delete, Insert, Update
from scan_pipeline.simulator.principals import ANALYST_TOKEN
from scan_pipeline.simulator.script import parse_script
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.erase import erase
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.agents.conftest import failure, policy_of, readers_of
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.syncing.rounds import AT_END, LIVE, Following, following

HABITS = {
    "whole records under a schema": {
        "record_schema": [
            {"name": name, "type": "int64" if name == "schema_version" else "string"}
            for name in ("customer_id", "region", "status", "schema_version")
        ],
    },
    "changed members, again and again": {
        "source.params": {"updates": "changed", "replays": "yes"},
        "source.delta.updates": "changed_members",
    },
    "replays": {"source.params": {"replays": "yes"}},
    "a link on every page": {
        "source.params": {"shown": "every_page"},
        "source.delta.shown_on": "every_page",
        "source.delta.taken_from": "first_page",
    },
}


def agrees(followed: Following, generation: str) -> None:
    audit = Audit(followed.scan.name, generation, workspace=followed.workspace).run()
    assert audit.agrees, audit.disagreements


@pytest.mark.parametrize(
    "habit",
    [
        "whole records under a schema",
        "changed members, again and again",
        pytest.param("replays", marks=pytest.mark.long),
        pytest.param("a link on every page", marks=pytest.mark.long),
    ],
)
def test_current_equals_the_source_after_every_round(bench: Bench, habit: str) -> None:
    followed = following(bench, HABITS[habit])
    meanwhile = (
        Insert(first=121, last=125),  # behind where the baseline reads
        Delete(first=3),  # before it
        Update(first=1, status="closed"),
        Delete(first=110),
    )
    receipts = [followed.round(followed.change_after(2, *meanwhile))]
    assert followed.current == followed.source
    nights = (
        (Update(first=2, region="mea"), Delete(first=121), Delete(first=20, last=39)),
        (Insert(first=3), Insert(first=121), Update(first=121, status="suspended")),  # restored
        (),
    )
    for changes in nights:
        followed.change(*changes)
        receipts.append(followed.round())
        assert followed.current == followed.source

    for receipt in receipts:
        assert (receipt.coverage_status, receipt.conclusion_scope, receipt.accepted) == (
            "verified",
            "all_changes_since_checkpoint",
            True,
        )
    began = [each.round and each.round.since and each.round.since.generation for each in receipts]
    assert began == [None, *(each.scan_generation for each in receipts[:-1])]
    if "replays" not in HABITS[habit].get("source.params", {}):
        assert [each.round and each.round.removed_ids for each in receipts[:3]] == [2, 21, 0]
    ids = followed.rests_on
    assert len(ids) == len(receipts)
    opened = Collection(followed.scan, workspace=followed.workspace).current(contents=True)
    assert opened.receipt_ids == ids
    assert opened.word().startswith(
        f"{len(followed.source)} records of customers are what baseline"
    )
    for receipt in (receipts[1], receipts[-1]):
        agrees(followed, receipt.scan_generation)


@pytest.mark.long
def test_round_is_no_whole_and_opens_as_what_it_is(bench: Bench, tmp_path: Path) -> None:
    followed = following(bench)
    followed.round()
    followed.change(Update(first=7, status="closed"), Delete(first=8))
    receipt = followed.round()
    collection = Collection(followed.scan, workspace=followed.workspace)

    with pytest.raises(GateClosedError, match="changes alone"):
        collection.latest()
    part = collection.partial(receipt.scan_generation, accept="all_changes_since_checkpoint")
    rows = part.labelled_frame().collect()
    assert dict(rows.select("_key", "_removed").iter_rows()) == {
        '["customer-7"]': None,
        '["customer-8"]': "deleted",
    }
    # To an agent, whose views show no column of ours, a removal would look like a record.
    walked = SimpleNamespace(scan=followed.scan, workspace=followed.workspace)
    readers = readers_of(walked, policy_of("customers"), tmp_path)
    asked = {"scan": "customers", "accept": "all_changes_since_checkpoint"}
    refused = readers.ask(lambda ask: ask("open_query", **asked), who="eve")
    assert failure(refused) == ("stop", "round_of_changes")
    assert receipt.statement.startswith("2 changes of customers, 1 of them removals, generation")
    assert {each.name: each.basis for each in receipt.assumptions} == {
        "checkpoint_covers_all_writes": "provider_documented",
        "end_signal_is_denominator": "provider_documented",
        "principal_view_constant": "assumed",
        "token_repeatable": "assumed",
    }


@pytest.mark.parametrize(
    "edits",
    [
        AT_END,
        {
            "source.params": {"shown": "every_page"},
            "source.delta": {
                "at": ["@odata.deltaLink"],
                "shown_on": "every_page",
                "baseline": "whole",
            },
        },
    ],
    ids=["on the last page", "on every page"],
)
def test_link_minted_at_the_end_of_a_walk_never_verifies(
    bench: Bench, edits: dict[str, Any]
) -> None:
    followed = following(bench, {**edits, "contract.accept": {"scope": LIVE}})
    receipt = followed.round(
        followed.change_after(2, Delete(first=3), Update(first=1, region="eu"))
    )

    assert (receipt.coverage_status, receipt.conclusion_scope) == ("unknown", LIVE)
    assert {f.code for f in receipt.findings.first if f.severity != "note"} == {"checkpoint_at_end"}
    assert "customer-3" in followed.current  # lost for good: no round tells of it
    assert "customer-3" not in followed.source
    assert set(followed.table["_conclusion_scope"].unique()) == {LIVE}
    collection = Collection(followed.scan, workspace=followed.workspace)
    with pytest.raises(GateClosedError, match="every round verified"):
        collection.current()
    assert "others may exist" in collection.current(accept=LIVE).word()
    agrees(followed, receipt.scan_generation)


def test_what_is_not_accepted_leaves_checkpoint_and_table_as_they_were(bench: Bench) -> None:
    followed = following(bench, {"operation.retries": {"attempts": 1}})
    first = followed.round()
    followed.change(Update(first=5, status="closed"), Insert(first=121, last=320))
    held, rests = followed.current, followed.rests_on
    broken = following_with(followed, bench, {"kind": "failing", "page": 3, "status": 503})

    stopped = broken.round()

    assert (stopped.traversal, stopped.accepted) == ("interrupted", False)
    assert (followed.current, followed.rests_on) == (held, rests)
    newer = Collection(followed.scan, workspace=followed.workspace).current().standing.word()
    assert stopped.scan_generation in newer
    again = followed.round()
    assert again.round is not None
    assert again.round.since is not None
    assert again.round.since.generation == first.scan_generation
    assert followed.current == followed.source
    assert len(followed.rests_on) == 2


def following_with(followed: Following, bench: Bench, *faults: dict[str, Any]) -> Following:
    """Return the same scan in the same place, over the same rows, with faults on the way."""
    registry = bench.registry(size=120, script=parse_script({"faults": list(faults)}))
    for each in followed.changes:
        registry.mutate(each)
    return followed.over(registry, bench)


@pytest.mark.parametrize(
    "expiry", ["before the first page", pytest.param("in the middle", marks=pytest.mark.long)]
)
def test_expired_state_means_a_new_baseline(bench: Bench, expiry: str) -> None:
    followed = following(bench)
    followed.round()
    followed.change(Insert(first=121, last=240), Delete(first=1))
    if expiry == "before the first page":
        bench.clock.now += timedelta(days=8)
        night = run_scan(followed.scan, workspace=followed.workspace)
    else:
        fault = {"kind": "snapshot_expired", "page": 2, "last_attempt": 1}
        broken = following_with(followed, bench, fault)
        night = run_scan(broken.scan, workspace=broken.workspace)

    (expired,) = night.earlier
    assert (expired.receipt.stop_reason, expired.receipt.accepted) == ("snapshot_expired", False)
    receipt = night.stored.receipt
    assert receipt.restart_of == expired.receipt.scan_generation
    assert receipt.round is not None
    assert receipt.round.since is None
    assert receipt.accepted
    assert followed.rests_on == (night.stored.receipt_id,)
    assert followed.current == followed.source
    followed.change(Delete(first=2))
    assert followed.round().accepted
    assert followed.current == followed.source


@pytest.mark.long
def test_checkpoint_of_another_principal_is_not_followed(bench: Bench) -> None:
    followed = following(bench)
    followed.round()
    other = Following(
        scan=followed.scan,
        registry=followed.registry,
        workspace=bench.workspace(
            followed.registry,
            project=followed.workspace.project,
            environ={"REGISTRY_TOKEN": ANALYST_TOKEN},
        ),
    )

    night = run_scan(other.scan, workspace=other.workspace)

    assert [each.receipt.stop_reason for each in night.earlier] == ["principal_changed"]
    assert night.stored.receipt.round is not None
    assert night.stored.receipt.round.since is None
    assert other.current == other.source
    assert len(other.source) < len(followed.source)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"kind": "completion_misreported", "page": 1}, "end_signals_disagree"),
    ],
)
def test_page_with_no_link_or_both_is_no_end(
    bench: Bench, fault: dict[str, Any], code: str
) -> None:
    followed = following(bench, script=parse_script({"faults": [fault]}))

    receipt = followed.round()

    assert (receipt.coverage_status, receipt.accepted) == ("failed", False)
    assert code in {each.code for each in receipt.findings.first}
    assert followed.rests_on == ()
    with pytest.raises(GateClosedError, match="no baseline"):
        Collection(followed.scan, workspace=followed.workspace).current()


@pytest.mark.long
def test_baseline_that_may_pass_records_over_leaves_all_that_rests_on_it_unknown(
    bench: Bench,
) -> None:
    followed = following(
        bench, {"source.delta.baseline": "may_skip", "contract.accept": {"scope": LIVE}}
    )
    baseline, round_after = followed.round(), followed.round()

    assert (baseline.coverage_status, baseline.conclusion_scope) == ("unknown", LIVE)
    assert {f.code for f in baseline.findings.first} == {"baseline_may_skip"}
    assert round_after.coverage_status == "verified"
    with pytest.raises(GateClosedError, match="every round verified"):
        Collection(followed.scan, workspace=followed.workspace).current()


@pytest.mark.long
def test_erased_record_is_in_no_version_and_the_next_round_is_a_baseline(bench: Bench) -> None:
    followed = following(bench, size=60)
    followed.round()
    followed.change(Update(first=2, region="mea"), Delete(first=7))
    followed.round()
    gone = ("customer-2",)  # in the baseline and in the round

    erasure = erase(
        followed.scan, gone, because="request 17", by=None, workspace=followed.workspace
    )

    assert erasure.left == ()
    assert followed.current.keys() == followed.source.keys() - {"customer-2"}
    assert len(followed.rests_on) == 2
    opened = Collection(followed.scan, workspace=followed.workspace).current(contents=True)
    assert "1 record redacted on 2026-11-30" in opened.word()
    agrees(followed, opened.receipt.scan_generation)
    followed.change(Delete(first=2))
    receipt = followed.round()
    assert receipt.round is not None
    assert receipt.round.since is None  # tokens went with the record
    assert followed.current == followed.source


@pytest.mark.long
def test_table_that_was_damaged_is_made_anew_by_the_next_round(bench: Bench) -> None:
    """All it holds lies in the sealed rounds: it must keep no night from its own."""
    followed = following(bench)
    followed.round()
    (file,) = (Path(followed.workspace.project.lake) / "published").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    followed.change(Delete(first=4))

    assert followed.round().accepted
    assert followed.current == followed.source
