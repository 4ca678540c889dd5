"""The wheel in a Dagster project that exists already: its own names, its own executor, no demo."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]

PYPROJECT = """\
[project]
name = "warehouse"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["dagster", "scan-pipeline"]

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "warehouse"
registry_modules = ["warehouse.components.*"]

[tool.scan_pipeline]
lake = "lake"
"""

DEFINITIONS = """\
from pathlib import Path

import dagster as dg

@dg.asset
def orders() -> None: ...

@dg.definitions
def defs():
    found = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    own = dg.Definitions(assets=[orders], executor=dg.multiprocess_executor)
    return dg.Definitions.merge(found, own)
"""

PLACED = """
  dagster: {key_prefix: [bronze], group: intake, owners: ["team:data"], pool: registry}
"""

ANALYSIS = """\
import dagster as dg

from scan_pipeline.components import verified_asset
from scan_pipeline.stages.unlock import VerifiedCollection

@verified_asset(scan="customers", scan_key_prefix=["bronze"], key=["gold", "customers"])
def counted(customers: VerifiedCollection) -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"rows": customers.frame().collect().height})
"""

SHOW = """\
import json
from warehouse.definitions import defs
found = defs()
graph = found.resolve_asset_graph()
keys = sorted(key.to_user_string() for key in graph.get_all_asset_keys())
path = ["bronze", "customers", "receipt"]
receipt = next(each for each in graph.asset_nodes if each.key.path == path)
job = found.resolve_job_def("customers_generation")
print(json.dumps({
    "keys": keys, "group": receipt.group_name, "pools": sorted(receipt.pools or []),
    "owners": list(receipt.owners), "executor": job.executor_def.name,
    "from": __import__("scan_pipeline").__file__,
}))
"""

DG = "from dagster_dg_cli.cli import main; main()"
OURS = "from scan_pipeline.cli.main import main; main()"

Call = Callable[..., str]


def checked(command: list[str], *, folder: Path) -> str:
    """Run a command in surroundings that name no place of ours, and return its stdout."""
    ours = ("PYTHONPATH", "DAGSTER_HOME", "VIRTUAL_ENV")
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith("SCAN_PIPELINE_")
    }
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel as its own, and the packages that the tests run on behind it.

    The checkout is not among them: a path file beside an installed package is not followed.
    """
    folder = tmp_path_factory.mktemp("wheel")
    tool = Path(sys.executable).with_name("uv")
    if not tool.is_file():
        if os.environ.get("CI"):
            pytest.fail("found no uv beside the interpreter; expected it in CI")
        pytest.skip("no uv beside the interpreter: pip install uv")
    uv = str(tool)
    # The build back end comes from the index, or from the cache of an earlier build.
    checked([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder)], folder=ROOT)
    (wheel,) = folder.glob("*.whl")
    checked([uv, "venv", "--quiet", "--python", sys.executable, "env"], folder=folder)
    found = folder / "env" / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(found), "--no-deps"]
    checked([*install, "--offline", str(wheel)], folder=folder)
    place = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(checked([str(found), "-c", place], folder=folder).strip())
    (site / "behind.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def warehouse(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Call]:
    """A project as `create-dagster` lays it out, into which a scan is scaffolded and placed."""
    folder = tmp_path_factory.mktemp("warehouse")
    package = folder / "src" / "warehouse"
    for each in (package, package / "defs", package / "components"):
        each.mkdir(parents=True)
        (each / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (package / "definitions.py").write_text(DEFINITIONS, encoding="utf-8")
    site = next((python.parents[1] / "lib").glob("python*/site-packages"))
    (site / "warehouse.pth").write_text(f"{folder / 'src'}\n", encoding="utf-8")

    def call(program: str, *arguments: str) -> str:
        return checked([str(python), "-c", program, *arguments], folder=folder)

    call(DG, "scaffold", "defs", "scan_pipeline.components.Scan", "customers")
    scan = package / "defs" / "customers"
    with (scan / "defs.yaml").open("a", encoding="utf-8") as file:
        file.write(PLACED)
    (scan / "counted.py").write_text(ANALYSIS, encoding="utf-8")
    return folder, call


def test_scan_takes_the_place_that_its_project_gives_it(warehouse: tuple[Path, Call]) -> None:
    _, call = warehouse

    shown = json.loads(call(SHOW))

    assert "site-packages" in shown.pop("from")  # the wheel, and not the checkout
    keys = {tuple(each.split("/")) for each in shown.pop("keys")}
    scanned = {each[2] for each in keys if each[:2] == ("bronze", "customers")}
    others = {each for each in keys if each[0] != "bronze"}
    assert scanned >= {"pages", "records", "reconciliation", "receipt"}
    assert others == {("gold", "customers"), ("orders",)}  # and none of what ships as a demo
    assert shown == {
        "group": "intake",
        "pools": ["registry"],
        "owners": ["team:data"],
        "executor": "multiprocess",
    }


def test_scan_runs_there_by_dagster_and_by_command_line(warehouse: tuple[Path, Call]) -> None:
    """Dagster's own checks of the project pass too; the lake is where the project says."""
    folder, call = warehouse

    assert "scan_pipeline.components.Scan" in call(DG, "list", "components")
    call(DG, "check", "defs")
    launched = json.loads(call(OURS, "launch", "customers", "--json"))
    read = call(OURS, "read", "customers", "--limit", "1", "--format", "csv")

    assert launched["receipt"]["coverage_status"] == "verified"
    assert launched["path"].startswith(str(folder / "lake"))
    assert "customer-1," in read
