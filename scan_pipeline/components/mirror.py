"""Generations that this Dagster home does not know become visible from the lake.

The command line, another deployment, a home that was lost, a run that was terminated, a later run
that closed what an earlier one left: each leaves a receipt in the lake and nothing in Dagster. The
sensor makes them partitions and tells of them without a run, oldest first, so that the newest night
is the last that Dagster heard of.
"""

from typing import Final

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import add_generation
from scan_pipeline.components.reporting import report_generation
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import is_held
from scan_pipeline.core.errors import ScanPipelineError

MIRROR_SECONDS: Final = 15
"""How often the lake is looked at, at most."""

MIRRORED: Final = 25
"""Generations of one look, at most; the rest come with the next."""


def mirror_sensor(face: Face) -> dg.SensorDefinition:
    """Return the sensor that tells Dagster of receipts which it does not know."""

    @dg.sensor(
        name=face.named("lake"),
        asset_selection=dg.AssetSelection.assets(*face.keys),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=MIRROR_SECONDS,
        required_resource_keys={face.resource},
        description=f"Shows generations of `{face.scan}` that no run of this Dagster certified.",
    )
    def lake(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        opened: ScanResource = getattr(context.resources, face.resource)
        instance = context.instance
        names = unseen(opened, instance=instance)
        if not names:
            return dg.SkipReason("every receipt of the lake is known")
        told = list[str]()
        for generation in names:
            if len(told) == MIRRORED:
                break
            try:
                # Reported before it is a partition, it would be seen by nobody and told no more.
                add_generation(face, generation, instance=instance)
                # Of many, the newest alone is drawn: a sensor has a minute.
                plots = face.settings.plots and generation == names[-1]
                report_generation(opened, generation, instance=instance, plots=plots)
            except ScanPipelineError as error:
                context.log.warning("%s cannot be told of: %s", generation, error)
            else:
                told.append(generation)
        return dg.SkipReason(f"told of {len(told)} of {len(names)}: {', '.join(told)}")

    return lake


def unseen(opened: ScanResource, *, instance: dg.DagsterInstance) -> list[str]:
    """Return the generations with a receipt that no event tells of, oldest first."""
    face = opened.face
    seen = instance.get_materialized_partitions(face.key("receipt"))
    return [
        each
        for each in opened.workspace.receipts(face.scan).committed_generations()
        if each not in seen and not is_held(face, each, instance=instance)
    ]
