"""A newcomer's first hour: a project whose drafted scan is of a server nobody here made."""

from pathlib import Path

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine
from scan_pipeline_tests.real.conftest import MET, Airports

pytestmark = pytest.mark.long


def test_project_begun_from_a_datasette_runs_and_reads(
    base_url: str, airports: Airports, tmp_path: Path
) -> None:
    """Beside the sample, as one project; what may be said of a live table, and no more."""
    project = CommandLine(tmp_path / "airfields")

    begun = CommandLine(tmp_path)(
        "init", "airfields", "--from", f"{base_url}/airports/airports.json", "--name", "airports"
    )
    drafted = project.folder / "airfields" / "defs" / "airports" / "defs.yaml"

    assert begun.exit_code == 0, begun.output
    assert project("check", str(drafted), "--connect").exit_code == 0
    assert project("run", "customers").exit_code == 0
    assert project.json("run", "airports")["receipt"]["unique_ids_observed"] == len(airports)
    assert project("read", "airports").exit_code == 1
    read = project("read", "airports", "--accept", MET, "--format", "csv", "--limit", "2")
    assert (read.exit_code, len(read.stdout.splitlines())) == (0, 3)
    assert MET in read.stdout
