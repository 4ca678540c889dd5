"""Whatever somebody makes of receipts, their table or the trust in them is named and refused."""

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner

from scan_pipeline.core.errors import (
    ConfigurationError,
    EvidenceError,
    GateClosedError,
    TamperedError,
)
from scan_pipeline.stages.naming import free_generation
from scan_pipeline.stages.publish import published_generation
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import repair_published
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project
from scan_pipeline.store.trust import sign
from scan_pipeline_tests.stages.tampering import (
    SealedLake,
    alter,
    append,
    opens,
    rows,
    with_value,
    without,
)

pytestmark = pytest.mark.long


def confirm(sealed: SealedLake) -> None:
    """Hold the newest receipt against its table, as a reader does who opens records."""
    workspace = sealed.workspace()
    receipts = workspace.receipts(sealed.scan.name)
    receipts.confirm(receipts.read(sealed.second, trust=workspace.trust))


def edit_payload(envelope: dict, edit: Callable[[dict], None]) -> dict:
    statement = json.loads(base64.b64decode(envelope["payload"]))
    edit(statement["predicate"])
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    return {**envelope, "payload": base64.b64encode(payload).decode()}


def make_whole(predicate: dict) -> None:
    predicate["records_observed"] += 1


@pytest.mark.parametrize("what", ["payload", "signature", "appended signature", "re-signed"])
def test_receipt_edited(sealed: SealedLake, what: str) -> None:
    """Also in the table, where the file came from: only a trusted key makes a receipt."""
    envelope = json.loads(sealed.receipt_file().read_bytes())
    match what:
        case "payload":
            envelope = edit_payload(envelope, make_whole)
        case "signature":
            signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
            signature[0] ^= 1
            envelope["signatures"][0]["sig"] = base64.b64encode(bytes(signature)).decode()
        case "appended signature":
            envelope["signatures"] *= 2
        case _:
            payload = base64.b64decode(edit_payload(envelope, make_whole)["payload"])
            stranger = CryptoSigner(Ed25519PrivateKey.from_private_bytes(bytes(32)))
            envelope = json.loads(sign(payload, signer=stranger))
    written = json.dumps(envelope, sort_keys=True, separators=(",", ":"))
    sealed.receipt_file().write_text(written)
    everything = with_value(lambda _: True, envelope=written)
    alter(sealed.table("receipts"), sealed.second, everything)

    report = sealed.audit()

    assert {each.name for each in report.disagreements} == {"signature"}
    assert (report.level, report.receipt_id) == ("receipt", None)
    collection = Collection(sealed.scan, workspace=sealed.workspace())
    with pytest.raises(TamperedError) as refused:
        collection.generation(sealed.second)
    assert refused.value.what == "signature"
    # It keeps nobody from the generation before it, and everybody is told.
    assert collection.latest().receipt.scan_generation == sealed.first
    ((named, why),) = collection.standing().newer
    assert named == sealed.second
    assert why.startswith("has no receipt: found ")


@pytest.mark.parametrize("of", ["another generation", "another scan"])
def test_receipt_of_another_put_in_its_place(sealed: SealedLake, of: str) -> None:
    """Each is signed by the trusted key; it is filed under another name than its own."""
    others = {
        "another generation": sealed.receipt_file(sealed.first),
        "another scan": sealed.receipt_file(sealed.third, scan=sealed.other.name),
    }
    shutil.copy(others[of], sealed.receipt_file())

    assert sealed.wrong() == {"receipt"}
    with pytest.raises(TamperedError) as refused:
        opens(sealed)
    assert refused.value.what == "receipt"


def test_receipt_of_another_contract_opens_nothing(sealed: SealedLake) -> None:
    """The scan file was edited since: the receipt is right, and not of this question."""
    narrowed = replace(sealed.scan.source, params={"region": "eu"})
    question = replace(sealed.scan, source=narrowed)

    with pytest.raises(GateClosedError, match="another contract"):
        Collection(question, workspace=sealed.workspace()).generation(sealed.second)


def test_second_receipt_of_one_generation(sealed: SealedLake) -> None:
    row = rows(sealed.table("receipts"), sealed.second)
    twice = row.append_column("scan_generation", pa.array([sealed.second]))
    append(sealed.table("receipts"), twice)

    assert "receipts of the generation" in sealed.wrong()
    with pytest.raises(TamperedError, match="2 receipts"):
        confirm(sealed)


def test_receipt_that_was_never_committed(sealed: SealedLake) -> None:
    """A file alone, were it signed by the trusted key: the table's commit makes a receipt."""
    alter(sealed.table("receipts"), sealed.second, without(lambda _: True))

    assert sealed.wrong() == {"receipts of the generation"}
    with pytest.raises(TamperedError, match="not the one that was committed"):
        confirm(sealed)


def test_receipt_as_it_was_committed_is_confirmed(sealed_once: SealedLake) -> None:
    confirm(sealed_once)


@pytest.mark.parametrize("column", ["accepted", "coverage_status", "receipt_id", "envelope"])
def test_row_of_the_receipts_table_edited(sealed: SealedLake, column: str) -> None:
    """Whoever queries the table instead of reading receipts would believe it."""
    value = False if column == "accepted" else "failed"
    alter(sealed.table("receipts"), sealed.second, with_value(lambda _: True, **{column: value}))

    assert sealed.wrong() == {"receipts of the generation"}


def test_trust_file_inside_the_lake_is_refused(sealed: SealedLake) -> None:
    """Whoever can write the lake could vouch for what it holds."""
    inside = sealed.lake / "scan_pipeline_trust.json"
    shutil.copy(sealed.project.trust, inside)
    project = Project(**{**sealed.project.__dict__, "trust": inside})

    with pytest.raises(ConfigurationError, match="inside the lake"):
        Workspace(project, environ={}).trust  # noqa: B018  # reading it is the act


FUTURE = "20991231T000000Z"


@pytest.mark.parametrize("junk", ["a copy of another's", "no receipt", "a folder"])
def test_file_that_is_no_receipt_of_its_name_blocks_nobody(sealed: SealedLake, junk: str) -> None:
    """A copy under a newer name is not that generation's; nor does it name the next one."""
    place = sealed.receipt_file(FUTURE)
    match junk:
        case "a folder":
            place.mkdir()
        case "no receipt":
            place.write_bytes(b"junk")
        case _:
            shutil.copy(sealed.receipt_file(), place)
    workspace = sealed.workspace()
    collection = Collection(sealed.scan, workspace=workspace)

    assert collection.latest().receipt.scan_generation == sealed.second
    assert [name for name, _ in collection.standing().newer] == [FUTURE]
    assert not workspace.receipts(sealed.scan.name).has(FUTURE)
    assert free_generation(sealed.scan.name, workspace=workspace) < FUTURE
    repair_published(sealed.scan, workspace=workspace)
    assert published_generation(sealed.scan.name, workspace=workspace) == sealed.second
    assert sealed.audit().disagreements == ()
    with pytest.raises(EvidenceError):
        collection.generation(FUTURE)
