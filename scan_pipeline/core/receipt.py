"""The collection completeness receipt: the signed account of one generation, for every outcome."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from scan_pipeline.core.checkpoint import Round
from scan_pipeline.core.redacted_paths import RedactedPaths
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
    Withheld,
)

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
class ReceiptAcknowledgement:
    """Whose word this receipt rests on, beside the evidence.

    Attributes:
        acknowledgement_id: digest of the signed acknowledgement, which lies beside the receipts.
        generation: the generation whose receipt was withheld.
        expected: records of the last accepted generation then.
        observed: records that were acknowledged; another number is another change.
        by: who says so.
        because: why.
        said_at: the moment, RFC 3339 in UTC.
    """

    acknowledgement_id: str
    generation: str
    expected: int
    observed: int
    by: str
    because: str
    said_at: str


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
    withheld: tuple[Withheld, ...] = ()
    acknowledgement: ReceiptAcknowledgement | None = None
    redacted_paths: RedactedPaths | None = None
    """Paths of records that were dropped or masked before anything was stored."""
    redacts: str | None = None
    """Id of the receipt that this one stands for, which named a record that was erased since."""
    round: Round | None = None


def last_stop_reason(receipt: Receipt) -> StopReason:
    """Return why the generation stopped where it did, in whichever walk."""
    second = receipt.second_walk
    return receipt.stop_reason if second is None else second.stop_reason


def in_words(receipt: Receipt) -> str:
    """Return who sees what, the way `statement` ends."""
    return f"as visible to {receipt.authorized_scope}"
