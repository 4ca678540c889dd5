"""How generations begin in Dagster: by one click, by the clock, and again after an expiry.

    <scan>_new_generation   job: names a generation, a partition from now on; settles nothing else
    <scan>_launch           sensor: begins the generation that such a run named
    <scan>_night            sensor: begins the one that the scan's inventory named, if it has one
    <scan>_schedule         schedule: names one a tick, after the tick's time, and begins it
    <scan>_follow           sensor: begins the one in place of one that a newer one overtook
    <scan>_restart          sensor: begins another attempt where the newest one expired

Whatever begins one, it is a run of `<scan>_generation` with the generation as its partition. A
run's partition is fixed, so another attempt is another run.
"""

from typing import Any, Final, TypeAlias

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.metadata import CERTIFIED_HERE, STOP_REASON
from scan_pipeline.components.overtaken import (
    GENERATION_TAG,
    overtaking,
    request_named,
)
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.restarts import attempt_after
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.naming import free_attempt, free_generation
from scan_pipeline.store.generations import next_attempt
from scan_pipeline.store.lake import check_generation
from scan_pipeline.store.receipts import generation_order

AssetJob: TypeAlias = Any
"""What `dg.define_asset_job` returns; Dagster gives it no public name."""

OUTSIDE: Final = "certified outside its run"

SENSOR_SECONDS: Final = 5
"""How often the sensors look, at most."""


def generation_job(face: Face) -> AssetJob:
    """Return the job that walks and certifies one generation."""
    return dg.define_asset_job(
        face.named("generation"),
        selection=dg.AssetSelection.assets(*face.keys),
        description=f"Walk and certify one generation of `{face.scan}`, its partition.",
    )


def new_generation_job(face: Face) -> dg.JobDefinition:
    """Return the job behind one click: it names a generation, which the sensor then begins."""

    @dg.op(
        name=face.named("name_generation"),
        required_resource_keys={face.resource},
        description="Name a generation that does not exist yet, after the present second.",
    )
    def name_generation(context: dg.OpExecutionContext) -> str:
        opened: ScanResource = getattr(context.resources, face.resource)
        with refusals():
            generation = free_generation(opened.scan.name, workspace=opened.workspace)
        while context.instance.has_dynamic_partition(face.partitions.name or "", generation):
            generation = next_attempt(generation)
        add_generation(face, generation, instance=context.instance)
        context.instance.add_run_tags(context.run_id, {GENERATION_TAG: generation})
        context.log.info("%s is named; sensor %s begins it", generation, face.named("launch"))
        return generation

    @dg.job(
        name=naming_job_name(face.scan),
        description=f"Begin a new generation of `{face.scan}`. Takes no configuration.",
    )
    def new_generation_graph() -> None:
        name_generation()

    return new_generation_graph


def add_generation(face: Face, generation: str, *, instance: dg.DagsterInstance) -> None:
    """Make a generation a partition of its scan; one that is there stays."""
    instance.add_dynamic_partitions(face.partitions.name or "", [generation])


def launch_sensor(face: Face, *, naming: dg.JobDefinition, job: AssetJob) -> dg.SensorDefinition:
    """Return the sensor that begins a generation once a click has named it."""

    @dg.run_status_sensor(
        name=face.named("launch"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[naming],
        request_job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SENSOR_SECONDS,
        description=f"Begins the generation that `{face.named('new_generation')}` named.",
    )
    def launch(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        return request_named(context.dagster_run)

    return launch


def night_sensor(face: Face, *, inventory: str, job: AssetJob) -> dg.SensorDefinition:
    """Return the sensor that begins the generation that a scan's inventory named for all its scans.

    The inventory's job is known by its name: it is another component's, and Dagster takes two jobs
    of one name for one only where they are the same object.
    """
    naming = naming_job_name(inventory)

    @dg.run_status_sensor(
        name=face.named("night"),
        run_status=dg.DagsterRunStatus.SUCCESS,
        request_job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SENSOR_SECONDS,
        description=f"Begins the generation that `{naming}` named for all scans of {inventory}.",
    )
    def night(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if context.dagster_run.job_name != naming:
            return dg.SkipReason(f"a run of {context.dagster_run.job_name}")
        return request_named(context.dagster_run)

    return night


def naming_job_name(name: str) -> str:
    """Return the name of the job that names a generation of a scan or an inventory."""
    return f"{name}_new_generation"


def restart_sensor(scan: Scan, *, face: Face, job: AssetJob) -> dg.SensorDefinition:
    """Return the sensor that follows an expired generation by another attempt.

    Only the newest generation counts, and only one that its own run certified: what the command
    line began, the command line begins again.
    """

    @dg.sensor(
        name=face.named("restart"),
        job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SENSOR_SECONDS,
        required_resource_keys={face.resource},
        description=f"Begins another attempt where the newest generation of `{scan.name}` expired.",
    )
    def restart(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        instance = context.instance
        known = instance.get_dynamic_partitions(face.partitions.name or "")
        # People may add partitions by hand, and call them anything.
        named = [each for each in known if is_generation(each)]
        newest = _newest_own(face, named, instance=instance)
        if newest is None or newest == context.cursor:
            return dg.SkipReason("no generation since the last look")
        stopped = _certified_stop(face, newest, instance=instance)
        if stopped is None:
            return dg.SkipReason(f"{newest} has no receipt yet")
        if attempt_after(newest, stopped, scan=scan) is None:
            context.update_cursor(newest)
            return dg.SkipReason(f"{newest}: {stopped}; no attempt follows")
        opened: ScanResource = getattr(context.resources, face.resource)
        newer = overtaking(scan.name, newest, workspace=opened.workspace)
        if newer is not None:
            context.update_cursor(newest)
            return dg.SkipReason(f"{newest}: {newer} was begun since; no attempt follows")
        attempt = free_attempt(scan.name, newest, workspace=opened.workspace)
        return dg.SensorResult(
            run_requests=[dg.RunRequest(run_key=attempt, partition_key=attempt)],
            dynamic_partitions_requests=[face.partitions.build_add_request([attempt])],
            cursor=newest,
        )

    return restart


def is_generation(name: str) -> bool:
    """Say whether a partition has the name of a generation."""
    try:
        return bool(check_generation(name))
    except ContractError:
        return False


def _newest_own(face: Face, named: list[str], *, instance: dg.DagsterInstance) -> str | None:
    """Return the newest generation; of the newest night's attempts, the newest that is the scan's.

    In an inventory another scan's attempt of the night is a partition too, and none of this one.
    """
    newest = max(named, key=generation_order, default=None)
    if newest is None or face.settings.inventory is None:
        return newest
    night = generation_order(newest)[0]
    seen = instance.get_materialized_partitions(face.key("receipt"))
    own = [each for each in named if each in seen and generation_order(each)[0] == night]
    return max(own, key=generation_order, default=newest)


def _certified_stop(face: Face, generation: str, *, instance: dg.DagsterInstance) -> str | None:
    """Return why a walk stopped: `OUTSIDE` where its run found it certified, None for not yet."""
    asked = dg.AssetRecordsFilter(asset_key=face.key("receipt"), asset_partitions=[generation])
    found = instance.fetch_materializations(asked, limit=1).records
    if not found:
        return None
    made = found[0].asset_materialization
    if made is None or not made.metadata.get(CERTIFIED_HERE, dg.MetadataValue.bool(False)).value:
        return OUTSIDE
    return str(made.metadata[STOP_REASON].value)
