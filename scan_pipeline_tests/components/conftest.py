"""A scan in a Dagster of its own: a lake, a registry that answers in process, and an instance."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.components.analysis import partial_asset, verified_asset
from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import add_generation
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.components.scan import scan_definitions
from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.scenario import Scenario
from scan_pipeline.sources.face_settings import FaceSettings
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt

NIGHT = "20261130T020000Z"


@verified_asset(scan="customers", key=["analyses", "total"])
def total(customers: VerifiedCollection) -> dg.MaterializeResult:
    """Count the customers."""
    rows = customers.arrow().num_rows
    return dg.MaterializeResult(metadata={"rows": rows})


@partial_asset(scan="customers", accept="observed_pages_only", key=["analyses", "seen"])
def seen(context: dg.AssetExecutionContext, customers: PartialCollection) -> dg.MaterializeResult:
    """Count what was seen."""
    frame = customers.labelled_frame().collect()
    labels = frame.select("_coverage_status", "_conclusion_scope").unique().row(0)
    return dg.MaterializeResult(
        metadata={"rows": frame.height, "label": list(labels), "partition": context.partition_key}
    )


@dataclass(frozen=True)
class Ran:
    """A run that ended, in plain values."""

    result: dg.ExecuteInProcessResult

    @property
    def success(self) -> bool:
        return self.result.success

    @property
    def verdicts(self) -> dict[str, bool]:
        """Each check by its name."""
        found = self.result.get_asset_check_evaluations()
        return {each.check_name: each.passed for each in found}

    @property
    def checks(self) -> dict[str, dg.AssetCheckEvaluation]:
        return {each.check_name: each for each in self.result.get_asset_check_evaluations()}

    @property
    def made(self) -> list[str]:
        """The assets that were materialized, in order."""
        events = self.result.get_asset_materialization_events()
        return [event.asset_key.to_user_string() for event in events if event.asset_key]

    def told(self, key: str) -> dict[str, Any]:
        """An asset's metadata."""
        for event in self.result.get_asset_materialization_events():
            if event.asset_key is not None and event.asset_key.to_user_string() == key:
                found = event.materialization.metadata
                return {name: value.value for name, value in found.items()}
        raise AssertionError(f"{key} was not materialized; {self.made} were")

    @property
    def failures(self) -> dict[str, str]:
        """Why steps failed, by step."""
        found = {}
        for event in self.result.all_events:
            if event.is_step_failure:
                data = event.step_failure_data
                told = data.user_failure_data and data.user_failure_data.description
                found[str(event.step_key)] = told or str(data.error)
        return found


@dataclass
class Station:
    """One scan in one Dagster."""

    scan: Scan
    face: Face
    workspace: Workspace
    definitions: dg.Definitions
    instance: dg.DagsterInstance

    def run(self, generation: str = NIGHT, *, only: list[list[str]] | None = None) -> Ran:
        """Run assets of a generation; all of them unless told which."""
        add_generation(self.face, generation, instance=self.instance)
        job = self.definitions.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(
            instance=self.instance,
            partition_key=generation,
            asset_selection=None if only is None else [dg.AssetKey(key) for key in only],
            raise_on_error=False,
        )
        return Ran(result)

    def stages(self, generation: str = NIGHT, *, tags: dict[str, str] | None = None) -> Ran:
        """Run the four stages of a generation, as the job does."""
        add_generation(self.face, generation, instance=self.instance)
        job = self.definitions.resolve_job_def(self.face.named("generation"))
        result = job.execute_in_process(
            instance=self.instance, partition_key=generation, raise_on_error=False, tags=tags
        )
        return Ran(result)

    def tick(self, sensor: str) -> Any:
        """Evaluate a sensor as the daemon does."""
        repository = self.definitions.get_repository_def()
        return repository.get_sensor_def(sensor).evaluate_tick(
            dg.build_sensor_context(
                instance=self.instance,
                instance_ref=self.instance.get_ref(),
                repository_def=repository,
                resources={self.face.resource: self.opened},
                sensor_name=sensor,
            )
        )

    def due(self, at: datetime = datetime(2026, 11, 30, 2, tzinfo=UTC)) -> Any:
        """Evaluate the schedule's tick of a moment as the daemon does."""
        repository = self.definitions.get_repository_def()
        return repository.get_schedule_def(self.face.named("schedule")).evaluate_tick(
            dg.build_schedule_context(
                instance=self.instance,
                repository_def=repository,
                resources={self.face.resource: self.opened},
                scheduled_execution_time=at,
            )
        )

    def receipt(self, generation: str = NIGHT) -> StoredReceipt:
        return self.opened.collection().receipt(generation)

    @property
    def opened(self) -> ScanResource:
        assert self.definitions.resources is not None
        return self.definitions.resources[self.face.resource]


Opener = Callable[..., Station]


@pytest.fixture
def station(bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Open scans in Dagsters of their own."""
    with ExitStack() as stack:

        def opened(
            source: Registry | Scenario | None = None,
            edits: Mapping[str, Any] | None = None,
            *,
            settings: FaceSettings | None = None,
            workspace: Workspace | None = None,
            persistent: bool = False,
        ) -> Station:
            registry = source if isinstance(source, Registry) else bench.registry(source)
            query = dict(source.query) if isinstance(source, Scenario) else {}
            scan = bench.scan({**({"source.params": query} if query else {}), **(edits or {})})
            place = workspace or bench.workspace(registry)
            settings = settings or FaceSettings(plots=False)
            own = scan_definitions(scan, settings=settings, workspace=lambda: place)
            instance = (
                dg.DagsterInstance.local_temp(
                    str(tmp_path_factory.mktemp("dagster")),
                    overrides={"telemetry": {"enabled": False}},
                )
                if persistent  # schedules and sensors want one, and it is slower
                else dg.DagsterInstance.ephemeral()
            )
            analyses = dg.Definitions(assets=[total, seen], executor=dg.in_process_executor)
            return Station(
                scan=scan,
                face=Face(scan=scan.name, settings=settings),
                workspace=place,
                definitions=dg.Definitions.merge(own, analyses),
                instance=stack.enter_context(instance),
            )

        yield opened
