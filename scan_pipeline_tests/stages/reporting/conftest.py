"""What reports are made from: four nights of four kinds, walked once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from scan_pipeline.core.checkpoint import Round, Since
from scan_pipeline.core.receipt import ProviderRevision, Receipt, ReceiptAcknowledgement
from scan_pipeline.core.redacted_paths import RedactedPaths
from scan_pipeline.simulator.faults import Failing, PageReplaced
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.reporting.gather import gather
from scan_pipeline.stages.reporting.material import Material
from scan_pipeline_tests.conftest import Bench, Walked
from scan_pipeline_tests.stages.test_two_equal_walks import TWICE

LIVE = {
    "source.snapshot": ...,
    "source.params": {"view": "live"},
    "contract.consistency": "live",
    "contract.accept": {"scope": "records_encountered_in_live_traversal"},
}


@pytest.fixture(scope="module")
def nights(tmp_path_factory, shipped) -> Iterator[dict[str, Walked]]:
    """A verified night after two sends of a page, two equal walks, a live one, and a failed one."""
    again = Script(faults=(Failing(page=2, status=429, retry_after_s=7, last_attempt=1),))
    repeated = Script(faults=(PageReplaced(page=2, by=1),))
    with ExitStack() as stack:
        bench = Bench(folder=tmp_path_factory.mktemp("nights"), stack=stack, shipped=shipped)
        yield {
            "verified": bench.walk(bench.registry(size=300, script=again)),
            "corroborated": bench.walk(bench.registry(size=300), TWICE),
            "live": bench.walk(bench.registry(size=300), LIVE),
            "failed": bench.walk(
                bench.registry(size=300, script=repeated), {"contract.limits.over_count": 0.5}
            ),
        }


@pytest.fixture(scope="module")
def material(nights) -> Callable[..., Material]:
    """Gathers what the report of a night is made from."""

    def of(kind: str, *, audited: bool = False) -> Material:
        night = nights[kind]
        return gather(night.night.stored, workspace=night.workspace, audited=audited)

    return of


@pytest.fixture(scope="module")
def with_receipt() -> Callable[[Material, Receipt], Material]:
    """Puts another receipt in the place of a material's own."""
    return lambda material, receipt: replace(
        material, stored=replace(material.stored, receipt=receipt)
    )


@pytest.fixture
def fullest(material, with_receipt) -> Material:
    """A material whose receipt has every member that a receipt may have."""
    whole, twice = material("failed"), material("corroborated").receipt
    receipt = replace(
        whole.receipt,
        provider=ProviderRevision(name="registry", revision="sha256:1"),
        restart_of="20261130T010000Z",
        supersedes="sha256:aa",
        change_token="token-1",
        high_water_mark="900",
        limits_hit=("pages",),
        second_walk=twice.second_walk,
        withheld=("swing",),
        acknowledgement=ReceiptAcknowledgement(
            acknowledgement_id=f"sha256:{'b' * 64}",
            generation="20261130T020000Z",
            expected=300,
            observed=120,
            by="ana",
            because="a region was added",
            said_at="2026-11-30T09:00:00Z",
        ),
        round=Round(
            since=Since(
                generation="20261129T020000Z",
                receipt_id=f"sha256:{'c' * 64}",
                checkpoint=f"sha256:{'d' * 64}",
            ),
            checkpoint=f"sha256:{'e' * 64}",
            removed_ids=3,
        ),
        redacted_paths=RedactedPaths(dropped=("email",), masked=("name",)),
    )
    return with_receipt(whole, receipt)
