"""Alerts are claimed before they are sent: of several that want the same one, one sends it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from scan_pipeline.store.alert_ledger import LEASE, AlertLedger, Claim
from scan_pipeline.store.lake import Lake

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
NIGHT = "20261130T020000Z"

Claims = Callable[[datetime], Claim | None]


@pytest.fixture
def ledger(tmp_path: Path) -> AlertLedger:
    return AlertLedger(Lake(root=str(tmp_path / "lake")), "shop")


def claims(ledger: AlertLedger) -> Claims:
    return lambda now: ledger.claim(
        "webhook", change="not_accepted", since=NIGHT, generation=NIGHT, now=now
    )


def test_of_many_at_one_moment_one_claims(ledger: AlertLedger) -> None:
    together = Barrier(4)

    def one(_: int) -> Claim | None:
        together.wait()
        return claims(ledger)(NOW)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(4)))

    assert sum(each is not None for each in found) == 1


def test_a_claim_whose_holder_died_is_taken_over_and_stays_so(ledger: AlertLedger) -> None:
    claim = claims(ledger)
    dead = claim(NOW)
    assert dead is not None
    assert claim(NOW + LEASE - timedelta(seconds=1)) is None

    other = claim(NOW + LEASE)
    assert other is not None
    ledger.close(dead, sent=True, now=NOW + LEASE)
    assert ledger.last_sent("webhook") is None  # the dead one's word comes too late

    ledger.close(other, sent=True, now=NOW + LEASE)
    sent = ledger.last_sent("webhook")
    assert sent is not None
    assert (sent.change, sent.since, ledger.last_sent("email")) == ("not_accepted", NIGHT, None)


def test_failures_are_tried_again_ever_later(ledger: AlertLedger) -> None:
    claim, now, waits = claims(ledger), NOW, list[float]()
    for _ in range(8):
        held = claim(now)
        assert held is not None
        ledger.close(held, sent=False, now=now)
        failed, now = now, ledger.waits_until("webhook") or now
        waits.append((now - failed).total_seconds() / 60)

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert claim(now - timedelta(seconds=1)) is None
