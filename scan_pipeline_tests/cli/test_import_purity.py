"""Commands pay for what they use: reading a receipt needs no engine."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline_tests.cli.conftest import CommandLine

HEAVY = ("dagster", "pandera", "polars", "pyarrow", "deltalake", "httpx2", "rich")

PROGRAM = """
import json, sys
from scan_pipeline.cli.main import cli
try:
    cli(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def ask_once(facts: dict[str, Any]) -> None:
    facts["operation"] = {"retries": {"attempts": 1}}


def imported_by(project: CommandLine, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--project", str(project.folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "REGISTRY_TOKEN": AUDITOR_TOKEN},
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 1, done.stderr  # the newest night of the project is not accepted
    return set(modules)


@pytest.mark.parametrize("command", ["receipt", "explain"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["words", "json"])
def test_reading_a_receipt_needs_no_engine(
    two_nights: CommandLine, command: str, form: tuple[str, ...]
) -> None:
    """Neither Dagster, Pandera nor Polars; rich only where words are wanted."""
    allowed = {"rich"} if form == () else set()

    assert imported_by(two_nights, command, "shop", *form) & set(HEAVY) <= allowed


@pytest.mark.parametrize(
    "arguments",
    [("read", "--accept", "bounded_view"), ("restage", "20200101T000000Z"), ("run",)],
    ids=lambda arguments: arguments[0],
)
def test_work_without_dagster_does_not_import_it(
    two_nights: CommandLine, arguments: tuple[str, ...]
) -> None:
    command, *rest = arguments
    file = two_nights.shop
    if command == "run":  # an address where nobody listens: the walk stops, a receipt is left
        file = two_nights.scan_file("http://127.0.0.1:9", name="nobody", change=ask_once)

    # Telemetry is off unless a variable says otherwise, and is then not even imported.
    assert not {"dagster", "opentelemetry"} & imported_by(two_nights, command, file, *rest)


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--help"], capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])

    assert code == 0
    assert not {*HEAVY} & set(modules)
