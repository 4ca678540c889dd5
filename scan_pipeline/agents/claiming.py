"""Signed claims: what a report may cite, kept write-once beside the receipts.

A claim is a statement of ours under a signature, so that neither a model nor a caller can raise
one. Its id is SHA-256 of the signed bytes, shortened to 24 hex digits for a reader's sake; the file
is read by it and its bytes must give it again.
"""

import hashlib
from datetime import datetime
from typing import Any, Final

from pydantic import AwareDatetime, ValidationError

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.claims import ClaimName, EvaluatedBy
from scan_pipeline.core.errors import EvidenceError, TamperedError, WriterConflictError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.trust import sign

CLAIM_TYPE: Final = "application/vnd.scan-pipeline.claim+json"
PREFIX: Final = "claim-"


@record
class CollectionClaim:
    """One statement about a collection and all it stands on.

    Attributes:
        claim: from the closed list.
        evaluated_by: the engine over all rows, or a reader row by row.
        statement: the sentence.
        scan: the scan.
        scan_generation: its generation.
        receipt_id: the generation's receipt.
        coverage_status: what that receipt says.
        conclusion_scope: what statements may be about.
        principal: who asked.
        tenant: for which tenant.
        view: through which view.
        view_digest: what the view showed.
        policy_digest: the whole policy then.
        query: the normal query.
        query_digest: its digest.
        population: rows in the view.
        matching: rows that match the query.
        inspected: rows that decided the claim.
        matches: rows found to match.
        concluded_at: when, UTC.
    """

    claim: ClaimName
    evaluated_by: EvaluatedBy
    statement: str
    scan: str
    scan_generation: str
    receipt_id: str
    coverage_status: CoverageStatus
    conclusion_scope: ConclusionScope
    principal: str
    tenant: str | None
    view: str
    view_digest: str
    policy_digest: str
    query: dict[str, Any]
    query_digest: str
    population: int
    matching: int
    inspected: int
    matches: int
    concluded_at: AwareDatetime


def claim_id(payload: bytes) -> str:
    """Return the id of a claim with this payload: `claim-` and 24 hex digits."""
    return f"{PREFIX}{hashlib.sha256(payload).hexdigest()[:24]}"


def sign_claim(claim: CollectionClaim, *, workspace: Workspace, now: datetime) -> str:
    """Sign a claim, keep it in the lake, and return its id; an equal claim is kept once."""
    payload = canonical_json(adapter(CollectionClaim).dump_python(claim, mode="json"))
    name = claim_id(payload)
    signer = signing_signer(workspace.project, now=now, create="never")
    envelope = sign(payload, signer=signer, payload_type=CLAIM_TYPE)
    try:
        workspace.lake.write_once(_path(claim.scan, name, workspace=workspace), envelope)
    except WriterConflictError:
        read_claim(name, scan=claim.scan, workspace=workspace)
    return name


def read_claim(name: str, *, scan: str, workspace: Workspace) -> CollectionClaim:
    """Return a claim by its id, signature checked.

    Raises:
        EvidenceError: there is none of that id.
        TamperedError: it is not what was signed, or not by a trusted key.
    """
    envelope = workspace.lake.read_bytes(_path(scan, name, workspace=workspace))
    payload = workspace.trust.verify(envelope, payload_type=CLAIM_TYPE).payload
    if claim_id(payload) != name:
        raise TamperedError("claim", f"{name} holds another claim; expected its own bytes")
    try:
        return adapter(CollectionClaim).validate_json(payload)
    except ValidationError as error:
        raise TamperedError("claim", f"{name} is signed and is no claim: {error}") from error


def find_claim(name: str, *, workspace: Workspace) -> CollectionClaim:
    """Return a claim by its id, of whichever scan.

    Raises:
        EvidenceError: there is none.
        TamperedError: it is not what was signed.
    """
    claims = f"{workspace.lake.root}/claims"
    for scan in workspace.lake.list_names(claims):
        if f"{name}.json" in workspace.lake.list_names(f"{claims}/{scan}"):
            return read_claim(name, scan=scan, workspace=workspace)
    raise EvidenceError(f"found no claim {name}; expected one that this project signed")


def _path(scan: str, name: str, *, workspace: Workspace) -> str:
    return f"{workspace.lake.root}/claims/{scan}/{name}.json"
