"""Two weeks of one nightly scan, night by night, in a Dagster of its own; the clock is ours.

The table is the test: a row is a night, what the source does in it, and what must have become of
it at three in the afternoon. A row more is a night more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import httpx2
import polars as pl
import pytest

from scan_pipeline.simulator.faults import CursorRepeats, PageSkipped, SnapshotExpired
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.stages.acknowledge import acknowledge
from scan_pipeline.stages.alerting.nights import last_nights
from scan_pipeline.stages.readers.nightly_changes import nightly_changes
from scan_pipeline.stages.reading import Collection
from scan_pipeline_tests.stages.alerting.channels import Channels, channels

FIRST = datetime(2026, 11, 30, 2, tzinfo=UTC)
SCHEDULED = {"dagster/schedule_name": "customers_schedule"}
EDITS = {
    "source.page_size.value": 20,
    "contract.expect.swing": {"records": 0.2},
    "operation.restarts": 2,
}

LOST = Script(faults=(SnapshotExpired(page=3, last_attempt=1),))
ALWAYS_LOST = Script(faults=(SnapshotExpired(page=3),))
ROUND = Script(faults=(CursorRepeats(page=3, to=3),))
SKIPPING = Script(faults=(PageSkipped(page=4),))


@dataclass(frozen=True)
class Night:
    """One night.

    Attributes:
        day: of the month of its tick, from 30 November on.
        became: what became of each attempt, in order; none where none was begun.
        reads: the generation that readers are given in the afternoon.
        word: how that is said, in part.
        alert: the scan's condition, as alerts tell changes of it.
        script: what the source does.
        rows: how many records the source holds.
        up: whether Dagster runs at the tick. Where it comes back, it catches up in the morning.
        acknowledged: whether a person says in the morning that the swing is real.
        changes: what the newest accepted night changed, in part; none where it is not told.
        narrower: whether the record schema has fewer columns from this night on.
    """

    day: str
    became: tuple[str, ...]
    reads: str
    word: str
    alert: str = "as_expected"
    script: Script = Script()  # noqa: RUF009  # a frozen value
    rows: int = 120
    up: bool = True
    acknowledged: bool = False
    changes: str = ""
    narrower: bool = False


NARROWER = [
    {"name": name, "type": kind}
    for name, kind in (("customer_id", "string"), ("region", "string"), ("name", "string"))
]
ALERTS = (
    "customers: not accepted",  # 1204
    "customers: accepted again",
    "customers: late",  # 1206
    "customers: accepted again",
    "customers: not accepted",  # 1210, and no word more on 1211
    "customers: accepted again",  # 1212, once somebody said that the swing is real
)

NIGHTS = (
    Night("1130", ("accepted",), "20261130T020000Z", "data of last night"),
    Night(
        "1201",
        ("accepted",),
        "20261201T020000Z",
        "data of last night",
        rows=125,
        changes="5 added, 0 removed, 0 changed",
    ),
    Night(
        "1202", ("snapshot_expired", "accepted"), "20261202T020000Z.2", "last night", script=LOST
    ),
    Night("1203", ("accepted",), "20261203T020000Z", "data of last night", rows=130),
    Night(
        "1204",
        ("failed",),
        "20261203T020000Z",
        "data of 2 nights ago, generation 20261203T020000Z, 1.5 days old; "
        "last night, 20261204T020000Z, failed: ",
        alert="not_accepted",
        script=ROUND,
    ),
    Night("1205", ("accepted",), "20261205T020000Z", "data of last night"),
    Night(
        "1206",
        (),
        "20261205T020000Z",
        "no generation since 2026-12-05, one is due every night",
        alert="late",
        up=False,
    ),
    Night("1207", (), "20261205T020000Z", "data of 3 nights ago", alert="late", up=False),
    Night("1208", (), "20261205T020000Z", "data of 4 nights ago", alert="late", up=False),
    Night("1209", ("accepted",), "20261209T020000Z", "data of last night"),
    Night(
        "1210",
        ("snapshot_expired",) * 3,
        "20261209T020000Z",
        "last night, 20261210T020000Z.3, was not accepted: unknown, observed_pages_only",
        alert="not_accepted",
        script=ALWAYS_LOST,
    ),
    Night(
        "1211",
        ("failed",),
        "20261209T020000Z",
        "data of 3 nights ago, generation 20261209T020000Z, 2.2 days old; "
        "last night, 20261211T020000Z, failed: ",
        alert="not_accepted",
        script=SKIPPING,
    ),
    Night(
        "1212",
        ("withheld", "accepted"),
        "20261212T020000Z.2",
        "data of last night",
        rows=200,
        acknowledged=True,
        changes="80 added, 0 removed, 0 changed",
    ),
    Night(
        "1213",
        ("accepted",),
        "20261213T020000Z",
        "data of last night",
        rows=201,
        changes="1 added, 0 removed, 0 changed",
        narrower=True,
    ),
)


class Source(httpx2.BaseTransport):
    """Leads every request to the registry of the night."""

    night: SimulatorTransport
    asked = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        return self.night.handle_request(request)


def became(receipt: Any) -> str:
    """Return what became of a generation, in a word of the table."""
    if receipt.accepted:
        return "accepted"
    if receipt.withheld:
        return "withheld"
    return "failed" if receipt.coverage_status == "failed" else receipt.stop_reason


@pytest.fixture
def heard() -> Iterator[Channels]:
    with channels() as found:
        yield found


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_fortnight_comes_to_what_its_table_says(
    station: Callable[..., Any], bench: Any, heard: Channels
) -> None:
    source = Source()
    project = replace(bench.project(), alerts={"webhook": {"env": "HOOK"}})
    environ = {"REGISTRY_TOKEN": AUDITOR_TOKEN, "HOOK": heard.address}
    place = bench.workspace(inner=source, project=project, environ=environ)
    opened = station(None, EDITS, workspace=place, persistent=True)
    receipts, missed, known = opened.workspace.receipts("customers"), [], []
    for number, night in enumerate(NIGHTS):
        tick = FIRST + timedelta(days=number)
        assert f"{tick:%m%d}" == night.day
        if night.narrower:
            deployed = station(None, {**EDITS, "record_schema": NARROWER}, workspace=place)
            opened = replace(deployed, instance=opened.instance)
        registry = bench.registry(size=night.rows, script=night.script)
        source.night = SimulatorTransport(registry, sleep=bench.clock.sleep)
        bench.clock.now = tick + timedelta(hours=7 if missed else 0)
        missed.append(tick)
        if night.up:
            _let_dagster_run(opened, missed)
            missed.clear()
        bench.clock.now = tick + timedelta(hours=8)
        if night.acknowledged:
            acknowledge(
                "customers",
                f"{tick:%Y%m%dT%H%M%SZ}",
                by="ann",
                because="a merger",
                workspace=opened.workspace,
            )
            assert opened.tick("customers_lake").skip_message.startswith("told of 1 of 1")
        assert opened.tick("customers_lake").skip_message == "every receipt of the lake is known"
        bench.clock.now = tick + timedelta(hours=13)
        opened.tick("customers_alerts")

        began = [each for each in receipts.committed_generations() if each not in known]
        known += began
        assert tuple(became(opened.receipt(each).receipt) for each in began) == night.became, night
        assert all(each.startswith(f"2026{night.day}T020000Z") for each in began), night
        collection = Collection(opened.scan, workspace=opened.workspace)
        assert collection.latest().receipt.scan_generation == night.reads, night
        assert last_nights(opened.scan, workspace=opened.workspace).condition.word == night.alert
        assert night.word in collection.standing().word(), night
        accepted = collection.latest().receipt.records_observed
        assert night.changes in _changes(opened, collection), night
        published = pl.scan_delta(opened.workspace.lake.published_uri("customers"))
        assert published.select(pl.len()).collect().item() == accepted, night

    assert [each.splitlines()[0] for each in heard.texts] == [f"*{each}*" for each in ALERTS]
    known += _the_past_is_judged_again_and_not_walked(opened, source, known)
    _a_lost_home_hears_of_all(station, opened, known)


def _changes(opened: Any, collection: Collection) -> str:
    newest = collection.latest().receipt.scan_generation
    found = nightly_changes(collection, newest, workspace=opened.workspace)
    return "" if found is None else found.statement()


def _let_dagster_run(opened: Any, ticks: list[datetime]) -> None:
    """Evaluate ticks, and run whatever they and the restart sensor ask for, till nothing is."""
    asked = [each for at in ticks for each in opened.due(at).run_requests or ()]
    while asked:
        for each in asked:
            opened.stages(each.partition_key, tags=SCHEDULED)
        asked = opened.tick("customers_restart").run_requests or ()


def _the_past_is_judged_again_and_not_walked(
    opened: Any, source: Source, known: list[str]
) -> list[str]:
    """A backfill over a good, a refused and a missed night asks the source for nothing.

    The record schema is another one now: what was walked is staged again under it, and a failure
    stays one.
    """
    before, asked = opened.workspace.receipts("customers").committed_generations(), source.asked
    ran = [
        opened.stages(each, tags={"dagster/backfill": "b"})
        for each in (known[0], "20261204T020000Z", "20261207T020000Z")
    ]

    assert [each.success for each in ran] == [True, False, False]
    assert "found no walk of that moment" in ran[2].failures["customers__pages"]
    assert source.asked == asked
    again = [f"{known[0]}.2", "20261204T020000Z.2"]
    committed = opened.workspace.receipts("customers").committed_generations()
    assert {*committed} == {*before, *again}
    assert [became(opened.receipt(each).receipt) for each in again] == ["accepted", "failed"]
    return again


def _a_lost_home_hears_of_all(station: Callable[..., Any], opened: Any, known: list[str]) -> None:
    home = station(None, EDITS, workspace=opened.workspace, persistent=True)
    home.tick("customers_lake")

    receipt = dg.AssetKey(["customers", "receipt"])
    assert home.instance.get_materialized_partitions(receipt) == {*known}
    assert set(home.instance.get_dynamic_partitions("customers_generations")) == {*known}
    assert not home.tick("customers_restart").run_requests
