"""Scans that are read together: one name for all, one partition set, and all or nothing."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from scan_pipeline.components import Inventory, Scan
from scan_pipeline.components.analysis import verified_asset
from scan_pipeline.components.face import Face
from scan_pipeline.components.inventory import inventory_definitions
from scan_pipeline.components.scan import scan_definitions
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.operation import Schedule
from scan_pipeline.simulator.faults import SnapshotExpired
from scan_pipeline.simulator.script import Script
from scan_pipeline.sources.face_settings import FaceSettings
from scan_pipeline.stages.inventory import VerifiedInventory
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline_tests.components.conftest import Ran

# Dagster's own loading warns of its own beta classes.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

NIGHT = "20261130T020000Z"
SCANS = {"customers": "customers", "shop": "shop"}
IN_IT = FaceSettings(inventory="night")


@verified_asset(scans=SCANS, inventory="night", key=["analyses", "both"])
def both(
    context: dg.AssetExecutionContext, customers: VerifiedCollection, shop: VerifiedCollection
) -> dg.MaterializeResult:
    """Count the customers that both know."""
    one, other = customers.frame().collect(), shop.frame().collect()
    known = one.join(other, on="customer_id").height
    return dg.MaterializeResult(metadata={"known": known, "partition": context.partition_key})


@verified_asset(scans=SCANS, inventory="night", key=["analyses", "told"])
def told(read: VerifiedInventory) -> dg.MaterializeResult:
    """Tell what was opened."""
    return dg.MaterializeResult(metadata={"names": sorted(read), "says": read.word()})


class Together:
    """Two scans of one inventory in one Dagster."""

    def __init__(self, bench: Any, instance: dg.DagsterInstance, registry: Any) -> None:
        self.workspace, self.instance = bench.workspace(registry), instance
        scans = [bench.scan({"name": name}) for name in SCANS]
        self.faces = {each.name: Face(scan=each.name, settings=IN_IT) for each in scans}
        schedules = [each.schedule for each in scans]
        self.definitions = dg.Definitions.merge(
            *(
                scan_definitions(each, settings=IN_IT, workspace=lambda: self.workspace)
                for each in scans
            ),
            inventory_definitions("night", faces=[*self.faces.values()], schedules=schedules),
            dg.Definitions(assets=[both, told], executor=dg.in_process_executor),
        )

    @property
    def partitions(self) -> list[str]:
        return list(self.instance.get_dynamic_partitions("night_generations"))

    def job(self, name: str, **arguments: Any) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_job_def(name)
        return job.execute_in_process(instance=self.instance, raise_on_error=False, **arguments)

    def analysis(self, generation: str = NIGHT) -> Ran:
        keys = [dg.AssetKey(["analyses", name]) for name in ("both", "told")]
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return Ran(
            job.execute_in_process(
                instance=self.instance,
                partition_key=generation,
                asset_selection=keys,
                raise_on_error=False,
            )
        )

    def tick(self, sensor: str, cursor: str | None = None) -> Any:
        repository = self.definitions.get_repository_def()
        return repository.get_sensor_def(sensor).evaluate_tick(
            dg.build_sensor_context(
                instance=self.instance,
                instance_ref=self.instance.get_ref(),
                repository_def=repository,
                resources=self.definitions.resources,
                sensor_name=sensor,
                cursor=cursor,
            )
        )

    def launched(self, run: dg.ExecuteInProcessResult) -> list[tuple[str | None, str | None]]:
        """What each scan's sensor begins after a run: its job and the partition."""
        event = next(e for e in run.all_events if e.event_type_value == "PIPELINE_SUCCESS")
        begun = []
        for name in SCANS:
            sensor = self.definitions.get_repository_def().get_sensor_def(f"{name}_night")
            context = dg.build_run_status_sensor_context(
                sensor_name=f"{name}_night",
                dagster_event=event,
                dagster_instance=self.instance,
                dagster_run=self.instance.get_run_by_id(run.run_id),
            )
            request = sensor(context)
            if isinstance(request, dg.RunRequest):
                begun.append((sensor.job_name, request.partition_key))
        return begun


@pytest.fixture
def together(bench: Any, tmp_path: Path) -> Any:
    """Open two scans against one registry."""
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"telemetry": {"enabled": False}}
    ) as instance:

        def opened(*faults: Any) -> Together:
            return Together(bench, instance, bench.registry(size=300, script=Script(faults=faults)))

        yield opened


def asked(tick: Any) -> dict[str, str]:
    """What a tick of the joining sensor asks for: partition by analysis."""
    return {
        each.asset_selection[0].to_user_string(): each.partition_key for each in tick.run_requests
    }


@pytest.mark.long
def test_one_click_begins_all_and_the_analyses_follow_once(together: Callable[..., Any]) -> None:
    """One name, a run for each scan; the analyses wait for the last of them."""
    opened = together()
    clicked = opened.job("night_new_generation")
    launched = opened.launched(clicked)
    walked = opened.job("customers_generation", partition_key=NIGHT)
    early = opened.tick("night_join")
    opened.job("shop_generation", partition_key=NIGHT)
    late = opened.tick("night_join", early.cursor)
    ran = opened.analysis()
    facts = ran.told("analyses/both")

    assert opened.partitions == [NIGHT]
    assert launched == [("customers_generation", NIGHT), ("shop_generation", NIGHT)]
    assert opened.launched(walked) == []
    assert not early.run_requests
    assert asked(late) == {"analyses/both": NIGHT, "analyses/told": NIGHT}
    assert opened.tick("night_join", late.cursor).skip_message == "no receipt since the last look"
    assert facts["known"] == 300
    receipts = opened.workspace.receipts
    assert facts["scan_pipeline/receipt_ids"] == {
        name: receipts(name).read(NIGHT, trust=opened.workspace.trust).receipt_id for name in SCANS
    }
    assert (
        facts["scan_pipeline/coverage_status"],
        facts["scan_pipeline/conclusion_scope"],
    ) == ("verified", "all_records_in_snapshot")
    assert facts["scan_pipeline/skew_seconds"] > 0
    assert ran.told("analyses/told")["names"] == ["customers", "shop"]
    assert "Read together they are verified at most" in ran.told("analyses/told")["says"]
    again = opened.job("night_new_generation")
    assert opened.partitions == [NIGHT, again.output_for_node("night_name_generation")]


@pytest.mark.long
def test_member_that_began_again_is_joined_to_the_others_of_its_night(
    together: Callable[..., Any],
) -> None:
    """One expired and stands by its second attempt, the other by its first: they are one night."""
    opened = together(SnapshotExpired(page=2, last_attempt=1))
    opened.job("night_new_generation")
    expired = opened.job("customers_generation", partition_key=NIGHT)
    opened.job("shop_generation", partition_key=NIGHT)
    waiting = opened.tick("night_join")
    refused = opened.analysis()
    restart = opened.tick("customers_restart").run_requests[0].partition_key
    other = opened.tick("shop_restart")
    opened.instance.add_dynamic_partitions("night_generations", [restart])
    second = opened.job("customers_generation", partition_key=restart)
    joined = opened.tick("night_join", waiting.cursor)
    ran = opened.analysis(restart)
    rows = [each.data for each in ran.told("analyses/both")["scan_pipeline/generations"].records]

    assert (expired.success, second.success) == (False, True)
    assert not waiting.run_requests
    assert "snapshot expired" in refused.failures["analyses__both"]
    assert restart == f"{NIGHT}.2"
    assert "no attempt follows" in other.skip_message
    assert asked(joined) == {"analyses/both": restart, "analyses/told": restart}
    assert {each["scan"]: each["generation"] for each in rows} == {
        "customers": restart,
        "shop": NIGHT,
    }
    assert opened.analysis(NIGHT).success


def test_schedule_names_the_night_after_its_tick(together: Callable[..., Any], bench: Any) -> None:
    """Also where the run that names it begins late; what is there since comes before it."""
    opened = together()
    schedule = opened.definitions.get_repository_def().get_schedule_def("night_schedule")

    def tick(day: int) -> Any:
        moment = datetime(2026, 11, day, 2, tzinfo=UTC)
        context = dg.build_schedule_context(
            instance=opened.instance,
            scheduled_execution_time=moment,
            resources=opened.definitions.resources,
        )
        return schedule.evaluate_tick(context)

    missed, request = tick(28), tick(30).run_requests[0]
    opened.job("night_new_generation", tags=request.tags)
    opened.job("night_new_generation", tags=request.tags)

    assert opened.partitions == [NIGHT, "20261130T020001Z"]
    assert not missed.run_requests
    assert "one generation serves all that were missed" in missed.skip_message


def test_what_does_not_fit_is_refused_in_words(bench: Any) -> None:
    """An inventory is said once by each scan and each analysis, and they must agree."""

    def one(customers: VerifiedCollection) -> None: ...

    with pytest.raises(ContractError, match="expected `scan` alone, or `scans` and"):
        verified_asset(scans=SCANS)
    with pytest.raises(ContractError, match="expected \\['customers', 'shop'\\] of the former"):
        verified_asset(scans=SCANS, inventory="night")(one)
    with pytest.raises(ContractError, match="expected each once"):
        verified_asset(scans={"a": "customers", "b": "customers"}, inventory="night")
    faces = [Face(scan=name, settings=IN_IT) for name in SCANS]
    with pytest.raises(ContractError, match=r"0 2 \* \* \* UTC.*expected the same for all"):
        inventory_definitions("night", faces=faces, schedules=[Schedule(cron="0 2 * * *"), None])
    with pytest.raises(ContractError, match="expected scans whose files say"):
        inventory_definitions("night", faces=[Face(scan="customers")], schedules=[None])

    alone = verified_asset(scan="customers", key="alone")(one)
    place = bench.workspace(bench.registry())
    own = scan_definitions(bench.scan(), settings=IN_IT, workspace=lambda: place)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("customers_generations", [NIGHT])
        job = dg.Definitions(
            assets=[alone], resources=own.resources, executor=dg.in_process_executor
        ).resolve_implicit_global_asset_job_def()
        ran = Ran(
            job.execute_in_process(instance=instance, partition_key=NIGHT, raise_on_error=False)
        )
    assert "found inventory=None; expected 'night'" in ran.failures["alone"]


def test_component_finds_its_scans(shipped: Mapping[str, Any], edit: Callable[..., Any]) -> None:
    """The scan files say where they belong; the inventory's says its name and its schedule."""
    files = {
        name: (
            Scan,
            edit(shipped, {"name": name, "dagster": {"inventory": "night"}}),
        )
        for name in SCANS
    }
    files["alone"] = (Scan, edit(shipped, {"name": "alone"}))
    files["night"] = (Inventory, {"name": "night"})
    with create_defs_folder_sandbox() as sandbox:
        for path, (kind, attributes) in files.items():
            contents = {"type": f"scan_pipeline.components.{kind.__name__}"}
            sandbox.scaffold_component(
                component_cls=kind,
                defs_path=path,
                defs_yaml_contents={**contents, "attributes": dict(attributes)},
            )
        with sandbox.build_all_defs() as defs:
            repository = defs.get_repository_def()
            graph = defs.resolve_asset_graph()
            sets = {
                name: graph.get(dg.AssetKey([name, "receipt"])).partitions_def.name
                for name in (*SCANS, "alone")
            }
            sensors = {each.name for each in repository.sensor_defs}
            schedules = {each.name: each.job_name for each in repository.schedule_defs}

    assert sets == {
        "customers": "night_generations",
        "shop": "night_generations",
        "alone": "alone_generations",
    }
    assert {each for each in sensors if each.endswith(("_night", "_join"))} == {
        "customers_night",
        "shop_night",
        "night_join",
    }
    assert schedules == {
        "alone_schedule": "alone_generation",
        "night_schedule": "night_new_generation",
    }
