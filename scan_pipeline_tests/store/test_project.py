"""Where a project keeps its things."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.store.project import Project, create_once, find_project, lies_in_lake

TABLE = """
[tool.scan_pipeline]
lake = "data/lake"
keys = "data/keys"
trust = "data/trust.json"
dagster_home = "data/home"
"""


def with_table(folder: Path, text: str = TABLE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_table_of_the_nearest_pyproject_is_relative_to_its_file(tmp_path: Path) -> None:
    root = with_table(tmp_path / "project")
    below = root / "a" / "b"
    below.mkdir(parents=True)

    expected = Project(
        lake=str(root / "data/lake"),
        keys=root / "data/keys",
        trust=root / "data/trust.json",
        dagster_home=root / "data/home",
        root=root,
    )
    assert expected == find_project(cwd=below, environ={})


def test_argument_comes_before_variable_and_variable_before_table(tmp_path: Path) -> None:
    root = with_table(tmp_path)
    environ = {"SCAN_PIPELINE_LAKE": "from_variable", "DAGSTER_HOME": "/srv/home"}

    by_argument = find_project(lake="from_argument", cwd=root, environ=environ)
    by_variable = find_project(cwd=root, environ=environ)

    assert by_argument.lake == str(root / "from_argument")
    assert by_variable.lake == str(root / "from_variable")
    assert by_variable.keys == root / "data/keys"  # a lake named elsewhere leaves the keys
    assert by_variable.dagster_home == Path("/srv/home")


def test_a_pyproject_without_the_table_is_passed_over(tmp_path: Path) -> None:
    root = with_table(tmp_path / "workspace")
    member = with_table(root / "member", '[project]\nname = "member"\n')

    assert find_project(cwd=member, environ={}).root == root


def test_nothing_named_is_refused_and_says_the_three_ways(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        find_project(cwd=tmp_path, environ={})

    for way in ("argument", "SCAN_PIPELINE_LAKE", "[tool.scan_pipeline]"):
        assert way in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_local_lake_alone_has_its_things_beside_it(tmp_path: Path) -> None:
    project = find_project(lake="x/lake", cwd=tmp_path, environ={})

    assert project.keys == tmp_path / "x/keys"
    assert project.trust == tmp_path / "x/scan_pipeline_trust.json"
    assert project.dagster_home == tmp_path / "x/dagster_home"
    assert project.local_lake == tmp_path / "x/lake"
    assert project.root is None


@pytest.mark.parametrize("address", ["s3://bucket/lake", "az://container/lake", "gs://bucket"])
def test_a_remote_lake_needs_named_keys_and_trust(tmp_path: Path, address: str) -> None:
    keys = {"SCAN_PIPELINE_KEYS": "/srv/secret/keys"}
    trust = {"SCAN_PIPELINE_TRUST": "/etc/trust.json"}

    for environ in ({}, keys, trust):
        with pytest.raises(ConfigurationError, match="is remote and nothing names"):
            find_project(lake=address, cwd=tmp_path, environ=environ)

    project = find_project(lake=f"{address}/", cwd=tmp_path, environ=keys | trust)
    assert project.lake == address
    assert project.local_lake is None
    assert project.dagster_home == Path("/srv/secret/dagster_home")


@pytest.mark.parametrize(
    "address", ["file:///lake", "http://host/lake", "s3://", "s3:///", "~/lake"]
)
def test_other_addresses_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        find_project(lake=address, cwd=tmp_path, environ={})


@pytest.mark.parametrize(
    "variable",
    ["SCAN_PIPELINE_LAKE", "SCAN_PIPELINE_KEYS", "SCAN_PIPELINE_TRUST", "DAGSTER_HOME"],
)
def test_a_variable_set_to_nothing_is_not_taken_for_unset(tmp_path: Path, variable: str) -> None:
    root = with_table(tmp_path)

    with pytest.raises(ConfigurationError, match=f"{variable} is set but empty"):
        find_project(cwd=root, environ={variable: " "})


@pytest.mark.parametrize("name", ["keys", "trust"])
def test_keys_and_trust_inside_the_lake_are_refused(tmp_path: Path, name: str) -> None:
    variable = f"SCAN_PIPELINE_{name.upper()}"

    with pytest.raises(ConfigurationError, match=f"`{name}` is .* inside the lake"):
        find_project(lake="lake", cwd=tmp_path, environ={variable: "lake/here"})


def test_a_link_into_the_lake_is_inside_it(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "lake")

    assert lies_in_lake(tmp_path / "linked" / "trust.json", lake=str(tmp_path / "lake"))
    assert not lies_in_lake(tmp_path / "lake2" / "trust.json", lake=str(tmp_path / "lake"))
    assert not lies_in_lake(tmp_path / "trust.json", lake="s3://bucket/lake")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[tool.scan_pipeline]\nlakes = "x"\n', "lakes"),
        ("[tool.scan_pipeline]\nlake = 3\n", "lake"),
        ('[tool.scan_pipeline]\nlake = ""\n', "lake"),
        ("tool.scan_pipeline = 3\n", "whole"),
        ("[tool.scan_pipeline\n", "expected TOML"),
        ('[tool.scan_pipeline]\nlake = "lake"\nkeys = "s3://bucket/keys"\n', "local path"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, table: str, told: str) -> None:
    root = with_table(tmp_path, table)

    with pytest.raises(ConfigurationError, match=told) as refused:
        find_project(cwd=root, environ={})
    assert "pyproject.toml" in str(refused.value)


def test_created_once_is_whole_has_its_mode_and_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        assert create_once(path, data=b"first", mode=0o644)
    finally:
        os.umask(before)

    assert not create_once(path, data=b"second", mode=0o600)
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot create"):
        create_once(tmp_path / "none" / "file", data=b"", mode=0o600)


@pytest.mark.parametrize(
    "module",
    [
        "scan_pipeline.store.project",
        "scan_pipeline.store.keys",
        "scan_pipeline.store.trust",
        "scan_pipeline.store.sealing",
        "scan_pipeline.sources.secrets",
    ],
)
def test_reading_a_receipt_stays_light(module: str) -> None:
    heavy = {"dagster", "polars", "pandera", "pyarrow", "deltalake"}
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "scan_pipeline" in ran.stdout.split()
    assert heavy & set(ran.stdout.split()) == set()
