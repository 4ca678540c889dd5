"""A generation that was named and then overtaken: a newer one was begun before it.

The newest name is the newest night, so that a generation begins only where it sorts after every
one that the lake knows. The clock and a click name theirs before a run begins them; meanwhile
somebody may begin one by hand, on another host, or with a clock that runs ahead. Where that one is
accepted, it serves the night; else the night gets a generation that sorts after it.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.naming import free_attempt, newest_known
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import generation_order

GENERATION_TAG: Final = "scan_pipeline/generation"
"""On a run that named a generation for another run to begin."""

_BEGUN_BY: Final = ("dagster/schedule_name", "dagster/sensor_name")
"""Tags of runs that nobody asked for by hand (dagster 1.13, _core/storage/tags.py)."""


def overtaking(scan: str, generation: str, *, workspace: Workspace) -> str | None:
    """Return the newest generation of the lake where it sorts after this one, else None."""
    newest = newest_known(scan, workspace=workspace)
    if newest is None or generation_order(newest) <= generation_order(generation):
        return None
    return newest


def accepted_since(scan: Scan, generation: str, *, workspace: Workspace) -> str | None:
    """Return the newest accepted generation that was begun after this name, None where none is."""
    scope = scope_digest(scan)
    for stored in Shelf(scan.name, workspace=workspace).standing():
        receipt = stored.receipt
        if generation_order(receipt.scan_generation) <= generation_order(generation):
            return None
        if receipt.accepted and receipt.scope_digest == scope:
            return receipt.scan_generation
    return None


def name_for(scan: Scan, moment: str, *, workspace: Workspace) -> str:
    """Return the name of the generation that belongs to a moment: its own, or one that is newer."""
    newest = overtaking(scan.name, moment, workspace=workspace)
    return moment if newest is None else free_attempt(scan.name, newest, workspace=workspace)


def end_where_overtaken(
    opened: ScanResource, generation: str, *, context: dg.AssetExecutionContext
) -> None:
    """End the run of a generation that can no longer begin: canceled, and not failed.

    A run's partition is fixed, so that it cannot walk under another name. It names the generation
    that takes its place, which a sensor then begins; none where an accepted one serves already.
    Whoever chose an old partition by hand is told so by the walk itself.

    Raises:
        dagster.Failure: a newer generation is there, and says which.
    """
    scan, workspace = opened.scan, opened.workspace
    newest = overtaking(scan.name, generation, workspace=workspace)
    tags, instance = context.run.tags, context.instance
    if newest is None or not is_begun_by_us(tags):
        return
    serving = accepted_since(scan, generation, workspace=workspace)
    if serving is not None:
        _end(context, f"{serving} was begun meanwhile and is accepted: it serves in its place")
    following = free_attempt(scan.name, newest, workspace=workspace)
    instance.add_dynamic_partitions(opened.face.partitions.name or "", [following])
    instance.add_run_tags(context.run.run_id, {GENERATION_TAG: following})
    _end(
        context,
        f"{newest} was begun meanwhile and sorts after it: {following} takes its place, and sensor "
        f"{opened.face.named('follow')} begins it",
    )


def is_begun_by_us(tags: Mapping[str, str]) -> bool:
    """Say whether a schedule or sensor asked for a run, rather than somebody by hand."""
    return any(tag in tags for tag in _BEGUN_BY)


def follow_sensor(face: Face, *, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Return the sensor that begins the generation which takes an overtaken one's place."""

    @dg.run_status_sensor(
        name=face.named("follow"),
        run_status=dg.DagsterRunStatus.CANCELED,
        monitored_jobs=[job],
        request_job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Begins the generation that takes the place of one that was overtaken.",
    )
    def follow(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        return request_named(context.dagster_run)

    return follow


def request_named(run: dg.DagsterRun) -> dg.RunRequest | dg.SkipReason:
    """Ask for the run of the generation that another run named."""
    generation = run.tags.get(GENERATION_TAG)
    if generation is None:
        return dg.SkipReason("the run named no generation")
    return dg.RunRequest(run_key=generation, partition_key=generation)


def _end(context: dg.AssetExecutionContext, told: str) -> NoReturn:
    told = f"{context.partition_key} was not begun: {told}"
    # A run that was asked to end and whose step then fails is canceled (dagster 1.13,
    # _core/execution/api.py): no alert on failures goes off.
    context.instance.report_run_canceling(context.run, told)
    raise dg.Failure(description=told, allow_retries=False)
