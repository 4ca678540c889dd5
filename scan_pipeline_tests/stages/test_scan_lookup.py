"""What a name means: a scan file below the project's defs, found without importing anything."""

from pathlib import Path

import pytest

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.stages.scan_lookup import defs_folder, find_scan, shipped_scan

COMPONENT = """\
type: scan_pipeline.components.Scan
attributes:
  name: {name}
  source: {{}}
  contract: {{}}
"""


def dg_project(folder: Path, *, inside: str = "shop/defs", table: str = "") -> Path:
    """Make a project whose package cannot be imported; return its defs folder."""
    table = table or 'root_module = "shop"'
    (folder / "pyproject.toml").write_text(f"[tool.dg.project]\n{table}\n", encoding="utf-8")
    defs = folder / inside
    defs.mkdir(parents=True)
    (defs.parent / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    return defs


def add(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "defs.yaml").write_text(COMPONENT.format(name=name), encoding="utf-8")


def test_name_is_that_of_the_attributes_wherever_the_file_lies(tmp_path: Path) -> None:
    defs = dg_project(tmp_path)
    add(defs / "deep" / "down", "orders")

    found = find_scan("orders", folder=tmp_path / "shop")

    assert found.path == defs / "deep" / "down" / "defs.yaml"


@pytest.mark.parametrize(
    ("inside", "table"),
    [
        ("src/shop/defs", 'root_module = "shop"'),
        ("shop/scans", 'root_module = "shop"\ndefs_module = "shop.scans"'),
    ],
)
def test_defs_folder_is_the_one_the_project_names(tmp_path: Path, inside: str, table: str) -> None:
    assert defs_folder(tmp_path) != dg_project(tmp_path, inside=inside, table=table)
    assert defs_folder(tmp_path) == tmp_path / inside


def test_without_a_project_the_shipped_scans_are_meant(tmp_path: Path) -> None:
    assert find_scan("customers", folder=tmp_path).path == shipped_scan("customers").path


def test_project_does_not_fall_back_to_shipped_scans(tmp_path: Path) -> None:
    add(dg_project(tmp_path) / "orders", "orders")

    with pytest.raises(ContractError, match="expected one of: orders"):
        find_scan("customers", folder=tmp_path)


def test_one_name_in_two_files_is_refused(tmp_path: Path) -> None:
    defs = dg_project(tmp_path)
    for folder in ("a", "b"):
        add(defs / folder, "orders")

    with pytest.raises(ContractError, match="expected one file"):
        find_scan("orders", folder=tmp_path)


def test_broken_neighbour_hides_no_scan_and_is_told_where_one_is_missing(tmp_path: Path) -> None:
    defs = dg_project(tmp_path)
    add(defs / "orders", "orders")
    (defs / "defs.yaml").write_text("a: [", encoding="utf-8")

    assert find_scan("orders", folder=tmp_path).name == "orders"
    with pytest.raises(ContractError, match="Not readable: "):
        find_scan("people", folder=tmp_path)


@pytest.mark.parametrize("text", ["[tool.dg.project", '[tool.dg.project]\nroot_module = "gone"'])
def test_project_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"pyproject\.toml"):
        defs_folder(tmp_path)
