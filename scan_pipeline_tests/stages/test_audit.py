"""An audit computes every figure again, as deep as it can, and says what it could not compute."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.core.receipt_statement import receipt_json, statement_bytes
from scan_pipeline.simulator.faults import CursorRepeats
from scan_pipeline.simulator.scenarios import SCENARIOS
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.audit import Audit, AuditReport
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.trust import sign
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.tampering import SealedLake, forget

OF_RECORDS = {
    "accepted",
    "coverage_status",
    "duplicate_ids",
    "expectations",
    "extraction.nonconforming",
    "merkle.root",
    "missing_id_ranges",
    "records_observed",
    "unique_ids_observed",
}


def names(report: AuditReport, agrees: bool | None) -> set[str]:
    return {each.name for each in report.checks if each.agrees is agrees}


def destroy_data_key(sealed: SealedLake) -> None:
    """Erase what the scan's key sealed, the way it is meant to be: the id stays, the key goes."""
    path = sealed.project.keys / f"{sealed.scan.name}.data_key.json"
    held = json.loads(path.read_text())
    for key in held["keys"]:
        key["key"], key["destroyed_at"] = None, datetime(2026, 12, 1, tzinfo=UTC).isoformat()
    path.write_text(json.dumps(held))


def remove_records(sealed: SealedLake) -> None:
    for name in ("records", "partition_summaries", "findings"):
        forget(sealed.table(name), sealed.second)


def test_every_member_of_the_receipt_is_looked_at(sealed_once: SealedLake) -> None:
    """What has no check by its own name has one by another, or is words."""
    report = sealed_once.audit()
    workspace = sealed_once.workspace()
    receipts = workspace.receipts(sealed_once.scan.name)
    receipt = receipt_json(receipts.read(sealed_once.second, trust=workspace.trust).receipt)

    checked = {name.partition(".")[0] for name in names(report, True)}
    otherwise = {"completed_at", "evidence", "findings", "reasons", "statement", "supersedes"}
    assert receipt.keys() - checked == otherwise - checked
    for table in receipt["evidence"]:
        assert f"files of {table}" in names(report, True)
    assert {
        "signature",
        "receipts of the generation",
        "chain",
        "bodies",
        "records by page",
        "partition summaries",
        "stored findings",
        "findings",
        "published",
        "published rows",
    } <= names(report, True)


def test_without_its_data_key_the_audit_goes_as_deep_as_records(sealed: SealedLake) -> None:
    destroy_data_key(sealed)

    report = sealed.audit()

    assert (report.agrees, report.level) == (True, "records"), report.disagreements
    assert names(report, None) == {"bodies"}
    assert "destroyed" in report.not_computed[0].found
    assert names(report, True) >= OF_RECORDS


@pytest.mark.long
def test_with_another_data_key_the_audit_goes_as_deep_as_records(sealed: SealedLake) -> None:
    """The old key was destroyed and a new one begun: its id stays, and tells which it was."""
    path = sealed.project.keys / f"{sealed.scan.name}.data_key.json"
    other = sealed.project.keys / f"{sealed.other.name}.data_key.json"
    held = json.loads(path.read_text())
    destroy_data_key(sealed)
    erased, fresh = json.loads(path.read_text()), json.loads(other.read_text())
    path.write_text(json.dumps({**held, "keys": [*erased["keys"], *fresh["keys"]]}))

    report = sealed.audit()

    assert (report.agrees, report.level) == (True, "records"), report.disagreements
    assert names(report, None) == {"bodies"}


def test_without_records_the_audit_goes_as_deep_as_the_ledger(sealed: SealedLake) -> None:
    """The figures of the walk agree; those that count keys are named as not computed."""
    destroy_data_key(sealed)
    remove_records(sealed)

    report = sealed.audit()

    assert (report.agrees, report.level) == (True, "ledger"), report.disagreements
    assert OF_RECORDS | {"files of records", "findings", "bodies"} <= names(report, None)
    assert {
        "chain",
        "pages_observed",
        "bytes_observed",
        "records returned",
        "traversal",
        "terminal_evidence.signal",
        "scope_digest",
        "judgement_digest",
    } <= names(report, True)
    with pytest.raises(Exception, match="records"):
        Collection(sealed.scan, workspace=sealed.workspace()).generation(sealed.second)


@pytest.mark.long
def test_without_records_bodies_are_still_held_against_the_chain(sealed: SealedLake) -> None:
    remove_records(sealed)

    report = sealed.audit()

    assert (report.agrees, report.level) == (True, "ledger"), report.disagreements
    assert "bodies" in names(report, True)


def test_without_evidence_the_audit_looks_at_the_receipt_alone(sealed: SealedLake) -> None:
    remove_records(sealed)
    forget(sealed.table("pages"), sealed.second)

    report = sealed.audit()

    assert (report.agrees, report.level) == (True, "receipt"), report.disagreements
    assert names(report, True) == {"signature", "receipts of the generation"}
    assert names(report, None) == {
        f"files of {name}" for name in ("pages", "records", "partition_summaries", "findings")
    }


def test_part_of_a_stage_removed_is_a_disagreement(sealed: SealedLake) -> None:
    """Rows of one stage are removed together or not at all."""
    forget(sealed.table("findings"), sealed.second)

    assert {"files of findings", "stored findings"} <= sealed.wrong()


FEW = ("page_skipped", "no_customer")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in FEW else pytest.mark.long) for n in SCENARIOS],
)
def test_receipts_of_every_outcome_are_computed_again(bench: Bench, name: str) -> None:
    walked = bench.walk(SCENARIOS[name], {"operation": {"restarts": 0}})

    report = Audit(walked.scan.name, walked.generation, workspace=walked.workspace).run()

    assert (report.agrees, report.level) == (True, "bodies"), report.disagreements
    assert report.not_computed == ()


@pytest.mark.parametrize("lesser", ["a live view", "repeats as declared"])
def test_what_is_published_of_a_lesser_night_is_computed_again(bench: Bench, lesser: str) -> None:
    """Rows that carry labels; rows of which only the first delivery was published."""
    if lesser == "a live view":
        live = {
            "source.snapshot": ...,
            "source.params": {"view": "live"},
            "contract.consistency": "live",
            "contract.accept": {"scope": "records_encountered_in_live_traversal"},
        }
        walked = bench.walk(bench.registry(size=200), live)
    else:
        again = CursorRepeats(page=2, to=2, fresh_text=True, last_attempt=1)
        twice = {"contract.delivery": "at_least_once", "contract.limits": {}}
        registry = bench.registry(size=300, script=Script(faults=(again,)))
        walked = bench.walk(registry, twice)
    assert walked.receipt.accepted, walked.receipt.reasons

    report = Audit(walked.scan.name, walked.generation, workspace=walked.workspace).run()

    assert (report.agrees, report.not_computed) == (True, ()), report.disagreements
    assert {"published", "published rows"} <= names(report, True)


def test_a_generation_without_a_receipt_cannot_be_audited(sealed_once: SealedLake) -> None:
    with pytest.raises(GateClosedError, match="no receipt"):
        sealed_once.audit("20200101T000000Z")


def test_without_a_trust_file_nobody_is_believed(sealed: SealedLake) -> None:
    sealed.project.trust.unlink()

    with pytest.raises(ConfigurationError, match="no trust file"):
        sealed.audit()


def test_a_schema_that_is_gone_does_not_keep_an_audit(
    bench: Bench, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years later nobody has the module any more; the records lie as they were staged."""
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "old_schema.py").write_text(
        "import pandera.polars as pa\n"
        "class Model(pa.DataFrameModel):\n"
        "    customer_id: str\n"
        "    region: str\n"
    )
    walked = bench.walk(bench.registry(size=200), {"record_schema": "old_schema.Model"})
    (tmp_path / "old_schema.py").unlink()
    sys.modules.pop("old_schema")

    report = Audit(walked.scan.name, walked.generation, workspace=walked.workspace).run()

    assert (report.agrees, report.level) == (True, "bodies"), report.disagreements
    assert report.not_computed == ()


@pytest.mark.long
def test_an_audit_asks_nothing_of_the_source(sealed_once: SealedLake) -> None:
    """Its workspace has no token and no registry."""
    workspace: Workspace = sealed_once.workspace()

    report = Audit(sealed_once.scan.name, sealed_once.second, workspace=workspace).run()

    assert report.agrees


def test_list_cut_inside_a_record_is_judged_by_the_audit_as_by_the_receipt(bench):
    edits = {"source.nested": [{"at": "members", "cap": 2}], "record_schema": ...}
    walked = bench.walk_records([[b'{"id":"a","members":[1,2]}']], edits)
    assert walked.receipt.coverage_status == "unknown"

    report = Audit("things", walked.generation, workspace=walked.workspace).run()

    assert report.disagreements == ()


def test_receipt_of_before_is_not_blamed_for_members_that_came_later(sealed: SealedLake) -> None:
    workspace = sealed.workspace()
    receipts = workspace.receipts(sealed.scan.name)
    stored = receipts.read(sealed.second, trust=workspace.trust)
    statement = json.loads(statement_bytes(stored.receipt))
    del statement["predicate"]["merkle"]["key_fields"]
    payload = canonical_json(statement)
    signer = signing_signer(workspace.project, now=workspace.clock(), create="never")
    sealed.receipt_file().write_bytes(sign(payload, signer=signer))

    report = sealed.audit()

    assert "merkle.key_fields" in names(report, None)
    assert not {name for name in names(report, False) if name.startswith("merkle")}
