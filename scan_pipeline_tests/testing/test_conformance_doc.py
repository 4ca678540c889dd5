"""docs/conformance.md: its files are written down as they stand, and its commands are run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from scan_pipeline.cli.main import cli
from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline.testing import BEHAVIOURS

pytestmark = pytest.mark.long

DOC = Path(__file__).parents[2] / "docs" / "conformance.md"
SOURCES = Path(__file__).parents[1] / "sources"

FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


def doc() -> str:
    return DOC.read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the page in a project of their own; what is imported of them is undone."""
    for name, text in FILE.findall(doc()):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    shipped = shipped_scan("customers").path.read_text(encoding="utf-8")
    (tmp_path / "customers.yaml").write_text(shipped, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in [each for each in sys.modules if each.partition(".")[0] == "desk"]:
        del sys.modules[name]


def commands(tool: str) -> list[list[str]]:
    found = [line.split() for line in COMMAND.findall(doc())]
    return [words[1:] for words in found if words[0] == tool]


def test_page_has_two_commands_and_one_test() -> None:
    assert [words[1] for words in commands("scan-pipeline")] == ["customers.yaml", "tickets.yaml"]
    assert len(commands("python")) == 1


@pytest.mark.parametrize("number", [0, 1])
def test_command_of_the_page_passes(number: int, project: Path) -> None:
    result = CliRunner().invoke(cli, commands("scan-pipeline")[number])

    assert result.exit_code == 0, result.output
    assert " 0 failed, " in result.stdout
    assert result.stdout.count("\n") == 2 * len(BEHAVIOURS) + 1


@pytest.mark.long
def test_test_of_the_page_passes(project: Path) -> None:
    (words,) = commands("python")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(project)])}

    done = subprocess.run(
        [sys.executable, *words, "-p", "no:cacheprovider"],
        check=False,
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(BEHAVIOURS)} passed" in done.stdout


def test_adapter_of_the_page_is_the_one_that_the_tests_walk() -> None:
    files = dict(FILE.findall(doc()))

    assert files["desk/sources.py"] == (SOURCES / "tickets.py").read_text(encoding="utf-8")
    assert len(files["desk/sources.py"].splitlines()) <= 60
    fake = (SOURCES / "ticket_desk.py").read_text(encoding="utf-8").partition("import httpx2\n")
    assert files["desk/fake.py"].startswith(fake[0])
    assert fake[2].strip() in files["desk/fake.py"]
