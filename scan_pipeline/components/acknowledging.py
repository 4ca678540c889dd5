"""The job by which a person says in Dagster that a swing is real, as `acknowledge` does."""

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import refusals
from scan_pipeline.stages.acknowledge import acknowledge


class Word(dg.Config):
    """Which withheld generation is acknowledged, by whom and why; signed and kept."""

    generation: str
    by: str
    because: str


def acknowledge_job(face: Face) -> dg.JobDefinition:
    """Return the job that acknowledges a scan's withheld receipt.

    The generation that supersedes it becomes a partition when the lake is looked at next.
    """

    @dg.op(
        name=face.named("acknowledge_swing"),
        required_resource_keys={face.resource},
        description="Acknowledge the swing for which a receipt is withheld; nothing else can be.",
    )
    def acknowledge_swing(context: dg.OpExecutionContext, config: Word) -> str:
        opened: ScanResource = getattr(context.resources, face.resource)
        with refusals():
            stored = acknowledge(
                face.scan,
                config.generation,
                by=config.by,
                because=config.because,
                workspace=opened.workspace,
            )
        context.log.info(stored.receipt.statement)
        return stored.receipt.scan_generation

    @dg.job(
        name=face.named("acknowledge"),
        description=f"Say that a swing in the number of records of `{face.scan}` is real. Takes "
        "generation, by and because in the launchpad.",
    )
    def acknowledge_graph() -> None:
        acknowledge_swing()

    return acknowledge_graph
