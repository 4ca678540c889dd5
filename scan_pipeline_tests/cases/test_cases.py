"""Every case of the two files that concerns a walk over HTTP, replayed and judged."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.unlock import open_partial
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project
from scan_pipeline_tests.cases import field_styles, peer_styles
from scan_pipeline_tests.cases.replay import LIVE, Replay, field_case, load, run
from scan_pipeline_tests.cases.verdicts import disagreements


def _replays() -> list[Any]:
    """Return every replay; the first of each outcome is audited as well."""
    replays = list(_all())
    first = {each.expected.kind: each.name for each in reversed(replays)}
    return [_marked(each, audited=first[each.expected.kind] == each.name) for each in replays]


def _all() -> Iterator[Replay]:
    for case in load("field_cases.jsonl"):
        if case["scenario"]["style"] in field_styles.FIELD_STYLES:
            yield from field_styles.replays(case)
    for case in load("peer_cases.jsonl"):
        if case["style"] in peer_styles.PEER_STYLES:
            yield from peer_styles.replays(case)


def _marked(replay: Replay, *, audited: bool) -> Any:
    return pytest.param(replay, audited, id=replay.name)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One lake for all cases: each is a scan of its own name."""
    root = tmp_path_factory.mktemp("cases")
    return Project(
        lake=str(root / "lake"),
        keys=root / "keys",
        trust=root / "scan_pipeline_trust.json",
        dagster_home=root / "dagster_home",
        root=None,
    )


@pytest.fixture
def workspace_with(project: Project) -> Callable[..., Workspace]:
    def make(**arguments: Any) -> Workspace:
        return Workspace(project, **arguments)

    return make


@pytest.mark.parametrize(("replay", "audited"), _replays())
def test_case_comes_out_right(
    replay: Replay, audited: bool, tmp_path: Path, workspace_with: Callable[..., Workspace]
) -> None:
    outcome = run(replay, folder=tmp_path, workspace_with=workspace_with, audited=audited)

    assert list(disagreements(replay, outcome)) == []


def test_receipt_of_a_narrow_scope_does_not_open_the_wider_one(
    workspace_with: Callable[..., Workspace],
) -> None:
    """C088: a search in one's own drive answers nothing about all drives."""
    replay = field_styles.replays(field_case("C088"))[0]
    workspace = workspace_with(environ={}, inner=replay.script)
    asked = {**replay.attributes, "name": "case_c088_scope"}
    stored = run_scan(parse_scan(asked), workspace=workspace).stored
    wider = {**asked, "source": {**asked["source"], "params": {"corpora": "allDrives"}}}

    with pytest.raises(GateClosedError, match="of another contract"):
        open_partial(stored, parse_scan(wider), workspace=workspace, accept=LIVE)


def test_one_signal_named_as_binding_settles_a_contradiction(
    tmp_path: Path, workspace_with: Callable[..., Workspace]
) -> None:
    """C015: with the token alone declared, the walk follows it to its end."""
    replay = field_styles.replays(field_case("C015"))[0]
    source = dict(replay.attributes["source"])
    source["next"] = {**source["next"], "ends_when": [{"is": "absent"}]}
    bound = {**replay.attributes, "name": "case_c015_bound", "source": source}
    settled = Replay(
        name="C015-bound",
        attributes=bound,
        script=replay.script,
        expected=replay.expected,
    )

    outcome = run(settled, folder=tmp_path, workspace_with=workspace_with)

    assert outcome.partial == ("J-1", "J-2", "J-3")
