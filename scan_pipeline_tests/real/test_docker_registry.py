"""A container registry's catalog: bare names, a relative Link header, and no count at all."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.scan_file import read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import Wire
from scan_pipeline_tests.real.docker_registry_server import (
    need_docker_registry,
    repository_names,
    serving,
    write_repositories,
)

FACTS = Path(__file__).with_name("catalog.yaml")
LIVE = "records_encountered_in_live_traversal"
NAMES = repository_names(8_742)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("registry") / "storage"
    write_repositories(root, NAMES)
    return root


@pytest.fixture(scope="module")
def base_url(storage: Path) -> Iterator[str]:
    with serving(need_docker_registry(environ=os.environ), storage) as url:
        yield url


@pytest.fixture
def scan_of(tmp_path: Path) -> Callable[..., Scan]:
    """Read the file of facts for a server, with a part of its contract changed."""

    def read(base_url: str, **contract: Any) -> Scan:
        raw = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
        raw["source"]["url"] = f"{base_url}/v2/_catalog"
        raw["contract"] |= contract
        path = tmp_path / "catalog.yaml"
        path.write_text(yaml.safe_dump(raw), encoding="utf-8")
        return read_scan_file(path).parse()

    return read


def test_every_repository_is_met_by_following_relative_links(
    base_url: str, scan_of: Callable[..., Scan], workspace: Workspace, wire: Wire
) -> None:
    scan = scan_of(base_url)

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert len(wire.asked) == 9
    assert wire.asked[0].raw_path == b"/v2/_catalog?n=1000"
    assert all(each.raw_path.startswith(b"/v2/_catalog?last=team-") for each in wire.asked[1:])
    assert b"%2F" in wire.asked[1].raw_path
    assert (receipt.traversal, receipt.coverage_status, receipt.conclusion_scope) == (
        "finished",
        "unknown",
        LIVE,
    )
    assert receipt.accepted
    assert receipt.terminal_evidence is not None
    assert receipt.terminal_evidence.signal == "no_next_link"
    assert {each.code for each in receipt.findings.first} == {"live_traversal", "no_denominator"}
    collection = Collection(scan, workspace=workspace)
    frame = collection.partial(receipt.scan_generation, accept=LIVE).labelled_frame().collect()
    assert sorted(frame["name"].to_list()) == sorted(NAMES)
    with pytest.raises(GateClosedError):
        collection.latest(at_least="corroborated")
    assert Audit(scan.name, receipt.scan_generation, workspace=workspace).run().agrees


@pytest.fixture
def listed(tmp_path: Path) -> str:
    """The names as somebody else knows them, one a line."""
    path = tmp_path / "names.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in NAMES), encoding="utf-8")
    return str(path)


def test_manifest_is_held_against_the_catalog(
    base_url: str, scan_of: Callable[..., Scan], workspace: Workspace, listed: str
) -> None:
    receipt = run_scan(
        scan_of(base_url, expect={"manifest": listed}), workspace=workspace
    ).stored.receipt

    assert [(each.name, each.result) for each in receipt.expectations] == [("manifest", "met")]
    assert receipt.coverage_status == "unknown"


@pytest.fixture
def last_one_goes(storage: Path, wire: Wire) -> Iterator[str]:
    """The last repository is removed before the third page is asked for."""
    gone = max(NAMES)
    folder = storage / "docker" / "registry" / "v2" / "repositories" / gone
    wire.before[3] = lambda: shutil.rmtree(folder)
    yield gone
    (folder / "_layers").mkdir(parents=True, exist_ok=True)


def test_repository_that_goes_while_its_page_is_yet_to_come_is_missed_and_named(
    base_url: str,
    scan_of: Callable[..., Scan],
    workspace: Workspace,
    listed: str,
    last_one_goes: str,
) -> None:
    receipt = run_scan(
        scan_of(base_url, expect={"manifest": listed}), workspace=workspace
    ).stored.receipt

    assert receipt.coverage_status == "failed"
    missed = next(each for each in receipt.findings.first if each.code == "manifest_missed")
    assert last_one_goes in str(missed.found)
