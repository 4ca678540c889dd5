"""The files of a new project: their places, and their texts from the templates beside this module.

The layout is that of `create-dagster` without its `src` (dagster 1.13): a package with a lazy
`definitions.py` and a `defs` folder, found by Dagster from the project's folder, installed or not.
"""

import builtins
import importlib.util
import json
import keyword
import re
import textwrap
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from scan_pipeline.stages.beginning.schema_line import SCHEMA_FILE, line_to, shipped_schema

COMPONENT: Final = "scan_pipeline.components.Scan"
"""The type of a scan in a component file."""

SAMPLE: Final = "customers"
"""Name of the sample scan."""

OFTEN_THERE: Final = ("README.md", ".gitignore")
"""Files that a folder may hold already and keep; nothing rests on them."""

_TEMPLATES: Final = files("scan_pipeline.stages.beginning") / "project"


def project_texts(package: str, *, lake: str, sample: str = SAMPLE) -> dict[str, str]:
    """Return the files of a new project by their path below its folder.

    Args:
        package: name of its Python package.
        lake: where its lake will be, as its pyproject.toml names it.
        sample: name of the sample scan.
    """
    told = {
        "package": package,
        "distribution": package.replace("_", "-"),
        "lake": json.dumps(lake, ensure_ascii=False),
        "scan": sample,
    }
    scan = f"{package}/defs/{sample}"
    templates = {
        "pyproject.toml": "pyproject.toml",
        "workspace.yaml": "workspace.yaml",
        "README.md": "README.md",
        ".gitignore": "gitignore",
        "data/.gitignore": "data.gitignore",
        f"{package}/definitions.py": "definitions.py",
        f"{scan}/by_schema_version.py": "sample_analysis.py",
    }
    texts = {path: _text(template, told) for path, template in templates.items()}
    for folder, says in (
        (package, "Scans whose completeness is proven."),
        (f"{package}/defs", "The scans of this project, a folder each."),
        (scan, "The sample scan, and what is made of its records."),
    ):
        texts[f"{folder}/__init__.py"] = f'"""{says}"""\n'
    texts[SCHEMA_FILE] = shipped_schema()
    here = Path(defs_file(package, sample))
    texts[str(here)] = component_file(
        sample_scan(sample), line=line_to(Path(SCHEMA_FILE), folder=here.parent)
    )
    return dict(sorted(texts.items()))


def defs_file(package: str, scan: str) -> str:
    """Return where a project keeps the file of a scan, below its folder."""
    return f"{package}/defs/{scan}/defs.yaml"


def sample_scan(name: str) -> str:
    """Return a scan file that runs at once: the sample registry's customers."""
    return _text("sample_scan.yaml", {"scan": name})


def component_file(scan: str, *, line: str = "") -> str:
    """Return a scan file's text as the file of a Dagster component.

    Args:
        scan: the text.
        line: what stands above it, for editors.
    """
    return f"{line}type: {COMPONENT}\n\nattributes:\n{textwrap.indent(scan, '  ')}"


def package_in(folder: Path) -> str:
    """Return a package name for a project's folder: its own, or one that hides nothing."""
    cleaned = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")
    name = cleaned if re.match(r"[a-z]", cleaned) else f"scans_{cleaned}".rstrip("_")
    if (folder / name / "__init__.py").is_file():
        return name
    taken = keyword.iskeyword(name) or hasattr(builtins, name) or name in ("tests", "data")
    return f"{name}_scans" if taken or _is_installed(name) else name


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # a module that says nothing of where it came from
        return True


def _text(template: str, told: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{template}.tmpl").read_text("utf-8")
    return Template(text).substitute(told)
