"""The component of scans that are read together: `type: scan_pipeline.components.Inventory`.

Its scans say so themselves, `dagster: {inventory: NAME}`, and then share one partition set. Each
begins what the inventory named in a run of its own: what one comes to, no other waits for.

    <inventory>_new_generation   job: names one generation for all of them
    <inventory>_schedule         schedule: has one named a tick, after the tick's time; it is the
                                 schedule of the scans' files, which must be the same
    <inventory>_join             sensor: asks for the analyses of several scans, once all are there
"""

import inspect
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import dagster as dg
from pydantic import BaseModel, Field

from scan_pipeline.components.face import Face, generations_of
from scan_pipeline.components.generations import (
    is_generation,
    naming_job_name,
)
from scan_pipeline.components.joining import join_sensor
from scan_pipeline.components.overtaken import GENERATION_TAG, accepted_since
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.scan import Scan
from scan_pipeline.components.scheduling import why_not_begun
from scan_pipeline.components.settling import refusals
from scan_pipeline.core.errors import ContractError, ScanPipelineError
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.scan import SCAN_NAME
from scan_pipeline.stages.naming import free_night
from scan_pipeline.store.generations import new_generation


class InventoryAttributes(dg.Model):
    """The attributes of an inventory; its scans say all else."""

    name: Annotated[str, Field(pattern=SCAN_NAME)]


class Inventory(dg.Component):
    """Scans that are read together: one partition set, one click and one schedule for all.

    Args:
        name: its name; its scans say it as `dagster.inventory`.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return what the attributes are shown and first checked by."""
        return InventoryAttributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what tools show of this component."""
        return dg.ComponentTypeSpec(
            description=inspect.getdoc(cls), produces=["job", "schedule", "sensor"]
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> "Inventory":
        """Take the attributes, which Dagster has checked."""
        del context
        if not isinstance(attributes, InventoryAttributes):
            raise ContractError(f"found the attributes {attributes}; expected the inventory's name")
        return cls(attributes.name)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return what begins a night, for all scans of the project that name this inventory.

        Raises:
            ContractError: as `inventory_definitions`; or a scan has the inventory's name.
        """
        scans = context.component_tree.get_all_components(of_type=Scan)
        if any(each.scan.name == self.name for each in scans):
            raise ContractError(
                f"found a scan and an inventory of the name {self.name}; expected two names"
            )
        mine = [each for each in scans if each.settings.inventory == self.name]
        return inventory_definitions(
            self.name,
            faces=[Face(scan=each.scan.name, settings=each.settings) for each in mine],
            schedules=[each.scan.schedule for each in mine],
        )


def inventory_definitions(
    name: str, *, faces: Sequence[Face], schedules: Sequence[Schedule | None]
) -> dg.Definitions:
    """Return what an inventory is in Dagster, beside the definitions of its scans.

    Args:
        name: its name.
        faces: its scans.
        schedules: the schedule of each scan; one for all, or none.

    Raises:
        ContractError: no scan belongs to it, one says another inventory, or their schedules differ.
    """
    if not faces or any(each.settings.inventory != name for each in faces):
        told = {each.scan: each.settings.inventory for each in faces}
        raise ContractError(
            f"inventory {name}: found the scans {told}; expected scans whose files say "
            f"`dagster: {{inventory: {name}}}`"
        )
    if len({*schedules}) > 1:
        told = {
            face.scan: each and f"{each.cron} {each.timezone}"
            for face, each in zip(faces, schedules, strict=True)
        }
        raise ContractError(
            f"inventory {name}: found the schedules {told}; expected the same for all, or none: "
            "its scans are begun together"
        )
    faces = sorted(faces, key=lambda each: each.scan)
    naming, schedule = _naming_job(name, faces=faces), schedules[0]
    ticks = [] if schedule is None else [_schedule(name, schedule, faces=faces, naming=naming)]
    return dg.Definitions(
        jobs=[naming],
        schedules=ticks,
        sensors=[join_sensor(name, faces)],
    )


def _naming_job(name: str, *, faces: Sequence[Face]) -> dg.JobDefinition:
    partitions = generations_of(name)

    @dg.op(
        name=f"{name}_name_generation",
        required_resource_keys={face.resource for face in faces},
        description="Name a generation that is new to every scan of the inventory.",
    )
    def name_generation(context: dg.OpExecutionContext) -> str:
        opened: list[ScanResource] = [getattr(context.resources, face.resource) for face in faces]
        workspace, instance = opened[0].workspace, context.instance
        known = filter(is_generation, instance.get_dynamic_partitions(partitions.name or ""))
        with refusals():
            generation = free_night(
                [each.scan.name for each in opened],
                # A tick's night is named after the tick, whenever the run that names it begins.
                moment=context.run.tags.get(GENERATION_TAG) or new_generation(workspace.clock()),
                known=known,
                workspace=workspace,
            )
        instance.add_dynamic_partitions(partitions.name or "", [generation])
        instance.add_run_tags(context.run_id, {GENERATION_TAG: generation})
        context.log.info("%s is named; each scan's sensor `<scan>_night` begins it", generation)
        return generation

    @dg.job(
        name=naming_job_name(name),
        description=f"Begin a new generation of {', '.join(face.scan for face in faces)}, under "
        "one name. Takes no configuration.",
    )
    def new_generation_graph() -> None:
        name_generation()

    return new_generation_graph


def _schedule(
    name: str, schedule: Schedule, *, faces: Sequence[Face], naming: dg.JobDefinition
) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=f"{name}_schedule",
        job=naming,
        cron_schedule=schedule.cron,
        execution_timezone=schedule.timezone,
        required_resource_keys={face.resource for face in faces},
        description="Begins a generation of every scan of the inventory, under one name.",
    )
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        due = context.scheduled_execution_time
        moment = new_generation(due)
        try:
            opened = [getattr(context.resources, face.resource) for face in faces]
            kept = _why_not_begun(schedule, due, members=opened, instance=context.instance)
            if kept is not None:
                return dg.SkipReason(kept)
        except ScanPipelineError as error:
            context.log.warning("the lake cannot be looked at: %s", error)
        return dg.RunRequest(run_key=moment, tags={GENERATION_TAG: moment})

    return tick


def _why_not_begun(
    schedule: Schedule,
    due: datetime,
    *,
    members: Sequence[ScanResource],
    instance: dg.DagsterInstance,
) -> str | None:
    """Return what keeps a tick from beginning the night of all scans, None where nothing does.

    What keeps one scan from it keeps all, since they are begun together; but a tick that a newer
    accepted generation serves is served only where each scan has one.
    """
    told, served = list[str](), 0
    for each in members:
        kept = why_not_begun(schedule, due, opened=each, instance=instance)
        serving = accepted_since(each.scan, new_generation(due), workspace=each.workspace)
        served += serving is not None
        if kept is not None:
            told.append(f"{each.scan.name}: {kept}")
    if not told or (served == len(told) and served < len(members)):
        return None
    return "; ".join(told)
