"""`dg scaffold defs scan_pipeline.components.Scan NAME`: a scan file that runs as it stands."""

import re
from itertools import count
from pathlib import Path

import dagster as dg

from scan_pipeline.core.errors import ContractError
from scan_pipeline.sources.scan_file import read_documents
from scan_pipeline.stages.beginning.project_files import component_file, sample_scan
from scan_pipeline.stages.beginning.schema_line import SCHEMA_FILE, line_to, shipped_schema


class ScanScaffolder(dg.Scaffolder):
    """Writes a scan of the sample registry, to be changed into one's own line by line.

    A placeholder would keep Dagster from loading any scan of the project until it was filled in.
    """

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        """Write `defs.yaml`, or a further document of the file that was named.

        Raises:
            ContractError: the scan was asked for in Python, or its file is there already.
        """
        if request.scaffold_format != "yaml":
            raise ContractError(
                "found the format python; expected yaml: a scan is a file of facts. What needs "
                "code is an adapter, which the file names"
            )
        if request.append:
            file, before = request.target_path, "---\n"
            name = _unused(scan_name_of(file.parent.name), file)
        else:
            file, before = request.target_path / "defs.yaml", ""
            name = scan_name_of(request.target_path.name)
        text = component_file(sample_scan(name), line=_line(file.parent, request.project_root))
        try:
            with file.open("a" if request.append else "x", encoding="utf-8") as written:
                written.write(f"{before}{text}")
        except FileExistsError as error:
            raise ContractError(f"{file} is there already; expected another NAME") from error


def _unused(name: str, file: Path) -> str:
    """Return a name that no scan of a file has: this one, or with a number behind it."""
    taken = {each.name for each in read_documents(file)}
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _line(folder: Path, root: Path | None) -> str:
    """Return the line for editors; the project gets the schema it names where it has none."""
    if root is None:
        return ""
    schema = root / SCHEMA_FILE
    if not schema.exists():
        schema.write_text(shipped_schema(), encoding="utf-8")
    return line_to(schema, folder=folder)


def scan_name_of(folder: str) -> str:
    """Return the name of a scan for the folder that it is scaffolded in."""
    cleaned = re.sub(r"[^a-z0-9]+", "_", folder.lower()).strip("_")
    return cleaned if re.match(r"[a-z]", cleaned) else f"scan_{cleaned}".rstrip("_")
