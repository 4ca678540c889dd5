"""How one scan is called in Dagster: keys, names and partitions, all derived in one place."""

from typing import Final, Literal

import dagster as dg

from scan_pipeline.core.value import record
from scan_pipeline.sources.face_settings import FaceSettings

Stage = Literal["pages", "records", "reconciliation", "receipt"]

STAGES: Final[tuple[Stage, ...]] = ("pages", "records", "reconciliation", "receipt")


def generations_of(name: str) -> dg.DynamicPartitionsDefinition:
    """Return the partition set of a scan, or of an inventory, by its name."""
    return dg.DynamicPartitionsDefinition(name=f"{name}_generations")


@record
class Face:
    """The names of one scan in Dagster.

    Attributes:
        scan: the scan's name.
        settings: what the project says of its place.
    """

    scan: str
    settings: FaceSettings = FaceSettings()

    def key(self, stage: Stage) -> dg.AssetKey:
        """Return the key of a stage's asset."""
        return dg.AssetKey([*self.settings.key_prefix, self.scan, stage])

    @property
    def keys(self) -> tuple[dg.AssetKey, ...]:
        """The keys of all stages, in order."""
        return tuple(self.key(stage) for stage in STAGES)

    @property
    def changes(self) -> dg.AssetKey:
        """The key of what changed since the night before."""
        return dg.AssetKey([*self.settings.key_prefix, self.scan, "changes"])

    @property
    def group(self) -> str:
        """The group of the assets."""
        return self.settings.group or self.scan

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """The generations of the scan, one partition each; equal by name wherever it is made.

        Scans of one inventory share it: over two sets of its own an analysis would never be asked
        for.
        """
        return generations_of(self.settings.inventory or self.scan)

    @property
    def resource(self) -> str:
        """The key of the resource that opens the scan."""
        return f"scan_{self.scan}"

    def named(self, what: str) -> str:
        """Return the name of a job, schedule or sensor of this scan."""
        return f"{self.scan}_{what}"
