"""Dagster's door: one lazy function that loads `defs/`."""

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """Return what ships, run in process, with automation switched on.

    A new process for each step costs four times the start of a run, and the stages of a
    generation follow one another anyway.
    """
    shipped = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    automation = dg.AutomationConditionSensorDefinition(
        "automation",
        target=dg.AssetSelection.all(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=10,
        description="Runs analyses whose scans have a new accepted generation.",
    )
    return dg.Definitions.merge(
        shipped, dg.Definitions(sensors=[automation], executor=dg.in_process_executor)
    )
