"""How one scan is called in Dagster: keys, names, partitions and pool, all derived in one place."""

import json
from typing import Annotated, Any, Final, Literal

import dagster as dg
from pydantic import Field, TypeAdapter, ValidationError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import SCAN_NAME
from scan_pipeline.core.value import record

Stage = Literal["pages", "records", "reconciliation", "receipt"]

STAGES: Final[tuple[Stage, ...]] = ("pages", "records", "reconciliation", "receipt")

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]


@record
class FaceSettings:
    """What a project may say of a scan's place in its Dagster; nothing here reaches the scan.

    Attributes:
        key_prefix: stands before `[<scan>, <stage>]` in every asset key.
        group: the assets' group; the scan's name where silent.
        owners: e-mail addresses, or `team:<name>`.
        pool: concurrency pool of the stages; the scan's name where silent.
        inventory: the inventory that the scan is read together with; they share one partition set.
    """

    key_prefix: tuple[_Name, ...] = ()
    group: _Name | None = None
    owners: tuple[str, ...] = ()
    pool: str | None = None
    inventory: Annotated[str, Field(pattern=SCAN_NAME)] | None = None


def parse_settings(raw: Any) -> FaceSettings:
    """Read the `dagster` block beside a scan file's attributes; None is an empty one.

    Raises:
        ContractError: a field is unknown or of another type.
    """
    try:
        return TypeAdapter(FaceSettings).validate_json(json.dumps(raw or {}))
    except ValidationError as error:
        told = "; ".join(
            f"dagster.{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        raise ContractError(
            f"{told}; expected key_prefix, group, owners, pool and inventory only"
        ) from error


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
    def group(self) -> str:
        """The group of the assets."""
        return self.settings.group or self.scan

    @property
    def pool(self) -> str:
        """The concurrency pool that keeps two runs of one scan apart."""
        return self.settings.pool or self.scan

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
