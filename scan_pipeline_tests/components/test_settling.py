"""What a run owes the generations it finds, and the one it is terminated in."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from scan_pipeline.components.settling import is_held, leaving_a_receipt
from scan_pipeline.core.errors import StopError
from scan_pipeline.simulator.answer_faults import Delayed
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.server import running
from scan_pipeline.stages.run import settle_open
from scan_pipeline.store.generations import new_generation
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.receipts import ReceiptStore
from scan_pipeline.store.trust import Trust

pytestmark = pytest.mark.long

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
COMMIT_EACH = {"operation": {"commit_pages": 1}}


class PowerFailureError(BaseException):
    """Stands for what ends a process without its leave."""


def broken_off(opened: Any, generation: str, *, after: int = 3) -> None:
    """Leave a generation open, as a process does that dies after some pages."""

    def die(facts: Any) -> None:
        if facts["pages"] >= after:
            raise PowerFailureError

    pipeline = opened.opened.pipeline(generation)
    with pytest.raises(PowerFailureError):
        pipeline.pages(progress=die)


def test_next_generation_closes_the_one_that_broke_off(station: Callable[..., Any]) -> None:
    """Last night's process died: tonight's run certifies what it left, then walks its own."""
    opened = station(None, COMMIT_EACH)
    broken_off(opened, NIGHT)
    ran = opened.stages(NEXT_NIGHT)

    assert ran.success
    left = opened.receipt(NIGHT).receipt
    assert (left.traversal, left.stop_reason) == ("interrupted", "abandoned")
    assert left.coverage_status == "unknown"
    assert opened.receipt(NEXT_NIGHT).receipt.accepted


def test_same_generation_is_taken_up_again(station: Callable[..., Any]) -> None:
    """A run of the partition that broke off goes on where it stopped: same root, nothing twice."""
    opened, undisturbed = station(None, COMMIT_EACH), station(None, COMMIT_EACH)
    broken_off(opened, NIGHT)
    assert opened.stages(NIGHT).success
    undisturbed.stages(NIGHT)

    assert opened.receipt().receipt.pages_observed == 10
    assert opened.receipt().receipt.merkle == undisturbed.receipt().receipt.merkle


def test_newer_open_generation_is_left_alone(station: Callable[..., Any]) -> None:
    """Running an older partition again closes nothing that came after it."""
    opened = station(None, COMMIT_EACH)
    broken_off(opened, NEXT_NIGHT)
    opened.stages(NIGHT)

    assert not opened.opened.pipeline(NEXT_NIGHT).is_sealed()
    assert settle_open(opened.scan, workspace=opened.workspace).resumed == NEXT_NIGHT


def test_generation_that_a_run_holds_is_left_alone(station: Callable[..., Any]) -> None:
    """An unfinished run of that partition may still be walking."""
    opened = station(None, COMMIT_EACH)
    broken_off(opened, NIGHT)
    job = opened.definitions.resolve_job_def("customers_generation")
    opened.instance.add_dynamic_partitions("customers_generations", [NIGHT])
    opened.instance.create_run_for_job(
        job, tags={"dagster/partition": NIGHT}, status=dg.DagsterRunStatus.STARTED
    )
    assert is_held(opened.face, NIGHT, instance=opened.instance)
    ran = opened.stages(NEXT_NIGHT)

    assert ran.success
    assert not opened.opened.pipeline(NIGHT).is_sealed()


@pytest.mark.parametrize(
    ("job", "selection", "held"),
    [
        ("customers_generation", None, True),
        ("support_cases_generation", None, False),
        ("__ASSET_JOB", None, True),
        ("__ASSET_JOB", ["customers", "pages"], True),
        ("__ASSET_JOB", ["customers", "migration_audit"], False),
        ("__ASSET_JOB", ["support_cases", "pages"], False),
    ],
)
def test_run_holds_what_it_works_on(
    station: Callable[..., Any], job: str, selection: list[str] | None, held: bool
) -> None:
    """Another scan's run, or an analysis of the same partition, holds nothing."""
    opened = station()
    opened.instance.add_run(
        dg.DagsterRun(
            job_name=job,
            tags={"dagster/partition": NIGHT},
            status=dg.DagsterRunStatus.STARTED,
            asset_selection=None if selection is None else frozenset({dg.AssetKey(selection)}),
        )
    )

    assert is_held(opened.face, NIGHT, instance=opened.instance) is held


def test_generation_that_cannot_be_certified_does_not_keep_the_next_from_walking(
    station: Callable[..., Any],
) -> None:
    """Its contract names a model that is gone: told in the log, left open, opened to nobody."""
    first = station(None, COMMIT_EACH)
    broken_off(first, NIGHT)
    store = first.workspace.store("customers", NIGHT)
    for uri in store.pages().file_uris(NIGHT):
        Path(uri).write_bytes(b"gone")
    ran = first.stages(NEXT_NIGHT)

    assert ran.success
    assert not first.opened.pipeline(NIGHT).is_sealed()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, dg.DagsterExecutionInterruptedError])
def test_termination_in_the_records_leaves_a_receipt(
    station: Callable[..., Any], kind: type[BaseException]
) -> None:
    """The walk was whole: what follows it is done before the run ends, and may be accepted."""
    opened = station()
    opened.run(only=[["customers", "pages"]])
    log = dg.build_op_context().log
    with pytest.raises(kind), leaving_a_receipt(opened.opened, NIGHT, log=log):
        raise kind

    assert opened.receipt().receipt.accepted


def test_termination_before_the_walk_leaves_nothing(station: Callable[..., Any]) -> None:
    """Nothing was asked of the source, so that there is nothing to certify."""
    opened = station()
    opened.workspace.begin("customers")
    log = dg.build_op_context().log
    with pytest.raises(KeyboardInterrupt), leaving_a_receipt(opened.opened, NIGHT, log=log):
        raise KeyboardInterrupt

    assert opened.workspace.receipts("customers").generations() == []


def test_other_errors_are_not_taken_for_a_termination(station: Callable[..., Any]) -> None:
    """A writer that lost its generation certifies nothing."""
    opened = station(None, COMMIT_EACH)
    broken_off(opened, NIGHT)
    log = dg.build_op_context().log
    with pytest.raises(StopError), leaving_a_receipt(opened.opened, NIGHT, log=log):
        raise StopError

    assert not opened.opened.pipeline(NIGHT).is_sealed()


RUN = """
import sys
from pathlib import Path

import dagster as dg
import yaml

from scan_pipeline.components.scan import scan_definitions
from scan_pipeline.components.resource import project_workspace
from scan_pipeline.sources.catalogue import parse_scan

folder, generation = Path(sys.argv[1]), sys.argv[2]
scan = parse_scan(yaml.safe_load((folder / "scan.yaml").read_text()))
defs = dg.Definitions.merge(
    scan_definitions(scan, workspace=project_workspace(folder)),
    dg.Definitions(executor=dg.in_process_executor),
)
with dg.DagsterInstance.from_config(str(folder / "home")) as instance:
    instance.add_dynamic_partitions("customers_generations", [generation])
    job = defs.resolve_job_def("customers_generation")
    job.execute_in_process(instance=instance, partition_key=generation)
"""


def test_terminated_run_ends_as_terminated_and_leaves_its_receipt(
    tmp_path: Path, shipped: Any
) -> None:
    """A real run of a slow walk is told to end between two pages, as Dagster's launcher does."""
    registry = Registry(size=1_000, script=Script(faults=(Delayed(page="every", seconds=0.2),)))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (tmp_path / "pyproject.toml").write_text('[tool.scan_pipeline]\nlake = "lake"\n')
    generation = new_generation(datetime.now(UTC))  # the past cannot be begun by hand
    with running(registry) as base:
        text = yaml.safe_dump(dict(shipped)).replace("simulator://registry", base)
        (tmp_path / "scan.yaml").write_text(text)
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path), generation],
            env={**os.environ, "REGISTRY_TOKEN": AUDITOR_TOKEN},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        while len(registry.served.pages) < 4 and process.poll() is None:
            time.sleep(0.05)
        with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
            instance.report_run_canceling(instance.get_runs()[0])
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    receipts = ReceiptStore(Lake(root=str(tmp_path / "lake")), "customers")
    trust = Trust.load(tmp_path / "scan_pipeline_trust.json", lake=str(tmp_path / "lake"))
    receipt = receipts.read(generation, trust=trust).receipt
    assert (receipt.traversal, receipt.stop_reason) == ("cancelled", "cancelled")
    assert not receipt.accepted
    assert 0 < receipt.pages_observed < 10
    assert "terminated; the receipt says" in said
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        assert [run.status.value for run in instance.get_runs()] == ["CANCELED"]
