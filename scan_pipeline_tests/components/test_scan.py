"""The component: a scan file's attributes, read as every other reader reads them."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.scaffold.scaffold import NoParams, get_scaffolder
from dagster.components.testing import create_defs_folder_sandbox

from scan_pipeline.components.scaffolding import ScanScaffolder
from scan_pipeline.components.scan import Scan
from scan_pipeline.core.errors import ContractError
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline.sources.scan_file import read_documents

# Dagster's own loading warns of its own beta classes.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

Edit = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def keys_of(definitions: dg.Definitions) -> set[str]:
    graph = definitions.resolve_asset_graph()
    return {key.to_user_string() for key in graph.get_all_asset_keys()}


def load(attributes: Mapping[str, Any]) -> Scan:
    return Scan.from_attributes_dict(attributes=dict(attributes))


def test_attributes_become_assets_jobs_schedule_and_sensors(shipped: Mapping[str, Any]) -> None:
    """Everything a scan is in Dagster comes from its file."""
    defs = load(shipped).build_defs(dg.ComponentTree.for_test().load_context)
    repository = defs.get_repository_def()

    assert keys_of(defs) == {
        "customers/pages",
        "customers/records",
        "customers/reconciliation",
        "customers/receipt",
        "customers/maintenance",
        "customers/changes",
    }
    assert {job.name for job in repository.get_all_jobs()} >= {
        "customers_generation",
        "customers_new_generation",
        "customers_maintain",
    }
    assert [each.name for each in repository.schedule_defs] == ["customers_schedule"]
    assert {each.name: each.default_status.value for each in repository.sensor_defs} == {
        "customers_launch": "RUNNING",
        "customers_follow": "RUNNING",
        "customers_restart": "RUNNING",
        "customers_lake": "RUNNING",
        "customers_alerts": "RUNNING",
        # Dagster's own, which a project switches on: it asks for changes and analyses.
        "default_automation_condition_sensor": "STOPPED",
    }


def test_executor_is_left_to_the_project(shipped: Mapping[str, Any]) -> None:
    """In a project of their own, users' executors stand."""
    defs = load(shipped).build_defs(dg.ComponentTree.for_test().load_context)

    assert defs.executor is None
    own = dg.Definitions.merge(defs, dg.Definitions(executor=dg.in_process_executor))
    job = own.resolve_job_def("customers_generation")
    assert job.executor_def is dg.in_process_executor


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"contract.key": []}, "contract.key"),
        ({"source.url": ...}, "source.url"),
        ({"source.protocol": "carrier_pigeon"}, "carrier_pigeon"),
        ({"contract.surprise": 1}, "contract.surprise: unknown field"),
    ],
)
def test_wrong_facts_are_refused(
    shipped: Mapping[str, Any], edit: Edit, edits: Mapping[str, Any], told: str
) -> None:
    """The strict reading is the catalogue's: what was found, what was expected."""
    with pytest.raises(ScanFileError) as refused:
        load(edit(shipped, edits))

    assert told in str(refused.value)


def test_unknown_attribute_is_refused(shipped: Mapping[str, Any]) -> None:
    """A misspelt block would otherwise be a block that is not there."""
    with pytest.raises(ScanFileError, match="scheduled: unknown field; did you mean schedule"):
        load({**shipped, "scheduled": {}})


def test_dagster_block_places_the_assets(shipped: Mapping[str, Any]) -> None:
    """It is ours to read and never reaches the scan."""
    block = {"key_prefix": ["bronze"], "group": "intake", "owners": ["team:data"], "pool": "one"}
    placed, plain = load({**shipped, "dagster": block}), load(shipped)

    assert placed.scan == plain.scan
    defs = placed.build_defs(dg.ComponentTree.for_test().load_context)
    assert "bronze/customers/receipt" in keys_of(defs)


@pytest.mark.parametrize(
    "block", [{"prefix": "bronze"}, {"group": "a group"}, {"key_prefix": "bronze"}, {"pool": 1}]
)
def test_dagster_block_is_read_strictly(
    shipped: Mapping[str, Any], block: Mapping[str, Any]
) -> None:
    """Unknown fields and wrong types are refused, by name."""
    with pytest.raises(ContractError, match=f"dagster.{next(iter(block))}"):
        load({**shipped, "dagster": block})


def test_file_is_read_with_its_lines_and_without_templates(
    shipped: Mapping[str, Any], edit: Edit
) -> None:
    """Dagster would make None of an unset variable; the file's own reader refuses the template."""
    attributes = edit(shipped, {"source.url": "{{ env.NOWHERE }}"})
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=Scan,
            defs_path="customers",
            defs_yaml_contents={
                "type": "scan_pipeline.components.Scan",
                "attributes": attributes,
            },
        )
        with pytest.raises(ComponentTreeException) as refused, sandbox.build_all_defs():
            pass

    causes = [refused.value.__cause__, refused.value.__context__]
    told = " ".join(str(each) for each in causes)
    assert re.search(r"defs\.yaml:\d+: source\.url: found the expression", told)


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"sauce": {}, "source": ...}, "source: missing; expected the source's facts"),
        ({"schedul": {}}, "schedul: unknown field; did you mean schedule?"),
        ({"name": 5}, "name: found 5; expected a text"),
        ({"contract": []}, "contract: found a list; expected a mapping"),
        ({"dagster": {"prefix": "b"}}, "dagster.prefix: unknown field; did you mean key_prefix?"),
    ],
    ids=str,
)
def test_mistake_in_a_file_is_told_with_its_line_in_our_words(
    shipped: Mapping[str, Any], edit: Edit, edits: Mapping[str, Any], told: str
) -> None:
    """Also where Dagster's own reading of the attributes would have stopped before ours."""
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=Scan,
            defs_path="customers",
            defs_yaml_contents={
                "type": "scan_pipeline.components.Scan",
                "attributes": edit(shipped, edits),
            },
        )
        with pytest.raises(ComponentTreeException) as refused, sandbox.build_all_defs():
            pass

    said = str(refused.value.__cause__ or refused.value.__context__)
    assert re.search(rf"defs\.yaml:\d+: {re.escape(told)}", said), said


def test_modules_beside_a_scan_file_are_loaded_with_it(shipped: Mapping[str, Any]) -> None:
    """Dagster passes over them in a folder with a component file; an analysis stands there."""
    beside = "import dagster as dg\n\n@dg.asset\ndef beside() -> None: ...\n"
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=Scan,
            defs_path="customers",
            defs_yaml_contents={
                "type": "scan_pipeline.components.Scan",
                "attributes": dict(shipped),
            },
        )
        (Path(folder) / "audit.py").write_text(beside)
        with sandbox.build_all_defs() as defs:
            assert {"beside", "customers/receipt"} <= keys_of(defs)


def test_workspace_is_the_projects(shipped: Mapping[str, Any], tmp_path: Path) -> None:
    """Relative places are those of the project around the file, wherever the process runs."""
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=Scan,
            defs_path="customers",
            defs_yaml_contents={
                "type": "scan_pipeline.components.Scan",
                "attributes": dict(shipped),
            },
        )
        root = Path(sandbox.project_root)
        with (root / "pyproject.toml").open("a") as file:
            file.write('\n[tool.scan_pipeline]\nlake = "data/lake"\n')
        with sandbox.build_all_defs() as defs:
            assert defs.resources is not None
            place = defs.resources["scan_customers"].workspace.project
            assert Path(place.lake) == root / "data" / "lake"


def test_component_describes_itself() -> None:
    """`dg list components` shows what it makes and which attributes it takes."""
    fields = Scan.get_model_cls().model_json_schema()["properties"]

    assert {"name", "source", "contract", "schedule", "dagster"} <= fields.keys()
    assert "asset_check" in Scan.get_spec().produces
    assert "four assets" in (Scan.get_description() or "")


def test_post_processing_is_dagsters_own(shipped: Mapping[str, Any]) -> None:
    """Tags and the like come by the component file's own means."""
    document = {
        "type": "scan_pipeline.components.Scan",
        "attributes": dict(shipped),
        "post_processing": {"assets": [{"target": "*", "attributes": {"tags": {"tier": "one"}}}]},
    }
    assert yaml.safe_load(yaml.safe_dump(document)) == document
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=Scan, defs_path="customers", defs_yaml_contents=document
        )
        with sandbox.build_all_defs() as defs:
            graph = defs.resolve_asset_graph()
            tags = graph.get(dg.AssetKey(["customers", "receipt"])).tags
            assert tags["tier"] == "one"


def test_scaffolded_scan_loads_as_it_stands() -> None:
    """By Dagster's own means, under the name of its folder; a placeholder would load nothing."""
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(component_cls=Scan, defs_path="my-shop")
        text = (Path(folder) / "defs.yaml").read_text(encoding="utf-8")
        with sandbox.build_all_defs() as defs:
            assert "my_shop/receipt" in keys_of(defs)

    assert "simulator://registry" in text


def test_second_scan_of_a_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    def scaffold(target: Path, *, append: bool = False) -> None:
        scaffolder = get_scaffolder(Scan)
        assert isinstance(scaffolder, ScanScaffolder)
        scaffolder.scaffold(
            dg.ScaffoldRequest(
                type_name="scan_pipeline.components.Scan",
                target_path=target,
                scaffold_format="yaml",
                project_root=None,
                params=NoParams(),
                append=append,
            )
        )

    folder = tmp_path / "shop"
    folder.mkdir()
    scaffold(folder)
    scaffold(folder / "defs.yaml", append=True)

    assert [each.parse().name for each in read_documents(folder / "defs.yaml")] == [
        "shop",
        "shop_2",
    ]
    with pytest.raises(ContractError, match="is there already"):
        scaffold(folder)


def test_scan_is_not_scaffolded_in_python() -> None:
    with create_defs_folder_sandbox() as sandbox, pytest.raises(ContractError, match="yaml"):
        sandbox.scaffold_component(
            component_cls=Scan, defs_path="my_shop", scaffold_format="python"
        )
