"""The collection completeness receipt: the signed account of one generation, for every outcome."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.second_walk import SecondWalk
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import (
    AssumptionBasis,
    Basis,
    ConclusionScope,
    Consistency,
    CoverageStatus,
    LeafEncoding,
    LimitName,
    Mode,
    Outcome,
    Severity,
    StopReason,
    Traversal,
)

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
"""in-toto attestation framework, Statement v1 (spec/v1/statement.md, read 2026-11-30)."""

PREDICATE_TYPE: Final = "urn:scan-pipeline:collection-completeness-receipt:v1"

MERKLE_DEFINITION: Final = "scan-pipeline/merkle/v1"


@record
class AdapterRevision:
    """Which code walked: its name and a revision that moves when its behaviour does."""

    name: str
    revision: str


@record
class ProviderRevision:
    """Whose documented facts the source was filled in with, and a digest of them."""

    name: str
    revision: str


@record
class Identity:
    """Who the source says we are."""

    principal: str | None
    tenant: str | None


@record
class IdentityEvidence:
    """The identity before the first page and after the last."""

    before: Identity
    after: Identity | None


@record
class ReceiptAssumption:
    """What has to be believed, and why."""

    name: str
    basis: AssumptionBasis


@record
class ReceiptExpectation:
    """One expectation and how it fared."""

    name: str
    expected: str | int | None
    observed: str | int | None
    result: Outcome


@record
class AcceptLevel:
    """The least that this scan accepts."""

    status: CoverageStatus
    scope: ConclusionScope
    nonconforming: int


@record
class Extraction:
    """Records by what became of them."""

    admitted: int
    nonconforming: int
    without_key: int


@record
class ReceiptFinding:
    """One finding as the receipt carries it."""

    code: str
    severity: Severity
    page: int | None
    key: str | None
    expected: str | None
    found: str | None
    cause: str
    remedy: str


@record
class FindingsDigest:
    """All findings by number and digest, and the most telling: heavy first, each code's first."""

    total: int
    digest: str
    first: tuple[ReceiptFinding, ...]


@record
class MerkleEvidence:
    """The tree over the collection's records; `root` is hex, or None where none can be.

    `key_fields` name a record and `partition_by` its partition (None for the key hash), so that
    what a place in the tree means is under the signature; older receipts do not say.
    """

    definition: Literal["scan-pipeline/merkle/v1"]
    leaf_encoding: LeafEncoding
    leaves: int
    partitions: int
    root: str | None
    key_fields: tuple[str, ...] = ()
    partition_by: str | None = None


@record
class TerminalEvidence:
    """What ended the walk: the declared signal and the page it stood on."""

    signal: str
    page: int


@record
class PinnedFileEvidence:
    """One file of a sealed generation; path relative to its table, size in bytes."""

    path: str
    size: int
    sha256: str


@record
class PinnedTableEvidence:
    """One table's rows of this generation, by content.

    Attributes:
        table: path below the lake root, e.g. `staging/customers/records`.
        generation: partition that holds the rows; another than the receipt's own after a restage.
        version: Delta version at sealing, a hint.
        rows: rows of the generation.
        files_digest: SHA-256 of the canonical JSON of the sorted (path, size, sha256).
        files: the files themselves.
    """

    table: str
    generation: str
    version: int
    rows: int
    files_digest: str
    files: tuple[PinnedFileEvidence, ...]


@record
class ReleasePolicy:
    """Who may read on the strength of this receipt."""

    opens_to: tuple[str, ...]
    policy: str


@record
class Receipt:
    """The account of one generation. Counts are records unless named otherwise; times are UTC."""

    receipt_version: Literal[1]
    scan: str
    scan_generation: str
    run_id: str
    restart_of: str | None
    supersedes: str | None
    mode: Mode
    tool: str
    query: Mapping[str, Any]
    query_digest: str
    scope_digest: str
    judgement_digest: str
    operation_digest: str
    adapter: AdapterRevision
    provider: ProviderRevision | None = None
    authorized_scope: str
    identity: IdentityEvidence
    consistency: Consistency
    consistency_basis: Basis | None
    snapshot_id: str | None
    change_token: str | None
    high_water_mark: str | None
    observation_started_at: str
    last_page_at: str | None
    completed_at: str
    pages_expected_max: int | None
    pages_observed: int
    records_expected: int | None
    records_expected_source: str | None
    records_observed: int
    unique_ids_observed: int
    duplicate_ids: int
    conflicting_ids: int
    missing_id_ranges: tuple[str, ...]
    bytes_observed: int
    attempts: int
    refused_responses: int
    empty_pages: int
    extraction: Extraction
    cursor_chain_digest: str
    terminal_cursor_observed: bool
    terminal_evidence: TerminalEvidence | None
    traversal: Traversal
    stop_reason: StopReason
    limits_hit: tuple[LimitName, ...]
    assumptions: tuple[ReceiptAssumption, ...]
    expectations: tuple[ReceiptExpectation, ...]
    coverage_status: CoverageStatus
    conclusion_scope: ConclusionScope
    reasons: tuple[str, ...]
    accept: AcceptLevel
    accepted: bool
    findings: FindingsDigest
    merkle: MerkleEvidence
    evidence: Mapping[str, PinnedTableEvidence]
    release_policy: ReleasePolicy
    statement: str
    second_walk: SecondWalk | None = None


_RECEIPT = TypeAdapter(Receipt)


def receipt_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a receipt, as published in docs/receipt.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": PREDICATE_TYPE,
        **_RECEIPT.json_schema(mode="serialization"),
    }


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Return the receipt as plain JSON values, all members present but a second walk of none.

    So receipts that were signed before there were second walks keep their bytes.
    """
    told = _RECEIPT.dump_python(receipt, mode="json")
    if receipt.second_walk is None:
        del told["second_walk"]
    return told


def last_stop_reason(receipt: Receipt) -> StopReason:
    """Return why the generation stopped where it did, in whichever walk."""
    second = receipt.second_walk
    return receipt.stop_reason if second is None else second.stop_reason


def statement_bytes(receipt: Receipt) -> bytes:
    """Return the in-toto Statement about the generation, as the canonical bytes that are signed.

    Its subject is `scan/generation` with the digest of the walk's chain.
    """
    return _statement(receipt, receipt_json(receipt))


def _statement(receipt: Receipt, predicate: Mapping[str, Any]) -> bytes:
    subject = {
        "name": f"{receipt.scan}/{receipt.scan_generation}",
        "digest": {"sha256": receipt.cursor_chain_digest.removeprefix("sha256:")},
    }
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [subject],
            "predicateType": PREDICATE_TYPE,
            "predicate": dict(predicate),
        }
    )


def _as_written(whole: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """Leave out the members that a receipt was written without, before there were such.

    What may be absent has a default, or it would not have parsed.
    """
    return {
        name: _as_written(each, written[name]) if _are_objects(each, written[name]) else each
        for name, each in whole.items()
        if name in written
    }


def _are_objects(*values: Any) -> bool:
    return all(isinstance(each, dict) for each in values)


def parse_statement(payload: bytes) -> Receipt:
    """Read a verified Statement's payload.

    Raises:
        TamperedError: the payload is not a receipt of ours, or its subject is another generation.
    """
    try:
        statement = json.loads(payload)
        receipt = _RECEIPT.validate_json(json.dumps(statement["predicate"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise TamperedError(
            "receipt", f"not a receipt of version 1: {type(error).__name__}"
        ) from error
    if _statement(receipt, _as_written(receipt_json(receipt), statement["predicate"])) != payload:
        raise TamperedError(
            "receipt",
            f"the statement around the receipt of {receipt.scan}/{receipt.scan_generation} is not "
            "the one its fields imply; expected its canonical bytes",
        )
    return receipt


def in_words(receipt: Receipt) -> str:
    """Return who sees what, the way `statement` ends."""
    return f"as visible to {receipt.authorized_scope}"
