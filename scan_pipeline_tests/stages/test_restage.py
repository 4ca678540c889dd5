"""Stored pages judged again, without asking the source, under a receipt that says so."""

from pathlib import Path

import httpx2
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.stages import pipeline
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.readers.judged_under import judged_under
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.unlock import unlock
from scan_pipeline_tests.conftest import laid_down

WIDER = [{"name": "id", "type": "string", "nullable": False}, {"name": "n", "type": "float64"}]
PAGES = [[b'{"id":"a","n":1}', b'{"id":"b","n":1.5}'], [b'{"id":"c","n":2}']]


@pytest.fixture
def narrow(bench):
    """A night in which one record did not fit the schema."""
    walked = bench.walk_records(PAGES)
    assert (walked.receipt.coverage_status, walked.receipt.accepted) == ("verified", False)
    return walked


def no_source(walked, bench):
    """The same place, where nothing answers."""

    def gone(request):
        raise httpx2.ConnectError("nothing may be asked", request=request)

    return bench.workspace(inner=httpx2.MockTransport(gone), project=walked.workspace.project)


def test_wider_schema_accepts_what_was_read(bench, narrow, things):
    workspace = no_source(narrow, bench)
    fixed = things({"record_schema": WIDER})

    stored = restage(fixed, narrow.generation, workspace=workspace)
    receipt = stored.receipt

    assert receipt.accepted
    assert receipt.supersedes == narrow.night.stored.receipt_id
    assert receipt.scan_generation == f"{narrow.generation}.2"
    assert receipt.evidence["pages"].generation == narrow.generation
    assert receipt.cursor_chain_digest == narrow.receipt.cursor_chain_digest
    assert receipt.merkle == narrow.receipt.merkle
    rows = Collection(fixed, workspace=workspace).latest().frame().select("id", "n").collect()
    assert rows.rows() == [("a", 1.0), ("b", 1.5), ("c", 2.0)]
    assert narrow.published().height == 3


def test_old_generation_stays_as_it_was(bench, narrow, things):
    before = narrow.workspace.receipts("things").envelope(narrow.generation)

    restage(things({"record_schema": WIDER}), narrow.generation, workspace=narrow.workspace)

    receipts = narrow.workspace.receipts("things")
    assert receipts.envelope(narrow.generation) == before
    assert Audit("things", narrow.generation, workspace=narrow.workspace).run().agrees


def test_restaged_generation_is_audited_on_the_same_pages(bench, narrow, things):
    stored = restage(
        things({"record_schema": WIDER}), narrow.generation, workspace=narrow.workspace
    )

    report = Audit("things", stored.receipt.scan_generation, workspace=narrow.workspace).run()

    assert report.disagreements == ()
    assert report.level == "bodies"


def test_stricter_expectation_is_judged_on_the_same_pages(bench, narrow, things):
    stricter = things({"record_schema": WIDER, "contract.expect": {"count": 4}})

    receipt = restage(stricter, narrow.generation, workspace=narrow.workspace).receipt

    assert receipt.coverage_status == "failed"
    assert {f.code for f in receipt.findings.first} == {"count_missed"}


def test_another_key_is_judged_on_the_same_pages(bench, narrow, things):
    by_number = things({"contract.key": ["n"], "contract.accept.nonconforming": 1})

    receipt = restage(by_number, narrow.generation, workspace=narrow.workspace).receipt

    assert receipt.extraction.without_key == 1
    assert receipt.merkle.root is None


def test_each_restage_is_a_generation_of_its_own(bench, narrow, things):
    fixed = things({"record_schema": WIDER})

    first = restage(fixed, narrow.generation, workspace=narrow.workspace)
    second = restage(fixed, first.receipt.scan_generation, workspace=narrow.workspace)
    third = restage(fixed, narrow.generation, workspace=narrow.workspace)

    assert [each.receipt.scan_generation.partition(".")[2] for each in (first, second, third)] == [
        "2",
        "3",
        "4",
    ]
    assert second.receipt.supersedes == first.receipt_id
    assert second.receipt.evidence["pages"].generation == narrow.generation


@pytest.mark.parametrize(
    "edits",
    [{"source.params": {"status": "active"}}, {"source.next.send_as": "after"}],
)
def test_stored_pages_do_not_answer_another_question(bench, narrow, things, edits):
    with pytest.raises(ContractError, match="Stored pages cannot answer another question"):
        restage(things(edits), narrow.generation, workspace=narrow.workspace)


def test_generation_without_a_receipt_is_not_restaged(bench, narrow, things):
    with pytest.raises(GateClosedError):
        restage(things(), "20200101T000000Z", workspace=narrow.workspace)


def test_walk_that_did_not_finish_does_not_become_whole(bench, things):
    limited = bench.walk_records(PAGES, {"contract.limits": {"pages": 1}})
    without = things({"record_schema": WIDER})

    receipt = restage(without, limited.generation, workspace=limited.workspace).receipt

    assert receipt.coverage_status == "unknown"
    assert receipt.limits_hit == ("pages",)
    assert receipt.records_observed == 2


STRICTER = {"contract.expect": {"count": 4}}


@pytest.fixture
def accepted(bench):
    return bench.walk_records([[b'{"id":"a","n":1}', b'{"id":"b","n":2}']])


def judged_failed(walked, things, **edits):
    """Judge a generation again under an expectation that it misses."""
    scan = things({**STRICTER, **edits})
    return scan, restage(scan, walked.generation, workspace=walked.workspace)


def test_superseded_generation_opens_nothing(accepted, things, opens):
    scan, judged = judged_failed(accepted, things)

    assert judged.receipt.coverage_status == "failed"
    assert accepted.opens == opens()
    collection = Collection(scan, workspace=accepted.workspace)
    with pytest.raises(GateClosedError, match="no generation is verified"):
        collection.latest()
    with pytest.raises(GateClosedError, match=f"judged again as {accepted.generation}.2"):
        collection.generation(accepted.generation)
    with pytest.raises(GateClosedError):
        unlock(accepted.night.stored, scan, workspace=accepted.workspace)


def test_superseded_receipt_opens_by_its_id_and_every_row_says_so(accepted, things):
    scan, judged = judged_failed(accepted, things)
    told = accepted.night.stored.receipt_id

    opened = Collection(scan, workspace=accepted.workspace).superseded(
        told, accept="all_records_in_snapshot"
    )

    rows = opened.labelled_frame().select("_receipt_id", "_superseded_by").collect().rows()
    assert rows == [(told, judged.receipt_id)] * 2
    assert f"Superseded by {accepted.generation}.2" in opened.warning


def test_receipt_that_stands_is_not_read_as_superseded(accepted):
    told = accepted.night.stored.receipt_id
    with pytest.raises(GateClosedError, match="superseded by no other"):
        accepted.collection.superseded(told, accept="observed_pages_only")


def test_only_the_newest_judgement_of_the_same_pages_stands(accepted, things):
    judged_failed(accepted, things)

    again = restage(things(), accepted.generation, workspace=accepted.workspace)

    assert again.receipt.scan_generation == f"{accepted.generation}.3"
    assert accepted.collection.latest().receipt_id == again.receipt_id
    assert accepted.published().height == 2


def test_judgement_holds_also_where_its_file_is_gone(accepted, things):
    """The table's commit made it; taking the file away gives nobody the old rows back."""
    _, judged = judged_failed(accepted, things)
    lake, name = accepted.workspace.lake, judged.receipt.scan_generation
    Path(lake.receipt_path("things", name)).unlink()

    assert accepted.opens.whole is None


def test_published_falls_back_to_the_last_generation_that_stands(bench, accepted, things):
    inner = laid_down([[b'{"id":"c","n":3}']])
    place = bench.workspace(inner=inner, project=accepted.workspace.project)
    second = run_scan(accepted.scan, workspace=place).stored.receipt
    assert accepted.published()["id"].to_list() == ["c"]

    restage(things(STRICTER), second.scan_generation, workspace=place)

    assert accepted.published()["id"].to_list() == ["a", "b"]
    audit = Audit("things", accepted.generation, workspace=accepted.workspace).run()
    assert audit.disagreements == ()


def test_published_is_withdrawn_with_a_word_where_nothing_stands(bench, accepted, things):
    judged_failed(accepted, things)

    folder = Path(accepted.workspace.project.lake) / "published" / "things"
    assert accepted.published() is None
    assert [each.name for each in folder.rglob("*") if each.is_file()] == ["WITHDRAWN.txt"]
    assert accepted.generation in (folder / "WITHDRAWN.txt").read_text(encoding="utf-8")
    run_scan(things(), workspace=accepted.workspace)
    assert accepted.published().height == 2
    assert not (folder / "WITHDRAWN.txt").exists()


def test_withdrawal_that_a_break_left_undone_is_done_by_the_next_run(accepted, things, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(pipeline, "publish", lambda *_, **__: None)
        judged_failed(accepted, things)
    assert accepted.published().height == 2

    failing = things({"contract.limits": {"pages": 1}, "contract.expect": {"count": 9}})
    run_scan(failing, workspace=accepted.workspace)

    assert accepted.published() is None


def test_reader_is_told_that_a_receipt_rests_on_another_judgement(accepted, things):
    """It is no refusal: only the scope decides whether a generation answers the question."""
    edited = things(STRICTER)

    opened = Collection(edited, workspace=accepted.workspace).latest()

    assert judged_under(opened.receipt, accepted.scan).which == "the_present"
    assert judged_under(opened.receipt, accepted.scan).word() is None
    other = judged_under(opened.receipt, edited)
    assert (other.which, other.receipt) == ("another", opened.receipt.judgement_digest)
    assert "restage" in other.word()
