"""One file about one generation that somebody checks who has neither the lake nor the project."""

import base64
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.errors import ConfigurationError, GateClosedError, TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import adapter
from scan_pipeline.stages.bundling import manifest as parts
from scan_pipeline.stages.bundling.archive import BundleWriter, written
from scan_pipeline.stages.bundling.gathering import Gathered, Level, gather
from scan_pipeline.stages.bundling.guide import guide
from scan_pipeline.stages.bundling.leaves import leaves_file
from scan_pipeline.stages.bundling.ledger import ledger_text
from scan_pipeline.stages.bundling.manifest import BundleManifest, LeftOut
from scan_pipeline.stages.bundling.report import report
from scan_pipeline.stages.readers.export import export, note_path, verdict_of
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.records.texts import RecordTexts
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.named_keys import pem_of, shown_keys
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.trust import TrustedKey, sign

Depth: TypeAlias = Literal["none", "table", "bytes"]
"""How much of the records a bundle holds: nothing, the table and the hashes, or the bytes too."""


def bundle(
    stored: StoredReceipt, path: Path, *, workspace: Workspace, records: Depth = "none"
) -> tuple[Path, BundleManifest]:
    """Write the bundle of a generation.

    Args:
        stored: its receipt, signature checked.
        path: the file; a folder is given the bundle under its own name.
        workspace: where the generation lies, and the key that signs the bundle.
        records: how much of the records is included.

    Returns:
        The file, and the manifest of it.

    Raises:
        ContractError: something of that name is there.
        ConfigurationError: there is no key to sign with.
        GateClosedError: records are wanted and the receipt opens them to nobody.
        TamperedError: what is stored is not what the receipt is about.
    """
    receipt = stored.receipt
    workspace.receipts(receipt.scan).confirm(stored)
    store = workspace.store(receipt.scan, receipt.scan_generation, evidence=_evidence(receipt))
    held = gather(stored, store, workspace)
    by = Shelf(receipt.scan, workspace=workspace).superseded_by(stored)
    now = workspace.clock()
    signer = signing_signer(workspace.project, now=now, create="never")
    keys = {
        "manifest": _trusted(signer.public_key.keyid, workspace),
        "receipt": _trusted(stored.key_id, workspace),
    }
    left_out = (*held.left_out, *_left_out(records))
    if path.is_dir():
        path /= bundle_name(receipt)
    with written(path) as bundled:
        _put_account(bundled, stored, held, workspace=workspace)
        if records != "none":
            if held.contract is None:
                raise TamperedError("pages", "the contract of these records is gone")
            _put_records(bundled, stored, held.contract, depth=records, workspace=workspace)
        once = tuple(dict.fromkeys(keys.values()))
        bundled.put(parts.KEYS, shown_keys(once))
        for name, key in keys.items():
            bundled.put(f"{name}.key.pem", pem_of(key))
        bundled.put(
            parts.REPORT,
            report(
                receipt,
                receipt_id=stored.receipt_id,
                fingerprint=keys["receipt"].fingerprint,
                superseded_by=by and by.receipt_id,
                left_out=left_out,
            ).encode(),
        )
        deepest: dict[Depth, Level] = {"none": held.level, "table": "leaves", "bytes": "bytes"}
        bundled.put(
            parts.GUIDE,
            guide(
                scan=receipt.scan,
                generation=receipt.scan_generation,
                fingerprints=tuple(each.fingerprint for each in once),
                level=held.level if held.level != "partitions" else deepest[records],
            ).encode(),
        )
        manifest = BundleManifest(
            scan=receipt.scan,
            scan_generation=receipt.scan_generation,
            receipt_id=stored.receipt_id,
            superseded_by=by and by.receipt_id,
            made_at=now,
            left_out=left_out,
            files=tuple(sorted(bundled.files, key=lambda each: each.path)),
        )
        payload = canonical_json(adapter(BundleManifest).dump_python(manifest, mode="json"))
        bundled.put(parts.MANIFEST, sign(payload, signer=signer, payload_type=parts.MANIFEST_TYPE))
    return path, manifest


def bundle_name(receipt: Receipt) -> str:
    """Return a bundle's name, e.g. `customers.20261130T020000Z.verified.bundle.zip`."""
    status, scope = receipt.coverage_status, receipt.conclusion_scope
    verdict = "FAILED" if status == "failed" else verdict_of(status, scope)
    return f"{receipt.scan}.{receipt.scan_generation}.{verdict}.bundle.zip"


def plain_receipt(payload: bytes) -> bytes:
    """Return the receipt as it was signed, out of the statement around it."""
    return canonical_json(json.loads(payload)["predicate"]) + b"\n"


def _evidence(receipt: Receipt) -> str:
    held = receipt.evidence.get("pages")
    return receipt.scan_generation if held is None else held.generation


def _trusted(key_id: str, workspace: Workspace) -> TrustedKey:
    found = next((each for each in workspace.trust.keys if each.keyid == key_id), None)
    if found is None:
        raise ConfigurationError(f"{workspace.trust.path} does not list {key_id}; expected it")
    return found


def _left_out(records: Depth) -> tuple[LeftOut, ...]:
    why = "it was made without them"
    if records == "none":
        return (LeftOut(part="records", why=why), LeftOut(part="record_bytes", why=why))
    return () if records == "bytes" else (LeftOut(part="record_bytes", why=why),)


def _put_account(
    bundled: BundleWriter, stored: StoredReceipt, held: Gathered, *, workspace: Workspace
) -> None:
    receipt = stored.receipt
    store = workspace.store(receipt.scan, receipt.scan_generation)
    envelope = store.receipts.envelope(receipt.scan_generation)
    bundled.put(parts.RECEIPT, envelope)
    payload = base64.b64decode(json.loads(envelope)["payload"])
    bundled.put(parts.PLAIN_RECEIPT, plain_receipt(payload))
    if held.events:
        bundled.put(parts.LEDGER, ledger_text(held.events))
        if held.second:
            bundled.put(parts.SECOND_LEDGER, ledger_text(held.second))
        bundled.put(parts.CONTRACT, canonical_json(held.facts) + b"\n")
    if not any(each.part == "partition_summaries" for each in held.left_out):
        bundled.put(parts.PARTITIONS, canonical_json(list(held.summaries)) + b"\n")
    bundled.put(parts.FINDINGS, canonical_json(store.findings_as_written()) + b"\n")


def _put_records(
    bundled: BundleWriter,
    stored: StoredReceipt,
    scan: Scan,
    *,
    depth: Depth,
    workspace: Workspace,
) -> None:
    opened = _opened(stored, scan, workspace)
    rows = opened.frame() if isinstance(opened, VerifiedCollection) else opened.labelled_frame()
    texts = None
    if depth == "bytes":
        evidence = _evidence(stored.receipt)
        store = workspace.store(scan.name, stored.receipt.scan_generation, evidence=evidence)
        texts = RecordTexts(store, workspace.source(scan))
    with TemporaryDirectory() as folder:
        path, _ = export(opened, Path(folder), form="parquet", workspace=workspace)
        for each in (path, note_path(path)):
            bundled.put(f"{parts.RECORDS}{each.name}", each.read_bytes())
    bundled.put(parts.LEAVES, leaves_file(rows, scan, texts=texts, redactions=opened.redactions))


def _opened(
    stored: StoredReceipt, scan: Scan, workspace: Workspace
) -> VerifiedCollection | PartialCollection:
    """Open the records as far as the receipt does."""
    receipt, collection = stored.receipt, Collection(scan, workspace=workspace)
    generation = receipt.scan_generation
    if is_whole(receipt.coverage_status, receipt.conclusion_scope):
        return collection.generation(generation, at_least="corroborated")
    if receipt.coverage_status == "failed":
        raise GateClosedError(
            scan=receipt.scan,
            generation=generation,
            reason="a failed generation opens to nobody; expected the bundle without its records",
        )
    return collection.partial(generation, accept=receipt.conclusion_scope)
