"""Alerts over a real webhook and a real mail server: once a change, whoever looks."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.faults import PageReplaced, SnapshotExpired
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.alerting.alerts import tell_changes, tell_quietly
from scan_pipeline.stages.alerting.settings import parse_settings
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import finish, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.alerting.channels import Channels, channels

LIVE = {
    "source.snapshot": ...,
    "source.params": {"view": "live"},
    "contract.consistency": "live",
    "contract.accept": {"scope": "records_encountered_in_live_traversal"},
}


@pytest.fixture(scope="module")
def listeners() -> Iterator[Channels]:
    with channels() as found:
        yield found


@pytest.fixture
def heard(listeners: Channels) -> Channels:
    listeners.posted.clear()
    listeners.mails.clear()
    listeners.answers, listeners.accepts_mail = 200, True
    return listeners


def configured(heard: Channels) -> dict[str, Any]:
    return {
        "webhook": {"env": "HOOK"},
        "email": {
            "host": "127.0.0.1",
            "port": heard.mail_port,
            "security": "none",
            "from": "scans@example.org",
            "to": ["team@example.org", "night@example.org"],
        },
    }


def opened(bench: Bench, heard: Channels, *faults: Any) -> Workspace:
    registry = bench.registry(size=300, script=Script(faults=faults))
    project = replace(bench.project(), alerts=configured(heard))
    place = bench.workspace(registry, project=project)
    place.environ = {**place.environ, "HOOK": heard.address}
    return place


def night(scan: Scan, place: Workspace, bench: Bench) -> list[str]:
    """Run a night and tell of it, twice; return what went wrong with the alerts."""
    run_scan(scan, workspace=place)
    problems = list[str]()
    for _ in range(2):
        tell_quietly(scan, workspace=place, warn=problems.append, said=lambda _: None)
    bench.clock.now += timedelta(hours=24)
    return problems


def test_each_change_is_told_once_with_cause_and_remedy(bench: Bench, heard: Channels) -> None:
    """Good, bad, good, weaker: three alerts on each channel, in words that show no record."""
    place = opened(bench, heard, PageReplaced(page=2, by=1, first_attempt=2, last_attempt=2))
    scan = bench.scan({"operation": {"recheck_pages": 0}})

    assert night(scan, place, bench) == []
    assert heard.posted == []
    for _ in range(2):
        assert night(scan, place, bench) == []
    assert night(bench.scan(LIVE), place, bench) == []
    elsewhere = Workspace(place.project, environ=place.environ, clock=place.clock)
    assert tell_changes(bench.scan(LIVE), workspace=elsewhere).told == ()

    titles = [
        "customers: not accepted",
        "customers: accepted again",
        "customers: accepted, and weaker than before",
    ]
    assert [each.splitlines()[0] for each in heard.texts] == [f"*{each}*" for each in titles]
    assert [each["subject"] for each in heard.mails] == titles
    assert heard.mails[0]["to"] == "team@example.org, night@example.org"
    bad, again, weaker = heard.texts
    assert "Cause: the records of an earlier page came again" in bad
    assert "What to do: " in bad
    assert "Readers still find 20261130T0200" in bad
    assert "300 unique keys on 3 pages" in again
    assert "unknown, records encountered in live traversal" in weaker
    assert "verified, all records in snapshot" in weaker
    for text in (*heard.texts, *(each.get_content() for each in heard.mails)):
        assert not any(word in text for word in ("customer-", "hushhush", "auditor", "Bearer"))


def test_a_channel_that_fails_holds_up_neither_the_scan_nor_the_other(
    bench: Bench, heard: Channels
) -> None:
    """It is tried again later, by whoever looks, and then once."""
    place = opened(bench, heard, PageReplaced(page=2, by=1))
    scan = bench.scan({"operation": {"recheck_pages": 0}})
    heard.answers = 403

    (problem,) = night(scan, place, bench)

    assert "webhook answered 403" in problem
    assert heard.address not in problem
    assert (len(heard.posted), len(heard.mails)) == (0, 1)
    heard.answers = 200
    told = tell_changes(scan, workspace=place).told
    assert [(each.channel, each.fate) for each in told] == [("webhook", "sent")]
    assert tell_changes(scan, workspace=place).told == ()
    assert (len(heard.posted), len(heard.mails)) == (1, 1)


def test_nothing_listening_and_no_secret_are_told_and_never_raised(
    bench: Bench, heard: Channels
) -> None:
    place = opened(bench, heard, PageReplaced(page=2, by=1))
    scan = bench.scan({"operation": {"recheck_pages": 0}})
    heard.accepts_mail = False
    del place.environ["HOOK"]  # pyright: ignore[reportIndexIssue]

    problems = night(scan, place, bench)

    assert [each.split(" not sent")[0] for each in problems] == [
        "alert by webhook",
        "alert by email",
    ]
    assert "HOOK to be set" in problems[0]
    assert "code 451" in problems[1]


def test_an_attempt_that_is_begun_again_is_no_night_yet(bench: Bench, heard: Channels) -> None:
    """What Dagster's sensor will follow by another attempt alarms nobody; the last attempt does."""
    place = opened(bench, heard, SnapshotExpired(page=3))
    scan = bench.scan({"operation": {"restarts": 1}})
    place.begin(scan.name)
    first = Pipeline(scan, "20261130T020000Z", workspace=place)
    first.pages()
    finish(first)

    assert tell_changes(scan, workspace=place).told == ()

    last = Pipeline(scan, "20261130T020000Z.2", workspace=place)
    last.pages(restart_of="20261130T020000Z")
    finish(last)
    assert len(tell_changes(scan, workspace=place).told) == 2
    assert "snapshot_expired" in heard.texts[0]


def test_a_night_that_does_not_come_is_told_once_and_so_is_its_end(
    bench: Bench, heard: Channels
) -> None:
    """Late after one period and half of another, by whatever looks; other nights end it."""
    place, scan = opened(bench, heard), bench.scan()  # every night at two
    assert night(scan, place, bench) == []
    bench.clock.now += timedelta(hours=11)  # 13:00 of the next day
    assert tell_changes(scan, workspace=place).told == ()

    bench.clock.now += timedelta(hours=2)
    assert len(tell_changes(scan, workspace=place).told) == 2
    bench.clock.now += timedelta(days=3)
    assert tell_changes(scan, workspace=place).told == ()
    assert night(scan, place, bench) == []

    late, again = heard.texts
    assert late.startswith(
        "*customers: late*\nNo generation since 2026-11-30, one is due every night"
    )
    assert "Readers still find 20261130T0200" in late
    assert again.startswith("*customers: accepted again*")


def test_no_channel_is_looked_for_where_none_is_configured(bench: Bench) -> None:
    place = bench.workspace(bench.registry(size=300))
    said = list[str]()

    tell_quietly(bench.scan(), workspace=place, warn=said.append, said=said.append)

    assert said == []


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"webhok": {"env": "HOOK"}}, "webhok"),
        ({"webhook": "https://hooks.example/hushhush"}, "names no secret"),
        ({"email": {"host": "h", "from": "a@b", "to": []}}, "at least one address"),
        ({"email": {"host": "h", "from": "a@b\nBcc: c@d", "to": ["a@b"]}}, "email.from"),
        ({"email": {"host": "h", "from": "a@b", "to": ["a@b"], "user": "u"}}, "both or neither"),
        (
            {
                "email": {
                    "host": "h",
                    "from": "a@b",
                    "to": ["a@b"],
                    "user": "u",
                    "password": {"env": "P"},
                    "security": "none",
                }
            },
            "security = 'none'",
        ),
    ],
)
def test_wrong_settings_are_refused_and_not_shown(raw: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as refused:
        parse_settings(raw)

    assert "hushhush" not in str(refused.value)
