"""Claims: what may be said about a collection, decided by the receipt and by what was inspected."""

from typing import Any, Literal, TypeAlias

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import WHOLE_COLLECTION, ConclusionScope, CoverageStatus

ClaimName: TypeAlias = Literal[
    "verified_match",
    "complete_no_match",
    "partial_no_match",
    "incomplete_budget_exhausted",
    "complete_aggregate",
    "partial_aggregate",
]

EvaluatedBy: TypeAlias = Literal["engine", "reader"]

Completeness: TypeAlias = Literal["complete", "partial", "nothing_judged"]
"""How much a reader judged, as we counted it: `complete` is a verdict on every record of a verified
whole; no word of the reader's own makes it so."""


@record
class Claim:
    """One statement about a collection, bound to its receipt.

    Attributes:
        name: from the closed list.
        evaluated_by: `engine` where a query over all rows decided, `reader` where someone judged
            row by row.
        receipt_id: receipt of the generation that was inspected.
        statement: the sentence, written from the query and its result.
        claim_id: SHA-256 over all of the above.
    """

    name: ClaimName
    evaluated_by: EvaluatedBy
    receipt_id: str
    statement: str
    claim_id: str


def is_whole(status: CoverageStatus, scope: ConclusionScope) -> bool:
    """Say whether a receipt speaks of the whole collection."""
    return status in ("verified", "corroborated") and scope in WHOLE_COLLECTION


def aggregate_claim_name(
    status: CoverageStatus, scope: ConclusionScope, *, inspected: int, population: int
) -> ClaimName:
    """Return the claim an aggregate supports: complete only over every row of a whole."""
    whole = is_whole(status, scope) and status == "verified" and inspected == population
    return "complete_aggregate" if whole else "partial_aggregate"


def match_claim_name(
    status: CoverageStatus,
    scope: ConclusionScope,
    *,
    matches: int,
    inspected: int,
    population: int,
    budget_left: bool,
) -> ClaimName:
    """Return the claim a search supports; only a verified whole, all inspected, shows absence."""
    if matches:
        return "verified_match"
    if status == "verified" and scope in WHOLE_COLLECTION and inspected == population:
        return "complete_no_match"
    return "partial_no_match" if budget_left else "incomplete_budget_exhausted"


def make_claim(
    name: ClaimName, *, evaluated_by: EvaluatedBy, receipt_id: str, statement: str
) -> Claim:
    """Make a claim and derive its id."""
    facts: dict[str, Any] = {
        "name": name,
        "evaluated_by": evaluated_by,
        "receipt_id": receipt_id,
        "statement": statement,
    }
    return Claim(
        name=name,
        evaluated_by=evaluated_by,
        receipt_id=receipt_id,
        statement=statement,
        claim_id=f"sha256:{digest_of(facts).hex()}",
    )
