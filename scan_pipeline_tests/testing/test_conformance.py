"""The kit finds what is wrong with a source, and lets one that is right pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.testing import (
    BEHAVIOURS,
    Bench,
    Conformance,
    ConformanceError,
    FactsBench,
    Fault,
    Opened,
    Report,
    Result,
    conformance,
)
from scan_pipeline.testing.kit_scan import with_continuation
from scan_pipeline_tests.testing.dialects import PAGE_TOKEN_PINNED, PINNED, URL

pytestmark = pytest.mark.long

NAMED = {str(each): each for each in BEHAVIOURS}


class Borrowed(Bench):
    """An adapter, over the server that is made of another scan's facts."""

    def __init__(self, adapter: str) -> None:
        source = {"adapter": f"scan_pipeline_tests.testing.broken_adapters.{adapter}", "url": URL}
        self._scan = parse_scan({"name": "things", "source": source, "contract": PINNED})
        self._facts = FactsBench(PAGE_TOKEN_PINNED)

    @property
    def scan(self) -> Scan:
        return self._scan

    @contextmanager
    def open(self, scan: Scan, fault: Fault) -> Iterator[Opened]:
        facts = with_continuation(self._facts.scan, scan.source.continuation)
        with self._facts.open(facts, fault) as opened:
            yield opened


@pytest.mark.parametrize(
    ("adapter", "behaviour", "told"),
    [
        ("EndsWhereTheTokenIsMissing", "end-missing", "count_missed"),
        ("EndsAtAnEmptyPage", "end-empty_page", "records of 11"),
        ("EndsOnErrors", "end-login_page", "count_missed"),
        ("EndsOnErrors", "end-body_cut", "count_missed"),
        ("TakesErrorsForPages", "end-error_with_success", "verified"),
        ("ForgetsThePin", "drift-inserted", "another order"),
        ("KeepsItsPlace", "resume-killed", "records of 11"),
        ("AsksAgainWithASpentToken", "retry-response_lost_single_use", "no new generation"),
        ("TakesExpiryForTheEnd", "expiry-expired", "no new generation"),
        ("DropsTheLastRecord", "order-undisturbed", "missing"),
        ("RaisesWhatNobodyPlanned", "end-missing", "raised KeyError"),
        ("SaysThePinItWasTold", "drift-pin_changed", "verified"),
    ],
)
def test_adapter_that_is_wrong_fails_where_it_is(adapter: str, behaviour: str, told: str) -> None:
    result = Conformance(Borrowed(adapter)).run(NAMED[behaviour])

    assert result.verdict == "failed", result
    assert told in result.found
    with pytest.raises(ConformanceError, match=behaviour) as refused:
        result.check()
    assert isinstance(refused.value, AssertionError)
    assert isinstance(refused.value, ScanPipelineError)


@pytest.fixture(scope="module")
def right() -> Report:
    return conformance(Borrowed("Right"))


def test_adapter_that_is_right_passes_them_all(right: Report) -> None:
    right.check()

    assert right.passed
    left = {each.behaviour for each in right.results if each.verdict == "not_exercised"}
    assert left == {"end-disagreeing", "end-other_signal"}


def test_report_is_a_table_that_people_can_read(right: Report) -> None:
    lines = str(right).splitlines()

    assert lines[0].split() == ["ok", "order-undisturbed", "nothing", "happens"]
    assert lines[1].strip() == "verified, finished (end_signal), 11 records on 3 pages"
    assert len(right.results) == len(BEHAVIOURS)


def test_every_group_is_in_the_table() -> None:
    groups = list(dict.fromkeys(each.group for each in BEHAVIOURS))

    assert groups == ["order", "loop", "retry", "drift", "expiry", "end", "resume"]
    assert len(NAMED) == len(BEHAVIOURS)


def test_nothing_exercised_is_no_pass() -> None:
    left = Result(
        behaviour="end-missing",
        group="end",
        says="",
        expected="",
        found="not exercised",
        verdict="not_exercised",
    )

    assert not Report(results=(left,)).passed
    assert not Report(results=()).passed


def test_bench_with_too_few_records_is_told_and_not_passed() -> None:
    class OnePage(Borrowed):
        @contextmanager
        def open(self, scan: Scan, fault: Fault) -> Iterator[Opened]:
            with super().open(scan, Fault(kind="no_records")) as opened:
                from dataclasses import replace

                yield replace(opened, struck=lambda: not fault.strikes)

    for behaviour in ("drift-inserted", "resume-killed"):
        result = Conformance(OnePage("Right")).run(NAMED[behaviour])
        assert (result.verdict, "more records" in result.found) == ("not_exercised", True)
