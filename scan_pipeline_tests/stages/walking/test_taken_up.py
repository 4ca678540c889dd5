"""One walk is of one principal, also where the source does not say who we are."""

from typing import Any

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.simulator.principals import ANALYST_TOKEN, AUDITOR_TOKEN
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import DataKey
from scan_pipeline.store.sealing import Sealer
from scan_pipeline_tests.conftest import THINGS, Bench, edited, laid_down
from scan_pipeline_tests.stages.breaking import break_off, events_of

NAMELESS: dict[str, Any] = {"source.identity": ..., "operation": {"commit_pages": 1}}
"""A source that has no side address for identity."""


def as_another(bench: Bench, registry: Any, workspace: Workspace, token: str) -> Workspace:
    return bench.workspace(registry, project=workspace.project, environ={"REGISTRY_TOKEN": token})


def test_same_credential_takes_the_walk_up(bench: Bench) -> None:
    registry, scan = bench.registry(size=500), bench.scan(NAMELESS)
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)

    night = run_scan(scan, workspace=as_another(bench, registry, workspace, AUDITOR_TOKEN))

    receipt = night.stored.receipt
    assert (receipt.scan_generation, receipt.coverage_status) == (begun, "verified")
    assumed = {each.name: each.basis for each in receipt.assumptions}
    assert assumed["principal_view_constant"] == "assumed"


def test_another_credential_ends_the_generation_and_a_new_one_begins(bench: Bench) -> None:
    registry, scan = bench.registry(size=500), bench.scan(NAMELESS)
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)
    asked = len(registry.served.pages)

    night = run_scan(scan, workspace=as_another(bench, registry, workspace, ANALYST_TOKEN))

    (earlier,) = (each.receipt for each in night.earlier)
    assert (earlier.scan_generation, earlier.stop_reason) == (begun, "principal_changed")
    assert (earlier.coverage_status, earlier.pages_observed) == ("failed", 3)
    assert {each.code for each in earlier.findings.first} == {"principal_changed"}
    receipt = night.stored.receipt
    assert receipt.restart_of == begun
    assert {each.principal for each in registry.served.pages[asked:]} == {"analyst@acme.example"}


def test_generation_that_is_named_is_not_taken_up_by_another_either(bench: Bench) -> None:
    """A run of one partition goes past the look at open generations."""
    registry, scan = bench.registry(size=500), bench.scan(NAMELESS)
    workspace = bench.workspace(registry)
    begun = break_off(scan, workspace, after=3)
    asked = len(registry.served.pages)

    other = as_another(bench, registry, workspace, ANALYST_TOKEN)
    events = Pipeline(scan, begun, workspace=other).pages()

    assert events[-1].facts["stop_reason"] == "principal_changed"
    assert len(registry.served.pages) == asked


def test_credential_is_named_by_a_digest_of_this_generation_and_key_alone(bench: Bench) -> None:
    registry, scan = bench.registry(size=100), bench.scan(NAMELESS)
    workspace, elsewhere = bench.workspace(registry), bench.workspace(registry)
    names = list[str]()
    for place in (workspace, workspace, elsewhere):
        run_scan(scan, workspace=place)
        bench.clock.sleep(60)
        opened = events_of(scan, place)[0]
        assert AUDITOR_TOKEN.encode() not in canonical_json(opened.facts)
        names.append(opened.facts["credential"])

    assert len(set(names)) == 3
    assert all(len(name) == 64 for name in names)


def test_source_without_a_credential_is_taken_up(bench: Bench) -> None:
    """Nobody asks by name: there is nothing to compare."""
    pages = [[b'{"id":"%d","n":1}' % n] for n in range(4)]
    scan = parse_scan(edited(THINGS, {"operation": {"commit_pages": 1}}))
    workspace = bench.workspace(inner=laid_down(pages))
    begun = break_off(scan, workspace, after=2)

    receipt = run_scan(scan, workspace=workspace).stored.receipt

    assert (receipt.scan_generation, receipt.coverage_status) == (begun, "verified")


def test_names_are_known_again_under_a_key_that_was_replaced() -> None:
    old = DataKey(key_id="00" * 8, key=b"o" * 32)
    new = DataKey(key_id="11" * 8, key=b"n" * 32, older=(old,))

    (first,) = Sealer(old).names(b"who", context=b"here")
    named = Sealer(new).names(b"who", context=b"here")

    assert named[1] == first != named[0]
    assert first not in Sealer(new).names(b"who", context=b"there")
    assert first not in Sealer(new).names(b"whom", context=b"here")
