"""Bundles: what an outsider finds out with one zip file and a fingerprint."""

import base64
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline.simulator.scenarios import scenario
from scan_pipeline.stages.bundle import bundle
from scan_pipeline.stages.bundling.audit import audit_bundle
from scan_pipeline.stages.bundling.manifest import MANIFEST, MANIFEST_TYPE
from scan_pipeline.stages.restage import restage
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.trust import sign

pytestmark = pytest.mark.long

LIVE = {
    "source.snapshot": ...,
    "source.params": {"view": "live"},
    "contract.consistency": "live",
    "contract.accept": {"scope": "records_encountered_in_live_traversal"},
}


@pytest.fixture(scope="module")
def walked(shared_bench):
    return shared_bench.walk(shared_bench.registry(size=250))


@pytest.fixture(scope="module")
def whole(walked, tmp_path_factory):
    """A bundle with everything in it; tests copy it and change the copy."""
    folder = tmp_path_factory.mktemp("whole")
    return bundle(walked.night.stored, folder, workspace=walked.workspace, records="bytes")[0]


def owners_fingerprint(walked):
    return walked.workspace.trust.keys[0].fingerprint


def audited(path, walked):
    return audit_bundle(path, fingerprints=[owners_fingerprint(walked)])


def wrong(path, walked):
    found = audited(path, walked)
    assert not found.agrees
    return " ".join(each.name for each in found.disagreements)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return [(each.filename, archive.read(each)) for each in archive.infolist()]


def put(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


@pytest.mark.parametrize(
    ("records", "level"), [("none", "partitions"), ("table", "leaves"), ("bytes", "bytes")]
)
def test_bundle_is_checked_with_a_fingerprint_alone(walked, tmp_path, records, level):
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace, records=records)
    found = audited(path, walked)

    assert path.name == f"customers.{walked.generation}.verified.bundle.zip"
    assert found.disagreements == ()
    assert (found.level, found.receipt_id) == (level, walked.night.stored.receipt_id)
    assert found.statement == walked.receipt.statement


def test_trust_file_does_in_place_of_a_fingerprint(walked, whole):
    assert audit_bundle(whole, trust=walked.workspace.trust).agrees


def test_key_in_the_bundle_alone_is_no_trust(whole):
    found = audit_bundle(whole)

    assert (found.agrees, found.level) == (False, None)
    assert "no trust" in found.checks[0].found


def test_another_fingerprint_is_another_hand(whole):
    found = audit_bundle(whole, fingerprints=["SHA256:" + "0" * 64])

    assert [each.name for each in found.disagreements] == ["keys"]


def test_what_is_no_fingerprint_is_said_to_be_none(whole):
    with pytest.raises(ContractError, match="64 hex digits"):
        audit_bundle(whole, fingerprints=["SHA256:abc"])


def test_fingerprint_may_be_typed_as_people_do(walked, whole):
    plain = owners_fingerprint(walked).removeprefix("sha256:").upper()
    spaced = ":".join(plain[at : at + 2] for at in range(0, 64, 2))

    assert audit_bundle(whole, fingerprints=[f"SHA256:{spaced}"]).agrees


def test_no_body_token_or_secret_is_in_it(walked, whole):
    """Tokens stand as digests; the records are there since they were asked for."""
    text = b"".join(content for name, content in members(whole) if "records/" not in name)

    assert b"cursor_in_digest" in text
    lines = dict(members(whole))["ledger.jsonl"].splitlines()
    assert all({"cursor_in", "cursor_out", "body"}.isdisjoint(json.loads(each)) for each in lines)
    assert b"customer-17" not in text
    assert walked.workspace.environ["REGISTRY_TOKEN"].encode() not in text
    store = walked.workspace.store("customers", walked.generation)
    sealed = [event.cursor_out for event in store.events() if event.cursor_out]
    assert sealed
    assert not any(each in text for each in sealed)


NAMES = [
    "CONTRACT",
    "contract.json",
    "findings.json",
    "GUIDE.md",
    "keys.json",
    "ledger.jsonl",
    "manifest.dsse.json",
    "manifest.key.pem",
    "partition_summaries.json",
    "receipt.dsse.json",
    "receipt.json",
    "receipt.key.pem",
    "records/leaves.parquet",
    "REPORT.md",
][1:]


def test_every_kind_of_file_is_tampered_with_below(whole):
    tables = [name for name, _ in members(whole) if name not in NAMES]

    assert len(tables) == 2
    assert {*NAMES, *tables} == {name for name, _ in members(whole)}


@pytest.mark.parametrize("name", [*NAMES, "table", "note"])
@pytest.mark.parametrize("change", ["edited", "cut", "removed"])
def test_file_that_was_changed_is_named(walked, whole, tmp_path, name, change):
    files = dict(members(whole))
    if name in ("table", "note"):
        ending = ".note.json" if name == "note" else ".verified.parquet"
        name = next(each for each in files if each.endswith(ending))
    content = files.pop(name)
    middle = len(content) // 2
    if change == "edited":
        files[name] = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    elif change == "cut":
        files[name] = content[:middle]
    told = wrong(put(tmp_path / "b.zip", files.items()), walked)

    if name == MANIFEST:
        assert told == "manifest"
    elif name != "keys.json":
        assert f"file {name}" in told


@pytest.mark.parametrize("name", ["REPORT2.md", "records/more.parquet", "receipt.dsse.json.bak"])
def test_file_that_was_added_is_named(walked, whole, tmp_path, name):
    path = put(tmp_path / "b.zip", [*members(whole), (name, b"{}")])

    assert wrong(path, walked) == f"file {name}"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["REPORT.md", "manifest.dsse.json"])
def test_name_that_stands_twice_is_refused(walked, whole, tmp_path, name):
    path = put(tmp_path / "b.zip", [*members(whole), (name, b"another")])

    assert wrong(path, walked) == "bundle"


@pytest.mark.parametrize(
    "name",
    [
        "../REPORT.md",
        "/etc/passwd",
        "a/../../b",
        "C:/x",
        "a\\..\\b",
        "./REPORT.md",
        "a//b",
        "folder/",
        "REPORT.md\x00.txt",
    ],
)
def test_name_that_leads_elsewhere_is_refused(walked, whole, tmp_path, name):
    path = put(tmp_path / "b.zip", [*members(whole), ("PLACEHOLDER" + "x" * 20, b"")])
    # zipfile writes some of these names otherwise than they were given
    raw = path.read_bytes()
    padded = name.encode().ljust(31, b"x")
    path.write_bytes(raw.replace(b"PLACEHOLDER" + b"x" * 20, padded))

    assert wrong(path, walked) in ("bundle", f"file {padded.decode()}")
    if name != "folder/":
        assert wrong(path, walked) == "bundle"


def test_link_is_refused(walked, whole, tmp_path):
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(shutil.copy(whole, path), "a") as archive:
        link = zipfile.ZipInfo("elsewhere")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")

    assert wrong(path, walked) == "bundle"


def test_what_is_no_zip_is_refused(walked, whole, tmp_path):
    path = tmp_path / "b.zip"
    path.write_bytes(whole.read_bytes()[:-40])

    assert wrong(path, walked) == "bundle"


def test_file_that_unpacks_to_more_than_was_signed_is_not_read_on(walked, whole, tmp_path):
    files = {**dict(members(whole)), "REPORT.md": b" " * 10_000_000}
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    found = audited(path, walked)

    assert "bytes allowed" in found.disagreements[0].found


@pytest.mark.parametrize(
    "name",
    ["ledger.jsonl", "partition_summaries.json", "receipt.dsse.json", "records/leaves.parquet"],
)
def test_file_of_another_bundle_of_the_same_scan_is_found_out(
    shared_bench, walked, whole, tmp_path, name
):
    other = shared_bench.walk(shared_bench.registry(size=260), project=walked.workspace.project)
    path, _ = bundle(other.night.stored, tmp_path, workspace=other.workspace, records="bytes")
    files = {**dict(members(whole)), name: dict(members(path))[name]}

    assert f"file {name}" in wrong(put(tmp_path / "b.zip", files.items()), walked)


def test_bundle_signed_again_with_another_key_is_refused(shared_bench, walked, tmp_path):
    """Whole and consistent, and the key is in it; its fingerprint is not the owner's."""
    forger = shared_bench.walk(shared_bench.registry(size=240))
    path, _ = bundle(forger.night.stored, tmp_path, workspace=forger.workspace)

    assert audited(path, forger).agrees
    assert wrong(path, walked) == "keys"


def test_manifest_signed_again_by_a_key_slipped_into_the_bundle_is_refused(
    shared_bench, walked, whole, tmp_path
):
    forger = shared_bench.walk(shared_bench.registry(size=40))
    signer = signing_signer(forger.workspace.project, now=shared_bench.clock(), create="never")
    files = dict(members(whole))
    envelope = json.loads(files[MANIFEST])

    payload = base64.b64decode(envelope["payload"])
    files[MANIFEST] = sign(payload, signer=signer, payload_type=MANIFEST_TYPE)
    shown = json.loads(files["keys.json"])
    added = forger.workspace.trust.keys[0]
    shown.append({"public": added.public, "fingerprint": shown[0]["fingerprint"]})
    files["keys.json"] = json.dumps(shown).encode()

    assert wrong(put(tmp_path / "b.zip", files.items()), walked) == "manifest"


def test_receipt_is_no_manifest(walked, whole, tmp_path):
    files = dict(members(whole))
    files[MANIFEST] = files["receipt.dsse.json"]

    assert wrong(put(tmp_path / "b.zip", files.items()), walked) == "manifest"


@pytest.fixture
def resigned(walked, whole, tmp_path, shared_bench):
    """Makes bundles whose owner signed what does not fit together: only the figures tell."""

    def resign(changed):
        files = {**dict(members(whole)), **changed}
        manifest = json.loads(base64.b64decode(json.loads(files.pop(MANIFEST))["payload"]))
        manifest["files"] = [
            {"path": name, "size": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in files.items()
        ]
        signer = signing_signer(walked.workspace.project, now=shared_bench.clock(), create="never")
        payload = json.dumps(manifest).encode()
        files[MANIFEST] = sign(payload, signer=signer, payload_type=MANIFEST_TYPE)
        return put(tmp_path / "b.zip", files.items())

    return resign


def test_ledger_without_a_page_breaks_the_chain_whoever_signs_it(walked, whole, resigned):
    lines = dict(members(whole))["ledger.jsonl"].splitlines(keepends=True)
    path = resigned({"ledger.jsonl": b"".join(lines[:2] + lines[3:])})
    found = audited(path, walked)

    assert "ledger" in wrong(path, walked)
    assert found.level == "receipt"


def test_partition_that_was_edited_gives_another_root_whoever_signs_it(walked, whole, resigned):
    rows = json.loads(dict(members(whole))["partition_summaries.json"])
    rows[0]["root"] = "0" * 64
    path = resigned({"partition_summaries.json": json.dumps(rows).encode()})

    assert "merkle.root" in wrong(path, walked)
    assert audited(path, walked).level == "ledger"


def test_bytes_of_another_record_are_found_out_whoever_signs_them(walked, whole, resigned):

    table = pq.read_table(io.BytesIO(dict(members(whole))["records/leaves.parquet"]))
    texts = table["record"].to_pylist()
    texts[3] = texts[3] + b" "
    columns = [*table.columns[:3], pa.array(texts, pa.binary())]
    changed = pa.Table.from_arrays(columns, schema=table.schema)
    out = io.BytesIO()
    pq.write_table(changed, out)
    path = resigned({"records/leaves.parquet": out.getvalue()})

    assert wrong(path, walked) == "bytes of the records"
    assert audited(path, walked).level == "leaves"


def test_plain_receipt_that_says_more_is_found_out_whoever_signs_it(walked, whole, resigned):
    told = json.loads(dict(members(whole))["receipt.json"])
    path = resigned({"receipt.json": json.dumps({**told, "records_observed": 9_999}).encode()})

    assert wrong(path, walked) == "receipt.json"


def test_failed_night_has_its_bundle_and_no_records(bench, tmp_path):
    walked = bench.walk(scenario("page_skipped_count_matches"))
    stored = walked.night.stored
    path, _ = bundle(stored, tmp_path, workspace=walked.workspace)

    assert ".FAILED." in path.name
    assert audited(path, walked).agrees
    report = dict(members(path))["REPORT.md"].decode()
    assert "**failed**" in report
    assert "## Findings" in report
    with pytest.raises(GateClosedError, match="opens to nobody"):
        bundle(stored, tmp_path / "r.zip", workspace=walked.workspace, records="table")
    assert not (tmp_path / "r.zip").exists()


def test_part_is_named_partial_and_its_rows_are_labelled(bench, tmp_path):
    walked = bench.walk(bench.registry(size=120), LIVE)
    stored = walked.night.stored
    path, _ = bundle(stored, tmp_path, workspace=walked.workspace, records="bytes")

    assert ".PARTIAL." in path.name
    assert audited(path, walked).level == "bytes"
    assert any(".PARTIAL.parquet" in name for name, _ in members(path))


def test_empty_collection_has_a_bundle(bench, tmp_path):
    walked = bench.walk_records([[]])
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace, records="bytes")

    assert audited(path, walked).agrees


@pytest.mark.parametrize("by", [{}, {"contract.partition_by": "n"}])
def test_repeats_and_partitions_by_a_field_agree(bench, tmp_path, by):
    records = [b'{"id":"t%d","n":%d}' % (n, n % 3) for n in range(30)]
    edits = {"contract.delivery": "at_least_once", **by}
    walked = bench.walk_records([records, records[:4]], edits, total=30)
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace, records="bytes")
    found = audited(path, walked)

    assert walked.receipt.duplicate_ids == 4
    assert (found.agrees, found.level) == (True, "bytes")


def test_superseded_receipt_is_told_so(bench, tmp_path):

    walked = bench.walk_records([[b'{"id":"a","n":1}']])
    restage(walked.scan, walked.generation, workspace=walked.workspace)
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace)
    found = audited(path, walked)

    assert found.agrees
    assert found.superseded_by is not None
    assert found.superseded_by in dict(members(path))["REPORT.md"].decode()


def test_name_that_is_taken_is_left_alone(walked, tmp_path):
    path = tmp_path / "mine.zip"
    path.write_text("mine")

    with pytest.raises(ContractError, match="already there"):
        bundle(walked.night.stored, path, workspace=walked.workspace)
    assert path.read_text() == "mine"


def test_text_of_the_source_makes_no_markup_in_the_report(bench, tmp_path):
    twice = [b'{"id":"a | <b> # `x`","n":1}']
    walked = bench.walk_records([twice, twice])
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace)
    text = dict(members(path))["REPORT.md"].decode()

    assert r"a \| \<b\> # \`x\`" in text
    assert "a | <b>" not in text


def test_guide_is_right_to_the_letter(walked, whole, tmp_path):
    """What it tells to do by hand is done: with Python alone, and openssl."""
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(tmp_path)
    text = (tmp_path / "GUIDE.md").read_text("utf-8")
    python = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    shell = re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]
    by_hand = [sys.executable, "-I", "-c", python]
    done = subprocess.run(by_hand, cwd=tmp_path, capture_output=True, text=True, check=True)
    signed = subprocess.run(
        ["/bin/sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == walked.receipt.statement
    assert signed.stdout.count("Signature Verified Successfully") == 2
    assert signed.stdout.count(owners_fingerprint(walked).removeprefix("sha256:")) == 2

    for each in ("manifest.signed", "manifest.sig", "receipt.signed", "receipt.sig"):
        (tmp_path / each).unlink()
    (tmp_path / "REPORT.md").write_text("All is well.")
    done = subprocess.run(by_hand, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "DISAGREES: REPORT.md" in done.stderr


def test_bundle_of_a_receipt_whose_ledger_was_edited_is_not_made(bench, tmp_path):
    walked = bench.walk_records([[b'{"id":"a","n":1}']])
    stored = walked.night.stored
    other = replace(
        stored, receipt=replace(stored.receipt, cursor_chain_digest="sha256:" + "0" * 64)
    )

    with pytest.raises(Exception, match="expected sha256:000"):
        bundle(other, tmp_path, workspace=walked.workspace)
    assert list(tmp_path.glob("*.zip")) == []


def test_second_walk_is_linked_again_and_follows_the_first(bench, tmp_path):
    edits = {
        "source.snapshot": ...,
        "source.count": ...,
        "contract.consistency": "two_equal_walks",
    }
    walked = bench.walk_records([[b'{"id":"a","n":1}'], [b'{"id":"b","n":2}']], edits)
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace, records="bytes")
    found = audited(path, walked)

    assert walked.receipt.coverage_status == "corroborated"
    assert (found.disagreements, found.level) == ((), "bytes")
    told = {each.name: each.agrees for each in found.checks}
    assert told["chain of the second walk"] is True
    assert told["walks follow on one another"] is True


def test_partitions_are_told_as_they_were_hashed_where_the_records_are_gone(bench, tmp_path):
    """Text and integer look alike in the lake; the root tells them apart."""
    records = [b'{"id":"t%d","n":%d}' % (n, n % 3) for n in range(9)]
    walked = bench.walk_records([records], {"contract.partition_by": "n"})
    shutil.rmtree(f"{walked.workspace.project.lake}/staging/things/records")
    path, _ = bundle(walked.night.stored, tmp_path, workspace=walked.workspace)
    rows = json.loads(dict(members(path))["partition_summaries.json"])

    assert sorted(row["partition"] for row in rows) == ["0", "1", "2"]
    assert audited(path, walked).level == "partitions"
