"""Conclude: what may be said, from what was really inspected, in a sentence of ours."""

from typing import Final

from scan_pipeline.agents import statements
from scan_pipeline.agents.aggregate import too_many_groups
from scan_pipeline.agents.answers import Conclusion
from scan_pipeline.agents.claiming import CollectionClaim, read_claim, sign_claim
from scan_pipeline.agents.desk import Desk, Standing, size_of, summary
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.queries import Grouping, query_json
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.claims import (
    ClaimName,
    EvaluatedBy,
    aggregate_claim_name,
    match_claim_name,
)
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.value import adapter, record

RENEWED_S: Final = 12 * 3600
"""Age from which a claim is signed anew, in seconds: reports are held against it for a day."""


@record
class Finding:
    """What was found, before it is signed."""

    claim: ClaimName
    evaluated_by: EvaluatedBy
    statement: str
    inspected: int
    matches: int


def conclude(desk: Desk, principal: str, *, handle: str) -> Conclusion:
    """Say what may be said of a question, under a signed claim id.

    Where the reader judged rows, the rows it judged decide; otherwise the engine, which evaluated
    the conditions over every row of the view. Of a collection of which a record was erased, nothing
    is complete: it was there, and nobody can say any more whether it matched.

    Raises:
        ReaderError: as for a page.
    """
    policy = desk.policy()
    standing = desk.standing(policy, principal, handle)
    held, ground = standing.handle, standing.grounded.ground
    budget = desk.budget(policy, principal)
    if standing.query.grouping is not None:
        found = _aggregated(standing, standing.query.grouping, most=policy.limits.groups)
    elif judged := desk.ledger.judged(handle):
        matches = judged.get("match", 0)
        decided = matches + judged.get("no_match", 0)
        found = _judged(standing, matches=matches, decided=decided, budget_left=budget.is_left)
    else:
        found = _evaluated(standing)
    now = desk.workspace.clock()
    claim = CollectionClaim(
        claim=found.claim,
        evaluated_by=found.evaluated_by,
        statement=found.statement,
        scan=held.scan,
        scan_generation=held.generation,
        receipt_id=held.receipt_id,
        coverage_status=ground.coverage_status,
        conclusion_scope=ground.conclusion_scope,
        principal=principal,
        tenant=held.tenant,
        view=held.view,
        view_digest=held.view_digest,
        policy_digest=policy.digest(),
        query=query_json(standing.query),
        query_digest=held.query_digest,
        population=held.population,
        matching=held.matching,
        inspected=found.inspected,
        matches=found.matches,
        concluded_at=now,
    )
    claim_id = _signed(desk, handle, claim)
    answer = Conclusion(
        represents="conclusion",
        statement=found.statement,
        claim=found.claim,
        claim_id=claim_id,
        evaluated_by=found.evaluated_by,
        inspected=found.inspected,
        matches=found.matches,
        ground=ground,
        summary=summary(held, returned=0, has_more=found.inspected < held.matching),
        cite_as=f"{found.statement} [{claim_id}]",
    )
    budget.spend(size=size_of(answer))
    return answer


def _signed(desk: Desk, handle: str, claim: CollectionClaim) -> str:
    """Return the id of a claim; one that says the same under a handle is signed once.

    Whoever concludes again and again would fill the lake otherwise; and a report that cites the
    first of two equal claims cites the right one. Where it is there no more, or old, it is signed
    anew.
    """
    facts = adapter(CollectionClaim).dump_python(claim, mode="json")
    del facts["concluded_at"]
    digest = digest_of(facts).hex()
    at = claim.concluded_at.timestamp()
    kept = desk.ledger.conclusion(handle, facts=digest, since=at - RENEWED_S)
    if kept is not None:
        try:
            read_claim(kept, scan=claim.scan, workspace=desk.workspace)
        except EvidenceError:
            pass
        else:
            return kept
    name = sign_claim(claim, workspace=desk.workspace, now=claim.concluded_at)
    desk.ledger.note_conclusion(handle, facts=digest, claim=name, at=at)
    return name


def _aggregated(standing: Standing, grouping: Grouping, *, most: int) -> Finding:
    groups = standing.viewed.aggregate(standing.query, grouping, most=most)
    if len(groups) > most:
        raise ReaderError("narrow", "too_large", too_many_groups(most))
    held, ground = standing.handle, standing.grounded.ground
    return Finding(
        claim=aggregate_claim_name(
            ground.coverage_status,
            ground.conclusion_scope,
            inspected=held.population,
            population=held.population + standing.grounded.erased,
        ),
        evaluated_by="engine",
        statement=statements.aggregated(
            standing.query,
            groups=groups,
            matching=held.matching,
            noun=standing.access.noun,
            ground=ground,
        ),
        inspected=held.population,
        matches=held.matching,
    )


def _judged(standing: Standing, *, matches: int, decided: int, budget_left: bool) -> Finding:
    held, ground = standing.handle, standing.grounded.ground
    return Finding(
        claim=match_claim_name(
            ground.coverage_status,
            ground.conclusion_scope,
            matches=matches,
            inspected=decided,
            population=held.matching + standing.grounded.erased,
            budget_left=budget_left,
        ),
        evaluated_by="reader",
        statement=statements.judged(
            standing.query,
            matched=matches,
            decided=decided,
            matching=held.matching,
            noun=standing.access.noun,
            ground=ground,
        ),
        inspected=decided,
        matches=matches,
    )


def _evaluated(standing: Standing) -> Finding:
    held, ground = standing.handle, standing.grounded.ground
    return Finding(
        claim=match_claim_name(
            ground.coverage_status,
            ground.conclusion_scope,
            matches=held.matching,
            inspected=held.population,
            population=held.population + standing.grounded.erased,
            budget_left=True,
        ),
        evaluated_by="engine",
        statement=statements.found(
            standing.query,
            matching=held.matching,
            population=held.population,
            noun=standing.access.noun,
            ground=ground,
        ),
        inspected=held.population,
        matches=held.matching,
    )
