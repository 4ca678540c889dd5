"""Rounds of changes as generations of a scan's assets; the published table is what they come to."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scan_pipeline.simulator.mutations import Delete, Insert, Update
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.syncing.rounds import ROUNDS, Following

pytestmark = pytest.mark.long

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
EDITS: Mapping[str, Any] = {
    "source": ROUNDS["source"],
    "contract": ROUNDS["contract"],
    "operation": ROUNDS["operation"],
    "record_schema": None,
}


def test_each_round_is_a_generation_and_the_table_is_laid_together(
    station: Callable[..., Any], bench: Bench
) -> None:
    registry = bench.registry(size=120)
    opened = station(registry, EDITS)
    followed = Following(scan=opened.scan, registry=registry, workspace=opened.workspace)

    first = opened.stages(NIGHT)
    followed.change(Insert(first=121, last=180), Delete(first=3), Update(first=1, status="closed"))
    second = opened.stages(NEXT_NIGHT)

    assert first.success, first.failures
    assert second.success, second.failures
    assert set(first.verdicts.values()) == set(second.verdicts.values()) == {True}
    told = second.told("customers/receipt")
    assert told["scan_pipeline/statement"].startswith("62 changes of customers, 1 of them removals")
    assert followed.current == followed.source
    assert len(followed.rests_on) == 2
    refused = opened.run(NEXT_NIGHT, only=[["analyses", "total"]])
    assert not refused.success  # a round is no collection
