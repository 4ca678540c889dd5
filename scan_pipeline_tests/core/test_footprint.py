"""Bytes a night and a year: by the files that a receipt pins, and the ticks of a schedule."""

from datetime import UTC, datetime

import pytest

from scan_pipeline.core.footprint import Footprint, footprint, told_bytes
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.retention import Keep, Retention
from scan_pipeline_tests.conftest import Bench

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def receipt(shared_bench: Bench) -> Receipt:
    return shared_bench.walk(shared_bench.registry(size=60)).receipt


def test_night_is_the_files_that_are_pinned(receipt: Receipt) -> None:
    found = footprint(receipt, None, now=NOW)

    files = [file.size for held in receipt.evidence.values() for file in held.files]
    assert (found.stored, found.sent) == (sum(files), receipt.bytes_observed)
    assert (found.nights, found.scheduled) == (365, False)


@pytest.mark.parametrize(
    ("cron", "nights"), [("0 2 * * *", 365), ("0 2 * * 1-5", 261), ("*/15 * * * *", 35_040)]
)
def test_year_is_what_the_schedule_says(receipt: Receipt, cron: str, nights: int) -> None:
    assert footprint(receipt, Schedule(cron=cron), now=NOW).nights == nights


def test_retention_bounds_what_is_kept() -> None:
    night = Footprint(sent=5_000, evidence=3_000, staged=1_000, nights=365, scheduled=True)

    words = dict(night.words(Retention(generations=30, bodies=Keep(days=10))))

    assert words == {
        "a night": "4.0 kB stored, 5.0 kB as sent",
        "a year": "about 1.5 MB stored, 365 nights",
        "kept of it": "about 60.0 kB under its retention, and the ledgers",
    }
    assert "kept of it" not in dict(night.words(None))
    assert [told_bytes(n) for n in (999, 10**9)] == ["999 bytes", "1.0 GB"]
