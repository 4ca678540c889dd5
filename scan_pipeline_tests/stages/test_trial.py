"""A trial: a few pages apart, that no reader, night or comparison takes for more."""

import json
from dataclasses import replace

import pytest

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import CancelledError, GateClosedError
from scan_pipeline.core.scan import trial_of
from scan_pipeline.sources.scan_file import LocatedScanFileError, read_scan_file
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.publish import publish, published_generation
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.stored_contract import stored_contract
from scan_pipeline.stages.trial import run_trial
from scan_pipeline.stages.trial_place import trials_of
from scan_pipeline.stages.unlock import open_partial, unlock
from scan_pipeline_tests.conftest import laid_down

PAGES = "observed_pages_only"


@pytest.fixture
def place(bench):
    """A workspace of its own over a registry of 1,000 customers, and the shipped scan."""
    return bench.workspace(bench.registry()), bench.scan()


@pytest.fixture
def small(bench, things):
    """A workspace and a scan whose collection ends on its second page."""
    pages = [[b'{"id":"a"}', b'{"id":"b"}'], [b'{"id":"c"}']]
    return bench.workspace(inner=laid_down(pages)), things()


def apart(workspace):
    return workspace.at(trials_of(workspace.project))


def test_three_pages_are_staged_and_open_as_pages_alone(place):
    workspace, scan = place

    stored = run_trial(scan, pages=3, workspace=workspace)

    receipt = stored.receipt
    assert (receipt.pages_observed, receipt.records_observed) == (3, 300)
    assert (receipt.mode, receipt.coverage_status, receipt.conclusion_scope) == (
        "trial",
        "unknown",
        PAGES,
    )
    assert not receipt.accepted
    assert receipt.statement.startswith("A trial: 300 records of customers")
    trial = trial_of(scan, pages=3)
    opened = open_partial(stored, trial, workspace=apart(workspace), accept=PAGES)
    assert opened.labelled_frame().collect().height == 300
    assert Audit(scan.name, receipt.scan_generation, workspace=apart(workspace)).run().agrees


def test_trial_of_a_collection_that_ends_within_it_is_still_no_whole(small):
    workspace, scan = small

    stored = run_trial(scan, pages=3, workspace=workspace)

    assert stored.receipt.traversal == "finished"
    assert (stored.receipt.coverage_status, stored.receipt.conclusion_scope) == ("unknown", PAGES)
    assert not stored.receipt.accepted
    for meant in (scan, trial_of(scan, pages=3)):
        with pytest.raises(GateClosedError):
            unlock(stored, meant, workspace=apart(workspace))


@pytest.mark.parametrize("accept", [PAGES, "records_encountered_in_live_traversal"])
def test_trial_is_not_accepted_though_the_scan_accepts_as_little(small, accept):
    workspace, scan = small
    contract = replace(scan.contract, accept=replace(scan.contract.accept, scope=accept))
    scan = replace(scan, contract=contract)

    stored = run_trial(scan, pages=1, workspace=workspace)

    assert not stored.receipt.accepted
    assert publish(scan, workspace=apart(workspace)) is None
    assert published_generation(scan.name, workspace=workspace) is None
    assert published_generation(scan.name, workspace=apart(workspace)) is None


def test_trial_whose_evidence_disagrees_is_failed(bench, things):
    workspace = bench.workspace(inner=laid_down([[b'{"id":"a"}', b'{"id":"a"}'], [b'{"id":"b"}']]))

    stored = run_trial(things(), pages=3, workspace=workspace)

    assert stored.receipt.coverage_status == "failed"


def test_nights_readers_and_comparisons_do_not_see_a_trial(place):
    workspace, scan = place
    night = run_scan(scan, workspace=workspace)

    trial = run_trial(scan, pages=2, workspace=workspace).receipt

    assert trial.scan_generation not in workspace.receipts(scan.name).generations()
    collection = Collection(scan, workspace=workspace)
    standing = collection.standing()
    assert (standing.opened, standing.newer) == (night.stored.receipt.scan_generation, ())
    assert published_generation(scan.name, workspace=workspace) == standing.opened
    assert trial.scope_digest != night.stored.receipt.scope_digest == scope_digest(scan)


def test_night_that_broke_off_is_taken_up_after_a_trial_as_if_there_were_none(place):
    workspace, scan = place
    calls = iter(range(100))

    def cancel_at_the_fifth():
        if next(calls) == 5:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):  # the process ends; the walk stays open
        run_scan(scan, workspace=workspace, check_cancelled=cancel_at_the_fifth)
    run_trial(scan, pages=2, workspace=workspace)

    night = run_scan(scan, workspace=workspace)

    assert (night.closed, night.stored.receipt.coverage_status) == ((), "verified")


def test_trial_that_broke_off_is_never_a_night(place):
    workspace, scan = place

    def cancel():
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_trial(scan, pages=2, workspace=workspace, check_cancelled=cancel)

    night = run_scan(scan, workspace=workspace)

    assert night.closed == night.left == ()
    assert night.stored.receipt.coverage_status == "verified"


def test_cancelled_trial_leaves_a_receipt(place):
    workspace, scan = place

    def cancel():
        raise CancelledError("stop")

    stored = run_trial(scan, pages=2, workspace=workspace, check_cancelled=cancel)

    assert (stored.receipt.traversal, stored.receipt.mode) == ("cancelled", "trial")


def test_contract_of_a_trial_is_read_from_its_open_event(place):
    workspace, scan = place
    stored = run_trial(scan, pages=3, workspace=workspace)
    generation = stored.receipt.scan_generation

    read = stored_contract(scan.name, generation, workspace=apart(workspace))

    assert read == trial_of(scan, pages=3)


def test_scan_file_is_no_trial(tmp_path, shipped, edit):
    path = tmp_path / "scan.yaml"
    path.write_text(json.dumps(edit(shipped, {"contract.mode": "trial"})), encoding="utf-8")

    with pytest.raises(LocatedScanFileError, match="run FILE --trial PAGES"):
        read_scan_file(path).parse()


def test_fewer_pages_than_the_scan_allows_are_never_more(things):
    limited = things({"contract.limits": {"pages": 2}})

    assert trial_of(limited, pages=5).contract.limits.pages == 2
