"""One server of moto's for all tests of a session that only read it."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.real.amazon.moto_server import serving_moto

CUSTOMERS = 8_742
FEW = 300
DRAFTS = 650
FEW_DRAFTS = 250
"""Items that a filter keeps away, so many in a row that whole pages are empty."""

SECRET = "wJalr-a-secret-of-the-test"
ENVIRON = {"SCAN_KEY_ID": "AKIATEST", "SCAN_SECRET": SECRET}
KEYS = {
    "keys": {"access_key_id": {"env": "SCAN_KEY_ID"}, "secret_access_key": {"env": "SCAN_SECRET"}}
}


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """A few customers, for tests that ask little."""
    with serving_moto(FEW, drafts=FEW_DRAFTS, environ=os.environ) as url:
        yield url


@pytest.fixture(scope="session")
def whole_moto() -> Iterator[str]:
    """Every customer."""
    with serving_moto(CUSTOMERS, drafts=DRAFTS, environ=os.environ) as url:
        yield url


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    project = find_project(lake=str(tmp_path / "lake"), cwd=tmp_path, environ={})
    return Workspace(project, environ=ENVIRON)


@pytest.fixture
def scan_of(tmp_path: Path, edit: Callable[..., dict[str, Any]]) -> Callable[..., Scan]:
    """Read a file of facts for a server, changed here and there."""

    def read(name: str, url: str, edits: Mapping[str, Any] | None = None) -> Scan:
        facts = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
        here = {"source.endpoint_url": url, "source.auth": KEYS, **(edits or {})}
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(edit(facts, here)), encoding="utf-8")
        return read_scan_file(path).parse()

    return read
