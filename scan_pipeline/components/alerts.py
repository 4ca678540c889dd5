"""The sensor that sends alerts when nothing else does: of runs that died, and of what is late."""

from typing import Final

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.alerting.alerts import tell_changes

ALERT_SECONDS: Final = 60
"""How often a scan's condition is looked at, at most."""


def alert_sensor(scan: Scan, *, face: Face) -> dg.SensorDefinition:
    """Return the sensor that tells of changes no run told of; it begins no run."""

    @dg.sensor(
        name=face.named("alerts"),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=ALERT_SECONDS,
        required_resource_keys={face.resource},
        description=f"Sends alerts about `{scan.name}` that no run sent (docs/operating.md).",
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        opened: ScanResource = getattr(context.resources, face.resource)
        try:
            if not opened.workspace.project.alerts:
                return dg.SkipReason("no alerts are configured")
            alerted = tell_changes(scan, workspace=opened.workspace)
        except ScanPipelineError as error:
            context.log.warning("no alert was sent: %s", error)
            return dg.SkipReason(f"no alert was sent: {error}")
        told = ", ".join(f"{each.channel}: {each.fate}" for each in alerted.told)
        return dg.SkipReason(f"{alerted.condition.word}; {told or 'known to every channel'}")

    return alerts
