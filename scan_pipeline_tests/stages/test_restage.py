"""Stored pages judged again, without asking the source, under a receipt that says so."""

import httpx2
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.restage import restage

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
    assert narrow.opens.partial == 3
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
