"""A host is asked no more often than the budget says, whichever walk of this process asks."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.operation import Rate, Retries
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.http.rates import HostBudgets
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.sources.over_http import answered, scan_of

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)


class Time:
    """A clock that sleeping alone moves."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += timedelta(seconds=seconds)


def asked(budgets, time, host="a.test", requests=2, per_seconds=10.0):
    wait = budgets.pace(Rate(requests=requests, per_seconds=per_seconds), clock=time)(host)
    time.sleep(wait)
    return wait


def test_as_many_as_allowed_go_at_once_and_the_next_waits():
    budgets, time = HostBudgets(), Time()

    waits = [asked(budgets, time) for _ in range(5)]

    assert waits == [0.0, 0.0, 10.0, 0.0, 10.0]
    assert asked(budgets, time, host="b.test") == 0.0


@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0, 20)), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_no_span_holds_more_than_the_budget(bursts, requests):
    budgets, time, sent = HostBudgets(), Time(), []
    for count, pause in bursts:
        for _ in range(count):
            asked(budgets, time, requests=requests)
            sent.append(time.now)
        time.sleep(pause)

    later = zip(sent, sent[requests:], strict=False)
    assert all(b - a >= timedelta(seconds=10) - timedelta(microseconds=1) for a, b in later)


def test_two_walks_share_the_budget_of_a_host():
    budgets, time = HostBudgets(), Time()

    assert [asked(budgets, time), asked(budgets, time)] == [0.0, 0.0]
    assert asked(budgets, time, requests=1, per_seconds=4.0) == 4.0


SOURCE = {
    "protocol": "page_token",
    "url": "https://source.test/things",
    "records_at": "items",
    "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    "identity": {"url": "https://source.test/me", "at": "user"},
}


def test_waits_of_the_budget_count_as_declared_and_side_questions_keep_to_it():
    time, requests = Time(), []

    def answer(request):
        requests.append(time.now)
        return answered({"user": "ann", "items": [], "next": None})

    source = open_source(
        scan_of(SOURCE),
        Surroundings(
            environ={},
            inner=httpx2.MockTransport(answer),
            clock=time,
            sleep=time.sleep,
            retries=Retries(),
            pace=HostBudgets().pace(Rate(requests=1, per_seconds=7.0), clock=time),
        ),
    )

    for _ in range(3):
        source.opening()

    assert [(each - NOW).total_seconds() for each in requests] == [0.0, 7.0, 14.0]
    assert source.waited == 14.0


@pytest.mark.parametrize("walks", [1, 2])
def test_scan_file_names_the_budget(tmp_path, walks):
    time, budgets, requests = Time(), HostBudgets(), []

    def answer(request):
        requests.append(time.now)
        cursor = request.url.params.get("cursor", "1")
        following = None if cursor == "3" else str(int(cursor) + 1)
        return answered({"user": "ann", "items": [{"id": cursor}], "next": following})

    for n in range(walks):
        scan = scan_of(
            SOURCE,
            name=f"things_{n}",
            operation={"rate": {"requests": 2, "per_seconds": 10}},
            contract={"key": ["id"], "consistency": "live", "limits": {"seconds": 10}},
        )
        workspace = Workspace(
            find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={}),
            environ={},
            inner=httpx2.MockTransport(answer),
            clock=time,
            sleep=time.sleep,
            budgets=budgets,
        )
        receipt = run_scan(scan, workspace=workspace).stored.receipt
        assert receipt.traversal == "finished"

    took = (time.now - NOW).total_seconds()
    assert len(requests) == 5 * walks
    assert took >= 20.0 if walks == 1 else took >= 40.0
