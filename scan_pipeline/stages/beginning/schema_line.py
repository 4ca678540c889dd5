"""The line by which an editor finds the schema of a scan file, and the file that it names.

`# yaml-language-server: $schema=PATH`, relative to the file it stands in, is read by the YAML
server of VS Code, Neovim and others (https://npmjs.com/package/yaml-language-server, an excerpt
read 2026-11-30: "JSON Schema 7 and below"). A project has a copy of its own, so that the line holds
on every machine.
"""

import os
from importlib.resources import files
from pathlib import Path
from typing import Final

SCHEMA_FILE: Final = "scan-file.schema.json"
"""Name of the schema's file, in a project and beside this module."""


def shipped_schema() -> str:
    """Return the schema's text, as it was made from the code of this version."""
    return (files("scan_pipeline.stages.beginning") / SCHEMA_FILE).read_text("utf-8")


def schema_line(file: Path) -> str:
    """Return the line for a scan file, None of it where no folder around the file has a schema."""
    folder = file.absolute().parent
    for each in (folder, *folder.parents):
        if (each / SCHEMA_FILE).is_file():
            return line_to(each / SCHEMA_FILE, folder=folder)
    return ""


def line_to(schema: Path, *, folder: Path) -> str:
    """Return the line that names a schema, for a file in a folder."""
    named = Path(os.path.relpath(schema, folder)).as_posix()
    return f"# yaml-language-server: $schema={named}\n"
