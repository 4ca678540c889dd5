"""The component behind a scan file: `type: scan_pipeline.components.Scan`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from scan_pipeline.components.acknowledging import acknowledge_job
from scan_pipeline.components.alerts import alert_sensor
from scan_pipeline.components.assets import scan_assets
from scan_pipeline.components.changes import changes_asset
from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import (
    generation_job,
    launch_sensor,
    new_generation_job,
    night_sensor,
    restart_sensor,
)
from scan_pipeline.components.maintenance import maintenance_asset, maintenance_job
from scan_pipeline.components.mirror import mirror_sensor
from scan_pipeline.components.overtaken import follow_sensor
from scan_pipeline.components.resource import ScanResource, project_workspace
from scan_pipeline.components.scaffolding import ScanScaffolder
from scan_pipeline.components.scheduling import generation_schedule
from scan_pipeline.core import scan as core_scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.sources.face_settings import FACE, FaceSettings, parse_settings
from scan_pipeline.sources.scan_file import read_documents
from scan_pipeline.stages.workspace import Workspace

COMPONENT_FILES: Final = ("defs.yaml", "defs.yml", "component.yaml")
"""Where Dagster finds a component's attributes (dagster 1.13, find_defs_or_component_yaml)."""


class ScanAttributes(dg.Model):
    """The attributes of a scan file as Dagster's tools list them; `parse_scan` reads them.

    Nothing is refused here, so that a mistake is told in the words, and with the line, in which
    every other reader tells it. `dagster` alone speaks of the assets: key_prefix, group, owners,
    pool and plots, and the inventory they belong to.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "required": ["name", "source", "contract"],
            "additionalProperties": False,
        },
    )

    name: SkipValidation[str] = ""
    source: SkipValidation[dict[str, Any]] = Field(default_factory=dict)
    contract: SkipValidation[dict[str, Any]] = Field(default_factory=dict)
    operation: SkipValidation[dict[str, Any] | None] = None
    record_schema: SkipValidation[str | list[dict[str, Any]] | None] = None
    schedule: SkipValidation[dict[str, Any] | None] = None
    description: SkipValidation[str | None] = None
    dagster: SkipValidation[dict[str, Any] | None] = None


@dg.scaffold_with(ScanScaffolder)
class Scan(dg.Component):
    """One scan: four assets a generation, their checks, and what begins a generation.

    The attributes are the scan file's, the same that the command line runs. They are facts, so
    nothing in them is a template: Dagster would make None of an unset `{{ env.X }}` and a number
    of the text "100". Python modules beside the scan file are loaded with it, so that an analysis
    can stand where its scan does.

    Args:
        scan: what is enumerated.
        settings: what the project says of its place in Dagster.
        workspace: opens the lake and keys it is worked on with; None for those of the project
            around the scan file.
    """

    def __init__(
        self,
        scan: core_scan.Scan,
        *,
        settings: FaceSettings = FaceSettings(),  # noqa: B008  # a frozen value
        workspace: Callable[[], Workspace] | None = None,
    ) -> None:
        self.scan, self.settings = scan, settings
        self._workspace = workspace

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return what the attributes are shown and first checked by."""
        return ScanAttributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what tools show of this component."""
        return dg.ComponentTypeSpec(
            description=inspect.getdoc(cls),
            produces=["asset", "asset_check", "job", "schedule", "sensor", "resource"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> "Scan":
        """Read a scan file's attributes.

        Raises:
            ScanFileError: they are no scan; says all that is wrong, with the lines.
            ContractError: the `dagster` block has unknown fields.
        """
        raw = {}
        if attributes is not None:
            raw = attributes.model_dump(exclude_unset=True, warnings=False)
        face = raw.pop(FACE, None)
        scan = _parsed(raw, folder=context.path)  # of a file, with the lines of the block too
        return cls(scan, settings=parse_settings(face))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the scan's definitions, and assets and checks of the modules beside its file."""
        workspace = self._workspace or project_workspace(context.project_root)
        own = scan_definitions(self.scan, settings=self.settings, workspace=workspace)
        beside = [
            context.load_defs_relative_python_module(path) for path in _modules_beside(context.path)
        ]
        return dg.Definitions.merge(
            own,
            dg.Definitions(
                assets=dg.load_assets_from_modules(beside),
                asset_checks=dg.load_asset_checks_from_modules(beside),
            ),
        )


def scan_definitions(
    scan: core_scan.Scan,
    *,
    settings: FaceSettings = FaceSettings(),  # noqa: B008  # a frozen value
    workspace: Callable[[], Workspace],
) -> dg.Definitions:
    """Return everything that one scan is in Dagster.

    The executor is the project's: nothing here binds one.

    Args:
        scan: what is enumerated.
        settings: what the project says of its place.
        workspace: opens the lake and keys it is worked on with.
    """
    face = Face(scan=scan.name, settings=settings)
    job, naming = generation_job(face), new_generation_job(face)
    schedules = (
        []
        if scan.schedule is None or settings.inventory is not None  # which begins all its scans
        else [generation_schedule(scan, scan.schedule, face=face, job=job)]
    )
    belongs = settings.inventory
    nights = [] if belongs is None else [night_sensor(face, inventory=belongs, job=job)]
    return dg.Definitions(
        assets=[
            *scan_assets(scan, face=face),
            *([] if scan.contract.mode == "sync" else [changes_asset(scan, face=face)]),
            maintenance_asset(scan, face=face),
        ],
        jobs=[job, naming, acknowledge_job(face), maintenance_job(face)],
        schedules=schedules,
        sensors=[
            launch_sensor(face, naming=naming, job=job),
            *nights,
            follow_sensor(face, job=job),
            restart_sensor(scan, face=face, job=job),
            mirror_sensor(face),
            alert_sensor(scan, face=face),
        ],
        resources={face.resource: ScanResource(scan, face=face, workspace=workspace)},
    )


def _modules_beside(path: Path) -> list[Path]:
    """Return the Python modules in the folder of a scan file; none for a scan made in Python."""
    if not path.is_dir():
        return []
    return sorted(each for each in path.glob("*.py") if each.name != "__init__.py")


def _parsed(raw: dict[str, Any], *, folder: Path) -> core_scan.Scan:
    """Read the attributes from their file as every other reader does; else as they were given.

    Dagster's own reading of the file takes YAML's surprises (`no`, a member named twice) as they
    come, and knows nothing of lines.
    """
    files = (folder / name for name in COMPONENT_FILES)
    for file in files:
        if file.is_file():
            documents = read_documents(file)
            for document in documents:
                if document.name == raw.get("name") or len(documents) == 1:
                    return document.parse()
    return parse_scan(raw)
