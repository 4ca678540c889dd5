"""When the clock begins a generation, and when it does not.

A tick begins one, named after the tick's time, unless

    a later tick has passed    the scheduler was down; after an outage there is one, not ten
    a newer one serves it      somebody began one since, and it is accepted
    one is under way           in a run, or walked by somebody else; `overlap: queue` waits for it

Whatever keeps a tick from it is told at the tick. Where the lake cannot be looked at, the run is
begun all the same: it meets the same error and tells it where people look.
"""

from datetime import datetime

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import AssetJob, add_generation, is_generation
from scan_pipeline.components.overtaken import accepted_since, name_for
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.settling import PARTITION_TAG, unfinished_runs
from scan_pipeline.core.calendar import grace, ticks_after
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.operation import Schedule
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.walking.movement import newest_moved
from scan_pipeline.store.generations import new_generation

RUN_KEY_TAG = "dagster/run_key"
"""On a run that a schedule or sensor asked for (dagster 1.13, _core/storage/tags.py)."""

_WAITING = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)


def generation_schedule(
    scan: Scan, schedule: Schedule, *, face: Face, job: AssetJob
) -> dg.ScheduleDefinition:
    """Return the schedule of a scan file: one generation a tick, named after the tick's time.

    Where a newer one is there and not accepted, the tick's generation sorts after it. Its run is
    known by the tick, whatever its generation is called.
    """

    @dg.schedule(
        name=face.named("schedule"),
        job=job,
        cron_schedule=schedule.cron,
        execution_timezone=schedule.timezone,
        required_resource_keys={face.resource},
        description=f"Begins a generation of `{face.scan}` when the scan file says so.",
    )
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        due = context.scheduled_execution_time
        moment = new_generation(due)
        generation = moment
        try:
            opened: ScanResource = getattr(context.resources, face.resource)
            kept = why_not_begun(schedule, due, opened=opened, instance=context.instance)
            if kept is not None:
                return dg.SkipReason(kept)
            generation = name_for(scan, moment, workspace=opened.workspace)
        except ScanPipelineError as error:
            context.log.warning("the lake cannot be looked at: %s", error)
        # A schedule cannot ask for partitions as a sensor can; adding one twice changes nothing.
        add_generation(face, generation, instance=context.instance)
        return dg.RunRequest(run_key=moment, partition_key=generation)

    return tick


def why_not_begun(
    schedule: Schedule, due: datetime, *, opened: ScanResource, instance: dg.DagsterInstance
) -> str | None:
    """Return what keeps a tick from beginning a generation, None where nothing does.

    Args:
        schedule: the scan's.
        due: the tick's time.
        opened: the scan.
        instance: which runs there are.
    """
    scan, workspace, moment = opened.scan, opened.workspace, new_generation(due)
    later = next(ticks_after(schedule, due))
    if later <= workspace.clock():
        return f"{new_generation(later)} was due since: one generation serves all that were missed"
    serving = accepted_since(scan, moment, workspace=workspace)
    if serving is not None:
        return f"{serving} was begun after {moment} and is accepted: it serves this tick"
    return _under_way(schedule, moment, opened=opened, instance=instance)


def _under_way(
    schedule: Schedule, moment: str, *, opened: ScanResource, instance: dg.DagsterInstance
) -> str | None:
    """Return what is under way as far as it keeps a tick from its own generation."""
    face, scan, workspace = opened.face, opened.scan, opened.workspace
    receipts = workspace.receipts(scan.name)
    for run in unfinished_runs(face, instance=instance):
        held = run.tags.get(PARTITION_TAG, "")
        if run.tags.get(RUN_KEY_TAG) == moment or not is_generation(held) or receipts.has(held):
            continue  # this tick's own, or one over what is certified already
        if run.status in _WAITING:
            return f"{held} waits to be begun: it serves this tick"
        if schedule.overlap == "refuse":
            return f"{held} is under way in run {run.run_id}; the schedule refuses an overlap"
    if schedule.overlap == "queue":
        return None
    now = workspace.clock()
    moved = newest_moved(scan.name, workspace=workspace)
    if moved is None or now - moved[1] > grace(schedule, now):
        return None
    return (
        f"{moved[0]} is open, and its walk moved at {moved[1].isoformat(timespec='seconds')}: "
        "somebody walks it; the schedule refuses an overlap"
    )
