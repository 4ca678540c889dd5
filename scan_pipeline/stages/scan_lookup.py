"""From what was typed to a scan file: a path is read, a name is looked up in the project's defs.

Nothing of the project is imported: what a name means is found by reading its YAML files.
"""

import importlib.util
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.sources.scan_file import ScanDocument, read_documents, read_scan_file
from scan_pipeline.store.lake import check_name
from scan_pipeline.store.project import is_file

DEFS_FILE: Final = "defs.yaml"
"""Name of a component file of Dagster."""

SHIPPED_DEFS: Final = "scan_pipeline.defs"


class UnknownScanError(ContractError):
    """No scan of that name is to be found."""


def find_scan(named: str, *, folder: Path) -> ScanDocument:
    """Return the scan document of a name or file.

    Args:
        named: as typed.
        folder: where the search for the nearest project begins.

    Raises:
        UnknownScanError: there is no such scan.
        ContractError: there are two.
    """
    if is_file(named):
        return read_scan_file(Path(named))
    name, defs = check_name(named), defs_folder(folder)
    known, broken = _known(defs)
    found = [each for each in known if each.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        files = " and ".join(str(each.path) for each in found)
        raise ContractError(f"the scan {name} stands in {files}; expected one file")
    names = ", ".join(sorted(each.name for each in known if each.name)) or "none"
    told = f". Not readable: {broken[0]}" if broken else ""
    raise UnknownScanError(
        f"found no scan {name} below {defs}; expected one of: {names}; or name its file{told}"
    )


def scan_names(folder: Path) -> list[str]:
    """Return the names of the scans of the nearest project, in order."""
    known, _ = _known(defs_folder(folder))
    return sorted(each.name for each in known if each.name)


def scan_name(path: Path) -> str:
    """Return the name of the scan in a file.

    Raises:
        ContractError: the file cannot be read or names no scan.
    """
    name = read_scan_file(path).name
    if name is None:
        raise ContractError(f"{path} gives its scan no name; expected one, as text")
    return check_name(name)


def shipped_scan(name: str) -> ScanDocument:
    """Return a scan that ships with this package."""
    known, _ = _known(_package_folder(SHIPPED_DEFS))
    return next(each for each in known if each.name == name)


def defs_folder(folder: Path) -> Path:
    """Return the defs folder of the nearest project of Dagster's `dg`, else the shipped one.

    Raises:
        ConfigurationError: a pyproject.toml on the way cannot be read, or names no folder.
    """
    root, table = _nearest_project(folder)
    if table is None:
        return _package_folder(SHIPPED_DEFS)
    module = table.get("defs_module") or f"{table.get('root_module')}.defs"
    return _module_folder(str(module), root=root)


def dg_project(folder: Path) -> Mapping[str, Any] | None:
    """Return `[tool.dg.project]` of the nearest project that has one; errors as `defs_folder`."""
    return _nearest_project(folder)[1]


def _known(defs: Path) -> tuple[list[ScanDocument], list[str]]:
    """Return the scans below a folder, and what is wrong with files that cannot be read."""
    known, broken = list[ScanDocument](), list[str]()
    for path in sorted(defs.rglob(DEFS_FILE)):
        try:
            known += read_documents(path)
        except ContractError as error:
            broken.append(str(error))
    return known, broken


def _nearest_project(folder: Path) -> tuple[Path, Mapping[str, Any] | None]:
    for parent in (folder, *folder.parents):
        pyproject = parent / "pyproject.toml"
        try:
            content = tomllib.loads(pyproject.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{pyproject} cannot be read: {error}; expected TOML"
            ) from error
        table = content.get("tool", {}).get("dg", {}).get("project")
        if table is not None:
            return parent, table
    return folder, None


def _module_folder(module: str, *, root: Path) -> Path:
    """Return a module's folder: in the project's own tree, else where it is installed."""
    inside = Path(*module.split("."))
    candidates = [root / inside, root / "src" / inside, *_installed(module)]
    found = next((each for each in candidates if each.is_dir()), None)
    if found is None:
        raise ConfigurationError(
            f"{root / 'pyproject.toml'} names the defs module {module}; expected its folder at "
            f"{root / inside} or {root / 'src' / inside}"
        )
    return found


def _package_folder(module: str) -> Path:
    return next(_installed(module))


def _installed(module: str) -> Iterator[Path]:
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)  # of the top alone: finding a submodule imports parents
    for place in (spec and spec.submodule_search_locations) or ():
        yield Path(place, *rest)
