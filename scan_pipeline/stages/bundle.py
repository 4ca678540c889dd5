"""One file about one generation that somebody checks who has neither the lake nor the project."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

import polars as pl

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import ConfigurationError, GateClosedError, TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.value import adapter, record
from scan_pipeline.stages import bundle_manifest as parts
from scan_pipeline.stages.bundle_archive import BundleWriter, written
from scan_pipeline.stages.bundle_guide import guide
from scan_pipeline.stages.bundle_leaves import leaves_file
from scan_pipeline.stages.bundle_ledger import ledger_text
from scan_pipeline.stages.bundle_manifest import BundleManifest, LeftOut
from scan_pipeline.stages.bundle_report import report
from scan_pipeline.stages.evidence import check_chain
from scan_pipeline.stages.export import export, note_path, verdict_of
from scan_pipeline.stages.partition_roots import partition_roots
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.record_texts import RecordTexts
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection
from scan_pipeline.stages.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.named_keys import pem_of, shown_keys
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.trust import TrustedKey, sign

Depth: TypeAlias = Literal["none", "table", "bytes"]
"""How much of the records a bundle holds: nothing, the table and the hashes, or the bytes too."""

Level: TypeAlias = Literal["receipt", "ledger", "partitions", "leaves", "bytes"]
"""How deep an audit of a bundle could look; see the guide."""

COUNTS: Final = ("records", "unique_keys", "duplicates")
"""Figures of a partition in a bundle; its first and last key are left out, being records' own."""

_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


@record
class Gathered:
    """What the lake still holds of a generation's proof."""

    events: Sequence[Event]
    second: Sequence[Event]
    contract: Scan | None
    facts: Mapping[str, Any]
    summaries: Sequence[Mapping[str, Any]]
    left_out: tuple[LeftOut, ...]

    @property
    def level(self) -> Level:
        """How deep an audit of this can look, records apart."""
        if not self.events:
            return "receipt"
        lacking = {each.part for each in self.left_out}
        return "ledger" if "partition_summaries" in lacking else "partitions"


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
    held = _gather(stored, store, workspace)
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


def _gather(stored: StoredReceipt, store: GenerationStore, workspace: Workspace) -> Gathered:
    """Look at what is left of a generation, and hold it against the receipt.

    Raises:
        TamperedError: it is not what the receipt is about.
    """
    receipt, left_out = stored.receipt, list[LeftOut]()
    events = store.events() if store.pages().exists() else []
    contract, facts = None, dict[str, Any]()
    second = list[Event]()
    if events:
        _same_chain(events, receipt.cursor_chain_digest)
        if receipt.second_walk is not None:
            second = store.events(SECOND_WALK)
            _same_chain(second, receipt.second_walk.cursor_chain_digest)
        opened = store.opened()
        contract = contract_of(opened)
        facts = {name: opened.facts[name] for name in ("contract", "schema_fingerprint")}
    else:
        why = "its rows were removed from the lake"
        left_out += [LeftOut(part="ledger", why=why), LeftOut(part="contract", why=why)]
    summaries = list[dict[str, Any]]()
    if receipt.merkle.root is None:
        why = "the receipt has no root, since two versions of a record conflict"
        left_out.append(LeftOut(part="partition_summaries", why=why))
    elif receipt.merkle.partitions and not _rows(store):
        left_out.append(LeftOut(part="partition_summaries", why="they are gone from the lake"))
    else:
        summaries = _summaries(receipt, store, workspace)
    return Gathered(
        events=events,
        second=second,
        contract=contract,
        facts=facts,
        summaries=summaries,
        left_out=tuple(left_out),
    )


def _same_chain(events: Sequence[Event], signed: str) -> None:
    if (found := f"sha256:{check_chain(events).hex()}") != signed:
        raise TamperedError("pages", f"the events give {found}; expected {signed}")


def _rows(store: GenerationStore) -> list[dict[str, Any]]:
    return store.read_summaries() if store.summaries().exists() else []


def _summaries(
    receipt: Receipt, store: GenerationStore, workspace: Workspace
) -> list[dict[str, Any]]:
    """Return the summaries with the values of their partitions in canonical JSON.

    The lake has the values as text, and the records beside them tell what they are. Where those are
    gone the root tells: only one reading gives it.

    Raises:
        TamperedError: no reading does.
    """
    if not receipt.merkle.partitions:
        return []
    try:
        roots = partition_roots(receipt, kind=None, workspace=workspace)
    except TamperedError:
        if any(_NUMBER.fullmatch(row["partition"] or "0") is None for row in _rows(store)):
            raise
        roots = partition_roots(receipt, kind=pl.Int64(), workspace=workspace)
    counts = {row["partition"]: row for row in _rows(store)}
    return [
        {
            **{name: counts[_text(each.value)][name] for name in COUNTS},
            "partition": canonical_json(each.value).decode(),
            "leaf_count": each.leaf_count,
            "root": each.root.hex(),
        }
        for each in roots
    ]


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)


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
    bundled.put(parts.LEAVES, leaves_file(rows, scan, texts=texts))


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
