"""Maintenance in Dagster: an asset of the scan, a job of its own, daily where it keeps less."""

import dagster as dg

from scan_pipeline.components.maintenance import maintenance_key
from scan_pipeline_tests.components.conftest import NIGHT, Opener


def test_maintenance_is_an_asset_with_a_job(station: Opener) -> None:
    opened = station(edits={"operation.retention": {"generations": 5, "bodies": {"days": 1}}})
    opened.stages(NIGHT)
    job = opened.definitions.resolve_job_def("customers_maintain")

    result = job.execute_in_process(instance=opened.instance)

    (made,) = result.get_asset_materialization_events()
    (check,) = result.get_asset_check_evaluations()
    assert made.asset_key == maintenance_key(opened.face)
    assert made.materialization.metadata["dropped_bytes"] == dg.IntMetadataValue(0)
    assert (check.check_name, check.passed) == ("nothing_left_undone", True)
    graph = opened.definitions.resolve_asset_graph()
    condition = graph.get(maintenance_key(opened.face)).automation_condition
    assert condition is not None
    plain = station().definitions.resolve_asset_graph()
    assert plain.get(maintenance_key(opened.face)).automation_condition is None
