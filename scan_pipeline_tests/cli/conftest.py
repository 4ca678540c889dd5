"""A project of its own, the command line in process and as a process, and scans to run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from scan_pipeline.cli.main import cli
from scan_pipeline.simulator.faults import PageReplaced
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.server import running
from scan_pipeline.stages.scan_lookup import shipped_scan

PYPROJECT = """\
[tool.scan_pipeline]
lake = "data/lake"
keys = "data/keys"
trust = "data/trust.json"
dagster_home = "data/dagster_home"
"""

OURS = ("SCAN_PIPELINE_LAKE", "SCAN_PIPELINE_KEYS", "SCAN_PIPELINE_TRUST", "DAGSTER_HOME")


class CommandLine:
    """The command line in one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = folder / "data" / "lake"
        self.shop = str(folder / "shop.yaml")

    def __call__(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> Result:
        """Run a command in this process."""
        env = dict.fromkeys(OURS) | {"REGISTRY_TOKEN": AUDITOR_TOKEN} | dict(env or {})
        return CliRunner().invoke(cli, ["--project", str(self.folder), *arguments], env=env)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with `--json` and read its answer."""
        result = self(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        environ = {name: value for name, value in os.environ.items() if name not in OURS}
        return subprocess.Popen(
            [sys.executable, "-c", "from scan_pipeline.cli.main import main; main()", *arguments],
            cwd=self.folder,
            env={**environ, "REGISTRY_TOKEN": AUDITOR_TOKEN, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def scan_file(
        self,
        url: str,
        *,
        name: str = "shop",
        change: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> str:
        """Write the shipped scan as a file of its own, at another address; return its path."""
        attributes = yaml.safe_load(shipped_scan("customers").path.read_text(encoding="utf-8"))
        text = json.dumps(attributes["attributes"]).replace("simulator://registry", url)
        facts = json.loads(text) | {"name": name}
        facts["contract"]["limits"]["over_count"] = 0.5
        change(facts)
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(facts, sort_keys=False), encoding="utf-8")
        return str(path)


def make_project(folder: Path) -> CommandLine:
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    return CommandLine(folder)


@pytest.fixture
def scan_pipeline(tmp_path: Path) -> CommandLine:
    """The command line in a fresh project."""
    return make_project(tmp_path)


@contextmanager
def registry(*faults: Any, size: int = 300, mutations: Sequence[Any] = ()) -> Iterator[str]:
    """Serve a small registry over HTTP; give its address."""
    script = Script(faults=tuple(faults), mutations=tuple(mutations))
    with running(Registry(size=size, cases=0, script=script)) as url:
        yield url


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A project whose scan `shop` has an accepted generation and, after it, a failed one.

    In the failed one page 2 brings the records of page 1 again. Tests read it and change nothing.
    """
    project = make_project(tmp_path_factory.mktemp("two_nights"))

    def read_once(facts: dict[str, Any]) -> None:
        facts["operation"] = {"recheck_pages": 0}  # page 2 is then asked for once a night

    with registry(PageReplaced(page=2, by=1, first_attempt=2)) as url:
        project.scan_file(url, change=read_once)
        first = project("run", project.shop)
        second = project("run", project.shop)
    assert (first.exit_code, second.exit_code) == (0, 1), first.output + second.output
    return project
