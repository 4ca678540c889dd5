"""The source's own change token: equal before and after, or nothing is said of the whole."""

from typing import Any

import pytest

from scan_pipeline.simulator.mutations import Delete, Insert, Update
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.conftest import Bench, Opens
from scan_pipeline_tests.stages.breaking import break_off

TOKEN = {
    "url": "simulator://registry/v1/customers/change_token",
    "at": "change_token",
    "basis": "provider_documented",
}
HELD: dict[str, Any] = {
    "source.snapshot": ...,
    "source.partition_counts": ...,
    "source.change_token": TOKEN,
    "contract.consistency": "change_token",
    "contract.expect": {},
    "contract.accept": {},
    "source.params": {"view": "live"},
}
WHOLE = ("verified", "all_records_at_change_token", True)
MET = ("unknown", "records_encountered_in_live_traversal", False)


def test_quiet_source_is_verified_at_its_change_token(bench: Bench, opens: type[Opens]) -> None:
    walked = bench.walk(scenario("live_and_quiet"), HELD, over="port")
    receipt = walked.receipt

    assert walked.verdict == WHOLE
    assert (receipt.change_token, receipt.consistency_basis) == (
        "customers@r0",
        "provider_documented",
    )
    assumed = {each.name: each.basis for each in receipt.assumptions}
    assert assumed["token_covers_all_writes"] == "provider_documented"
    assert "verified" in receipt.statement
    assert walked.opens == opens(whole=1_000, partial=1_000, published=1_000)
    assert Audit(walked.scan.name, walked.generation, workspace=walked.workspace).run().agrees


@pytest.mark.parametrize(
    ("name", "token"), [("written_in_mid_walk", "r1"), ("inserted_and_deleted", "r2")]
)
def test_write_that_no_count_tells_is_told_by_the_token(
    bench: Bench, opens: type[Opens], name: str, token: str
) -> None:
    """The second scenario is ABA: the rows are what they were, the token is not."""
    walked = bench.walk(scenario(name), HELD, over="port")
    receipt = walked.receipt

    assert walked.verdict == MET
    assert walked.codes == {"change_token_moved"}
    assert walked.results == {"source_count": "met"}
    assert f"found customers@{token}" in receipt.reasons[0]
    assert "the collection was written to while it was read" in receipt.reasons
    assert receipt.change_token == "customers@r0"
    assert walked.opens == opens(partial=1_000)


def test_count_that_moves_with_the_token_is_no_contradiction(bench: Bench) -> None:
    script = Script(mutations=(Insert(after_page=3, first=1_001),))

    walked = bench.walk(bench.registry(script=script), HELD)

    assert walked.verdict == MET
    assert walked.codes == {"change_token_moved", "count_changed", "no_denominator"}


def test_token_that_stays_while_the_count_moves_fails(bench: Bench) -> None:
    """Such a token does not cover all writes, whatever is declared of it."""
    script = Script(mutations=(Insert(after_page=3, first=1_001),))
    other = {**TOKEN, "url": TOKEN["url"].replace("customers", "support_cases")}

    walked = bench.walk(bench.registry(script=script), {**HELD, "source.change_token": other})

    assert walked.verdict == ("failed", "observed_pages_only", False)
    assert "change_token_stale" in walked.codes


def test_source_that_tells_no_token_fails_before_a_page_is_asked_for(bench: Bench) -> None:
    walked = bench.walk(bench.registry(), {**HELD, "source.change_token.at": "elsewhere"})

    assert walked.verdict == ("failed", "observed_pages_only", False)
    assert walked.codes == {"reported_invalid"}
    assert walked.receipt.pages_observed == 0


def test_equal_token_still_wants_a_denominator(bench: Bench) -> None:
    walked = bench.walk(
        bench.registry(),
        {**HELD, "source.count": ..., "contract.limits": {}},
    )

    assert walked.verdict == MET
    assert walked.codes == {"no_denominator"}


def test_walk_is_taken_up_only_at_its_own_token(bench: Bench) -> None:
    registry = bench.registry(size=500)
    scan = bench.scan({**HELD, "operation": {"commit_pages": 1}})
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)

    night = run_scan(scan, workspace=workspace)

    assert night.stored.receipt.scan_generation == begun
    assert night.stored.receipt.coverage_status == "verified"


@pytest.mark.parametrize(
    "writes",
    [
        (Update(first=7, status="suspended"),),
        (Insert(first=501), Delete(first=501)),
    ],
    ids=["one write", "there and back"],
)
def test_walk_whose_token_moved_meanwhile_begins_again_from_nothing(
    bench: Bench, writes: tuple[Any, ...]
) -> None:
    registry = bench.registry(size=500)
    scan = bench.scan({**HELD, "operation": {"commit_pages": 1}})
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)
    for write in writes:
        registry.mutate(write)
    asked = len(registry.served.pages)

    night = run_scan(scan, workspace=workspace)

    (earlier,) = (each.receipt for each in night.earlier)
    assert (earlier.scan_generation, earlier.stop_reason) == (begun, "change_token_moved")
    assert (earlier.coverage_status, earlier.pages_observed) == ("unknown", 3)
    assert night.stored.receipt.restart_of == begun
    assert night.stored.receipt.coverage_status == "verified"
    assert len(registry.served.pages) - asked == 5
