"""Generations that were certified without an asset's event become visible in Dagster.

The command line, another host, a run that was terminated, a later run that closed what an earlier
one left: each leaves a receipt in the lake and nothing in Dagster. A run of the stages shows it:
on a sealed generation they compute again, compare, and write nothing.
"""

from typing import Final

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import AssetJob
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import is_held

MIRROR_SECONDS: Final = 15
"""How often the lake is looked at, at most."""

MIRRORED: Final = 10
"""Generations of one look, at most; the rest come with the next."""


def mirror_sensor(face: Face, *, job: AssetJob) -> dg.SensorDefinition:
    """Return the sensor that has receipts shown which Dagster does not know."""

    @dg.sensor(
        name=face.named("lake"),
        job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=MIRROR_SECONDS,
        required_resource_keys={face.resource},
        description=f"Shows generations of `{face.scan}` that were certified outside their run.",
    )
    def lake(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        opened: ScanResource = getattr(context.resources, face.resource)
        names = unseen(opened, instance=context.instance)[:MIRRORED]
        if not names:
            return dg.SkipReason("every receipt of the lake is known")
        # One that did not get through is tried again the next day, not every few seconds.
        day = f"{opened.workspace.clock():%Y%m%d}"
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(run_key=f"{each}/lake/{day}", partition_key=each) for each in names
            ],
            dynamic_partitions_requests=[face.partitions.build_add_request(names)],
        )

    return lake


def unseen(opened: ScanResource, *, instance: dg.DagsterInstance) -> list[str]:
    """Return the generations with a receipt that no event tells of, newest first."""
    face = opened.face
    seen = instance.get_materialized_partitions(face.key("receipt"))
    certified = reversed(opened.workspace.receipts(face.scan).committed_generations())
    return [
        each
        for each in certified
        if each not in seen and not is_held(face, each, instance=instance)
    ]
