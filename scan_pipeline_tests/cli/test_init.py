"""`init`: a project that runs at once, whose files and keys are made once and never again."""

import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from scan_pipeline_tests.cli.conftest import OURS, CommandLine

NOWHERE = "http://127.0.0.1:9/v1/things"
SAMPLE = "simulator://registry/v1/customers"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A new project with a drafted scan; tests read it and change nothing."""
    folder = tmp_path_factory.mktemp("begun") / "My-Shop"
    folder.mkdir()
    project = CommandLine(folder)
    result = project("init", "--from", SAMPLE, "--name", "drafted")
    assert result.exit_code == 0, result.output
    return project


def content(folder: Path) -> Mapping[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def modes(folder: Path) -> Iterator[int]:
    yield from (stat.S_IMODE(each.stat().st_mode) for each in (folder, *folder.iterdir()))


def test_scans_of_a_new_project_are_known_by_name_and_right(begun: CommandLine) -> None:
    """The sample, and the drafted one beside it, both as files of Dagster components."""
    for scan in ("customers", "drafted"):
        file = begun.folder / "my_shop" / "defs" / scan / "defs.yaml"
        assert begun("check", str(file)).exit_code == 0
        assert "found no lake" in begun("receipt", scan).stderr

    table = tomllib.loads((begun.folder / "pyproject.toml").read_text("utf-8"))["tool"]["dg"]
    assert table["project"]["code_location_target_module"] == "my_shop.definitions"


def test_keys_are_made_for_this_user_alone_and_are_not_for_a_commit(begun: CommandLine) -> None:
    keys = begun.folder / "data" / "keys"

    assert {each.name for each in keys.iterdir()} == {
        ".gitignore",
        "signing_key.pem",
        "customers.data_key.json",
        "drafted.data_key.json",
    }
    assert {*modes(keys)} == {0o700, 0o600}
    assert "*" in (begun.folder / "data" / ".gitignore").read_text("utf-8").splitlines()
    assert (begun.folder / "scan_pipeline_trust.json").is_file()


def test_second_init_changes_nothing(begun: CommandLine) -> None:
    before = content(begun.folder)

    answer = begun.json("init")

    assert content(begun.folder) == before
    assert (answer["written"], answer["signing_key_begun"], answer["data_keys_begun"]) == (
        [],
        False,
        [],
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("pyproject.toml", 2), ("workspace.yaml", 2), ("README.md", 0), (".gitignore", 0)],
)
def test_nothing_is_written_over(tmp_path: Path, name: str, code: int) -> None:
    """A README and ignored files are a folder's own; what the project rests on must be new."""
    (tmp_path / name).write_text("", encoding="utf-8")
    before = content(tmp_path)

    result = CommandLine(tmp_path)("init")

    assert result.exit_code == code, result.output
    assert (tmp_path / name).read_bytes() == b""
    assert (content(tmp_path) == before) == (code == 2)
    if name == "pyproject.toml":
        assert "[tool.scan_pipeline]" in result.stderr


def test_init_that_broke_off_is_completed_by_the_next(tmp_path: Path) -> None:
    """What it wrote is there already; the file that makes a folder a project comes last."""
    project = CommandLine(tmp_path)
    assert project("init").exit_code == 0
    whole = content(tmp_path)
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "workspace.yaml").unlink()

    result = project("init")

    assert result.exit_code == 0, result.output
    assert content(tmp_path) == whole


def test_draft_that_cannot_be_made_leaves_no_project_behind(tmp_path: Path) -> None:
    result = CommandLine(tmp_path)("init", "new", "--from", NOWHERE)

    assert (result.exit_code, [*tmp_path.iterdir()]) == (3, [])


def test_init_begins_the_keys_of_a_remote_lake(tmp_path: Path) -> None:
    """A run never does: it cannot see what a fresh key would have to vouch for."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.scan_pipeline]\nlake = "s3://bucket/lake"\nkeys = "keys"\ntrust = "trust.json"\n',
        encoding="utf-8",
    )
    project = CommandLine(tmp_path)

    answer = project.json("init", "--scan", "shop")

    assert (answer["signing_key_begun"], answer["data_keys_begun"]) == (True, ["shop"])
    assert answer["fingerprint"].startswith("sha256:")
    assert project.json("init", "--scan", "shop")["data_keys_begun"] == []


def test_key_that_is_lost_is_not_begun_again(begun: CommandLine, tmp_path: Path) -> None:
    """The trust file lists one already: a new key would hide that the old one is gone."""
    (tmp_path / "pyproject.toml").write_bytes((begun.folder / "pyproject.toml").read_bytes())
    trust = begun.folder / "scan_pipeline_trust.json"
    (tmp_path / "scan_pipeline_trust.json").write_bytes(trust.read_bytes())

    result = CommandLine(tmp_path)("init")

    assert result.exit_code == 3
    assert "restore it there" in result.stderr


@pytest.mark.long
def test_new_project_runs_by_command_line_and_dagster(tmp_path: Path) -> None:
    """Nothing is installed of it: run, read, Dagster's own validation, and a run by Dagster."""
    project = CommandLine(tmp_path / "shop")

    def call(*arguments: str) -> str:
        process = CommandLine(tmp_path).start("--project", str(project.folder), *arguments)
        out, errors = process.communicate(timeout=200)
        assert process.returncode == 0, out + errors
        return out + errors

    assert CommandLine(tmp_path)("init", "shop").exit_code == 0
    assert "verified" in call("run", "customers")
    assert "customer-1 " in call("read", "customers", "--limit", "1")
    assert "Validation successful for code location shop" in validated(project.folder)
    assert "verified" in call("launch", "customers")
    assert [each["accepted"] for each in project.json("generations", "customers")] == [True, True]


def validated(folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    command = [sys.executable, "-m", "dagster", "definitions", "validate"]
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
