"""What is dropped or masked before storing is in no file, and the proof holds over what is left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from scan_pipeline.core.redacted_paths import RedactedPaths, RedactFacts, redacted
from scan_pipeline.simulator.script import Script
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.restage import restage
from scan_pipeline_tests.conftest import Bench

REDACT = {"drop": ["secret", "contact.phone"], "mask": ["name", "contact.mail", "n"]}

RECORDS = [
    [
        b'{"id": "a", "name": "Ada SECRETNAME", "n": 17, "secret": {"pin": "SECRETPIN"}}',
        b'{"id":"b","contact":[{"phone":"SECRETPHONE","mail":"SECRETMAIL","kind":"work"},{}]}',
    ],
    [],
    [b'{"id":"c","name":null,"contact":{"phone":"SECRETPHONE2"}}'],
]


def test_paths_are_taken_out_through_lists_and_of_missing_members_nothing() -> None:
    facts = RedactFacts(drop=(("a", "x"), ("gone",)), mask=(("a", "y"), ("b",)))

    value = {"a": [{"x": 1, "y": "t", "z": 2}, {"y": 5}, 3], "b": {"c": 1}}

    assert redacted(value, facts) == {"a": [{"y": "[masked]", "z": 2}, {"y": None}, 3], "b": None}
    assert redacted("bare", facts) == "bare"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"source.redact": {"drop": ["id"]}}, "touches 'id', the key field"),
        ({"source.redact": {"mask": ["n"]}, "contract.partition_by": "n"}, "the partition_by"),
        (
            {"source.redact": {"drop": ["id.part"]}},
            "touches 'id', the key field",
        ),
        ({"source.redact": {}}, "no path"),
        ({"source.redact": {"drop": ["n"], "mask": ["n"]}}, "a path twice"),
    ],
)
def test_what_the_proof_rests_on_is_not_redacted(things: Any, edits: Any, message: str) -> None:
    with pytest.raises(ScanFileError, match=message):
        things(edits)


def decoded(lake: Path) -> Iterator[bytes]:
    for file in lake.rglob("*"):
        if file.is_file():
            yield file.read_bytes()
        if file.suffix == ".parquet":
            yield str(pq.ParquetFile(file).read().to_pylist()).encode()


def test_redacted_members_are_in_no_file_and_the_receipt_says_which(bench: Bench) -> None:
    walked = bench.walk_records(RECORDS, {"source.redact": REDACT, "record_schema": ...})
    receipt = walked.receipt

    assert walked.verdict == ("verified", "all_records_in_snapshot", True)
    assert receipt.redacted_paths == RedactedPaths(
        dropped=("secret", "contact.phone"), masked=("name", "contact.mail", "n")
    )
    assert receipt.merkle.leaf_encoding == "canonical-json/v1"
    store = walked.workspace.store("things", walked.generation)
    bodies = b"".join(body for _, body in store.bodies())
    assert b'"contact":[{"kind":"work","mail":"[masked]"},{}]' in bodies
    assert b"SECRET" not in bodies
    assert not any(b"SECRET" in text for text in decoded(Path(walked.workspace.project.lake)))
    report = Audit("things", walked.generation, workspace=walked.workspace).run()
    assert (report.disagreements, report.level) == ((), "bodies")
    again = restage(walked.scan, walked.generation, workspace=walked.workspace)
    assert again.receipt.merkle.root == receipt.merkle.root
    plain = bench.walk_records(RECORDS, {"record_schema": ...})
    assert plain.receipt.redacted_paths is None
    assert plain.receipt.scope_digest != receipt.scope_digest


def test_record_that_cannot_be_taken_apart_is_not_stored(bench: Bench) -> None:
    twice = [[b'{"id":"a","secret":1,"secret":"SECRET"}']]

    walked = bench.walk_records(twice, {"source.redact": REDACT})

    assert walked.verdict[0] == "failed"
    assert "body_unparsable" in walked.codes
    assert not any(b"SECRET" in text for text in decoded(Path(walked.workspace.project.lake)))


def test_shipped_scan_holds_its_proof_over_masked_records(bench: Bench) -> None:
    """Rechecks under the pin compare what is stored; two nights of one source have one root."""
    edits = {
        "source.redact": {"drop": ["balance"], "mask": ["email", "name"]},
        "record_schema": ...,
    }
    walked = bench.walk(bench.registry(size=120, script=Script()), edits)
    again = walked.again()

    assert walked.verdict == again.verdict == ("verified", "all_records_in_snapshot", True)
    assert walked.receipt.merkle.root == again.receipt.merkle.root
    published = walked.published()
    assert published is not None
    assert set(published["email"]) == set(published["name"]) == {"[masked]"}
    assert "balance" not in published.columns
