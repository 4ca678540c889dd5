"""The files of the documentation that are made from the code.

`python -m scan_pipeline_tests.docs.generated` writes them again; a test says whether they are
current. Every extra must be installed, since every protocol is looked into.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from scan_pipeline.stages.beginning.file_schema import scan_file_schema
from scan_pipeline.stages.beginning.schema_line import SCHEMA_FILE
from scan_pipeline_tests.docs.reference import command_reference, scan_file_reference

ROOT = Path(__file__).parents[2]


@cache
def schema() -> str:
    """Return the JSON Schema of a scan file."""
    return json.dumps(scan_file_schema(), indent=1, ensure_ascii=False) + "\n"


FILES: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "reference" / "scan-file.md": scan_file_reference,
    ROOT / "docs" / "reference" / "cli.md": command_reference,
    ROOT / "scan_pipeline" / "stages" / "beginning" / SCHEMA_FILE: schema,
}
"""Every generated file, and what makes its text."""


def write() -> None:
    """Write every generated file."""
    for path, make in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    write()
