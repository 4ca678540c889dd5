"""A night of two walks killed by SIGKILL in or before the second is finished by the next run."""

from collections.abc import Mapping
from typing import Any

import pytest

from scan_pipeline.stages.audit import Audit
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.crashes import FIRST, Crashed, Kill

pytestmark = pytest.mark.long

TWICE: Mapping[str, Any] = {
    "source.snapshot": None,
    "source.partition_counts": None,
    "source.count": None,
    "source.params": {"view": "live"},
    "contract.consistency": "two_equal_walks",
    "contract.expect": {},
    "contract.accept": {},
    "contract.limits": {"seconds": 600},
    "operation": {"commit_pages": 1},
}
"""Facts alone, since they travel to another process as JSON."""


@pytest.mark.parametrize(
    "kill",
    [
        # request 1 asks who we are, 2 to 11 are the pages, 12 asks again; then the same once more
        pytest.param(Kill("request", 13), id="between the walks"),
        pytest.param(Kill("answer", 18), id="in the second walk"),
        pytest.param(Kill("request", 24), id="before the close", marks=pytest.mark.long),
        pytest.param(Kill("body", 15), id="while the second is staged", marks=pytest.mark.long),
        pytest.param(Kill("receipt"), id="before the receipt", marks=pytest.mark.long),
    ],
)
def test_killed_night_of_two_walks_comes_to_the_same_roots(bench: Bench, kill: Kill) -> None:
    crashed = Crashed(bench, edits=TWICE)
    crashed.kill(kill)

    receipt = crashed.run().stored.receipt

    assert receipt.scan_generation == FIRST
    assert (receipt.coverage_status, receipt.accepted) == ("corroborated", True)
    assert receipt.second_walk is not None
    assert receipt.second_walk.figures is not None
    calm = bench.walk(bench.registry(size=crashed.size), TWICE).receipt
    assert receipt.merkle.root == receipt.second_walk.figures.root == calm.merkle.root
    audit = Audit(receipt.scan, FIRST, workspace=crashed.workspace()).run()
    assert audit.agrees, audit.disagreements
