"""`launch` and `ui`: the persistent home, and one generation through Dagster."""

import json
import signal
import time
from pathlib import Path

import pytest
import yaml

from scan_pipeline.cli import dagster_commands
from scan_pipeline.cli.settings import Settings
from scan_pipeline.simulator.faults import Delayed
from scan_pipeline_tests.cli.conftest import CommandLine, registry

pytestmark = pytest.mark.long


def settings(project: CommandLine) -> Settings:
    return Settings(lake=None, folder=project.folder, environ={})


def test_launch_ends_with_the_receipt_of_a_new_generation(scan_pipeline: CommandLine) -> None:
    """In a process of its own: Dagster keeps handlers and connections for the life of one."""
    process = scan_pipeline.start("launch", "customers", "--json")
    out, errors = process.communicate(timeout=200)

    assert process.returncode == 0, errors
    receipt = json.loads(out)["receipt"]
    (listed,) = scan_pipeline.json("generations", "customers")
    assert (listed["generation"], listed["state"]) == (receipt["scan_generation"], "sealed")
    home = scan_pipeline.folder / "data" / "dagster_home"
    assert "enabled: false" in (home / "dagster.yaml").read_text(encoding="utf-8")
    assert (home / "storage").is_dir()


def test_scan_that_dagster_does_not_know_is_two(scan_pipeline: CommandLine) -> None:
    file = scan_pipeline.scan_file("http://127.0.0.1:9")
    process = scan_pipeline.start("launch", file)
    out, errors = process.communicate(timeout=200)

    assert (process.returncode, out) == (2, "")
    assert "found no job shop_generation" in errors


def test_home_that_is_there_keeps_its_settings(scan_pipeline: CommandLine) -> None:
    home = scan_pipeline.folder / "data" / "dagster_home"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text("mine: true\n", encoding="utf-8")

    places = dagster_commands.places(settings(scan_pipeline).project())

    assert (home / "dagster.yaml").read_text(encoding="utf-8") == "mine: true\n"
    assert places["DAGSTER_HOME"] == str(home)
    assert places["SCAN_PIPELINE_LAKE"] == str(scan_pipeline.lake)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["-m", "scan_pipeline.definitions"]),
        ({"workspace.yaml": ""}, ["-w", "workspace.yaml"]),
        ({"pyproject.toml": '[tool.dg.project]\nroot_module = "mine"'}, ["-m", "mine.definitions"]),
    ],
    ids=["shipped", "workspace", "dg project"],
)
def test_code_location_is_the_project_s_own(
    scan_pipeline: CommandLine, files: dict[str, str], expected: list[str]
) -> None:
    for name, text in files.items():
        path: Path = scan_pipeline.folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{before}\n{text}\n", encoding="utf-8")

    found = dagster_commands.code_location(settings(scan_pipeline))

    assert found == (scan_pipeline.folder, expected)


DEFINITIONS = """\
from pathlib import Path

import dagster as dg


@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


def mine(project: CommandLine, url: str) -> None:
    """Make the folder a project of `dg` whose package holds the scan `shop`."""
    folder = project.folder
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    table = '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "mine"\n'
    (folder / "pyproject.toml").write_text(f"{text}\n{table}", encoding="utf-8")
    package = folder / "mine"
    (package / "defs" / "shop").mkdir(parents=True)
    for init in (package, package / "defs", package / "defs" / "shop"):
        (init / "__init__.py").touch()
    (package / "definitions.py").write_text(DEFINITIONS, encoding="utf-8")
    attributes = yaml.safe_load(Path(project.scan_file(url)).read_text(encoding="utf-8"))
    component = {"type": "scan_pipeline.components.Scan", "attributes": attributes}
    (package / "defs" / "shop" / "defs.yaml").write_text(yaml.safe_dump(component), "utf-8")


def test_terminated_launch_leaves_a_receipt(scan_pipeline: CommandLine) -> None:
    """In a project of its own, whose package is found on the path."""
    with registry(Delayed(page=2, through="end", seconds=1), size=2_000) as url:
        mine(scan_pipeline, url)
        process = scan_pipeline.start(
            "launch", "shop", "--json", env={"PYTHONPATH": str(scan_pipeline.folder)}
        )
        while len(list(scan_pipeline.lake.glob("evidence/shop/pages/*/*.parquet"))) < 1:
            assert process.poll() is None, process.communicate()
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=100)

    assert process.returncode == 1, errors
    assert json.loads(out)["receipt"]["stop_reason"] == "cancelled"
