"""The judgement: one pure function from evidence to a status, a scope and its reasons.

Precedence is failed > unknown > corroborated > verified. Nothing else in the project decides what a
generation is worth.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from scan_pipeline.core.assumptions import Assumption, assumptions
from scan_pipeline.core.consistency import consistency_held
from scan_pipeline.core.contract import accept_level, whole_scope
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.receipt import ReceiptAcknowledgement
from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.round_evidence import checkpoint_doubts
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus, Withheld
from scan_pipeline.core.walk_evidence import WalkEvidence


@record
class Judgement:
    """What a generation is worth.

    Attributes:
        status: the coverage status.
        scope: what a statement may be about.
        reasons: why it is no more than that, in plain sentences; empty when verified.
        assumptions: what has to be believed.
        findings: findings that the judgement itself adds.
        withheld: what alone keeps it from being accepted, and a person may acknowledge.
    """

    status: CoverageStatus
    scope: ConclusionScope
    reasons: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    findings: tuple[Finding, ...]
    withheld: tuple[Withheld, ...] = ()


RANK: Final[dict[CoverageStatus, int]] = {
    "failed": 0,
    "unknown": 1,
    "corroborated": 2,
    "verified": 3,
}

_WHOLE_RANK = 4
SCOPE_RANK: Final[dict[ConclusionScope, int]] = {
    "observed_pages_only": 1,
    "bounded_view": 2,
    "records_encountered_in_live_traversal": 3,
    "all_changes_since_checkpoint": _WHOLE_RANK,
    "all_records_present_throughout_both_walks": _WHOLE_RANK,
    "all_records_up_to_high_water_mark": _WHOLE_RANK,
    "all_records_at_change_token": _WHOLE_RANK,
    "all_records_in_snapshot": _WHOLE_RANK,
}


def satisfies(
    status: CoverageStatus,
    scope: ConclusionScope,
    *,
    wish_status: CoverageStatus,
    wish_scope: ConclusionScope,
) -> bool:
    """Say whether a receipt's (status, scope) is at least what was wished for.

    A failed generation satisfies nothing. Scopes of the whole do not stand in for one another;
    each of them stands in for every lesser scope.
    """
    if status == "failed" or RANK[status] < RANK[wish_status]:
        return False
    return scope == wish_scope or SCOPE_RANK[scope] > SCOPE_RANK[wish_scope]


WITHOUT_FIGURES: Final = ("not_reconcilable", "data_key_destroyed")
"""Findings of the records stage that say why there are no figures."""


SWUNG: Final = "swing_exceeded"
"""The finding that the number of records moved further than expected."""


def judge(
    scan: Scan,
    walk: WalkEvidence,
    figures: Reconciliation,
    *,
    staged: Sequence[Finding] = (),
    acknowledgement: ReceiptAcknowledgement | None = None,
) -> Judgement:
    """Judge one generation.

    A swing says nothing of coverage. Where a generation would be accepted but for it, and nobody
    acknowledged it, the generation is withheld: as long as it is, it speaks of observed pages only.

    Args:
        scan: the scan.
        walk: the events summed up.
        figures: the reconciliation.
        staged: findings of the records stage; see `_judged`.
        acknowledgement: the swing that a person acknowledged; another one it says nothing of.
    """
    judged = _judged(scan, walk, figures, staged=staged)
    if not any(each.code == SWUNG for each in figures.findings):
        return judged
    believed = _judged(scan, walk, figures, staged=staged, believed=SWUNG)
    if not accepted(scan, believed, nonconforming=figures.nonconforming):
        return judged
    if is_acknowledged(figures, acknowledgement):
        return believed
    waits = f"withheld until a person acknowledges it: scan-pipeline acknowledge {scan.name}"
    return replace(
        judged,
        status="unknown",
        scope="observed_pages_only",
        reasons=(*judged.reasons, waits),
        withheld=("swing",),
    )


def is_acknowledged(
    figures: Reconciliation, acknowledgement: ReceiptAcknowledgement | None
) -> bool:
    """Say whether it is this very change in the number of records that was acknowledged."""
    if acknowledgement is None:
        return False
    said = acknowledgement.expected, acknowledgement.observed
    return any(e.name == "swing" and (e.expected, e.observed) == said for e in figures.expectations)


def _judged(
    scan: Scan,
    walk: WalkEvidence,
    figures: Reconciliation,
    *,
    staged: Sequence[Finding],
    believed: str | None = None,
) -> Judgement:
    """Judge one generation by its evidence.

    `verified` needs all of: the walk finished by the declared end signal; its consistency held
    throughout; the chain is intact; no finding weighs `error` or `warning`; every expectation
    that was declared was met by unique keys; and at least one denominator that is not the end
    signal itself.

    Args:
        scan: the scan.
        walk: the events summed up.
        figures: the reconciliation.
        staged: findings of the records stage. Its errors are in the figures already, but for the
            one that there are no figures; its warnings (a list cut inside a record) keep a
            generation from being verified.
        believed: code of a warning that is no doubt, since somebody's word stands for it.
    """
    added = tuple(_judged_findings(scan, walk, figures))
    inside = tuple(
        each for each in staged if each.severity == "warning" or each.code in WITHOUT_FIGURES
    )
    if any(each.code in WITHOUT_FIGURES for each in inside):
        added = tuple(each for each in added if each.code != "no_denominator")  # none was looked at
    findings = (*walk.findings, *inside, *figures.findings, *added)
    errors = [each for each in findings if each.severity == "error"]
    doubts = [each for each in findings if each.severity == "warning" and each.code != believed]
    finished = walk.traversal == "finished"
    exact = [each for each in figures.expectations if each.name != "swing"]
    missed = [each.name for each in exact if each.result == "missed"]
    left = [each.name for each in exact if each.result == "not_evaluated"]
    broken = walk.traversal == "failed" or not walk.chain_intact or bool(errors or missed)
    broken = broken or figures.without_key > 0 or figures.conflicting_ids > 0
    held, why_not = consistency_held(scan, walk, figures)
    ended = walk.end_signal is not None
    reasons = [*_sentences(errors), *_sentences(doubts)]
    if not finished:
        stopped = "failed" if walk.traversal == "failed" else f"was {walk.traversal}"
        reasons.insert(0, f"the walk {stopped}: {walk.stop_reason.replace('_', ' ')}")
    else:
        reasons += [why_not] if why_not else []
        reasons += [] if ended else ["no declared end signal was seen"]
        reasons += [f"limits were hit: {', '.join(walk.limits_hit)}"] if walk.limits_hit else []
    if figures.without_key:
        reasons.append(f"records without a readable key: {figures.without_key:,}")
    if missed and not errors:
        reasons.append(f"expected by the contract and missed: {', '.join(missed)}")
    if finished and left:
        reasons.append(f"expected by the contract and not evaluated: {', '.join(left)}")
    if broken:
        status: CoverageStatus = "failed"
        scope: ConclusionScope = "observed_pages_only"
    elif finished and held and ended and not (doubts or left or walk.limits_hit):
        twice = scan.contract.consistency == "two_equal_walks"
        status = "corroborated" if twice else "verified"
        scope = whole_scope(scan.contract.consistency, mode=scan.contract.mode)
    else:
        status = "unknown"
        scope = "records_encountered_in_live_traversal" if finished else "observed_pages_only"
    if scan.contract.mode == "bounded" and status != "failed":
        # The declared cap is the population: what stopped short of it is pages and no more.
        capped = bool(walk.limits_hit) and {"pages", "records"}.issuperset(walk.limits_hit)
        status = "unknown"
        scope = "bounded_view" if finished or capped else "observed_pages_only"
    if scan.contract.mode == "trial" and status != "failed":
        status, scope = "unknown", "observed_pages_only"
        reasons.insert(0, "a trial reads a few pages and proves nothing, whatever they hold")
    return Judgement(
        status=status,
        scope=scope,
        reasons=tuple(dict.fromkeys(reasons)),
        assumptions=assumptions(scan, walk),
        findings=added,
    )


def accepted(scan: Scan, judgement: Judgement, *, nonconforming: int) -> bool:
    """Say whether the judgement is at least what the contract accepts.

    A trial never is, and what is withheld is not yet.
    """
    if scan.contract.mode == "trial" or judgement.withheld:
        return False
    status, scope = accept_level(scan.contract)
    return nonconforming <= scan.contract.accept.nonconforming and satisfies(
        judgement.status, judgement.scope, wish_status=status, wish_scope=scope
    )


def _judged_findings(scan: Scan, walk: WalkEvidence, figures: Reconciliation) -> list[Finding]:
    found = list[Finding]()
    if not walk.chain_intact and not any(f.code == "chain_broken" for f in walk.findings):
        found.append(finding("chain_broken", expected="events that link", found="a break"))
    if walk.pin.recheck == "differs" and scan.contract.consistency == "snapshot":
        found.append(
            finding(
                "pin_not_honoured", expected="equal records under one pin", found="other records"
            )
        )
    named = walk.before.principal, walk.before.tenant
    for each in (walk.after, *walk.openings_of_second):
        if each is not None and (each.principal, each.tenant) != named:
            found.append(finding("principal_changed", expected=named[0], found=each.principal))
            break
    if walk.traversal != "finished":
        return found
    if scan.contract.mode == "sync":
        found += checkpoint_doubts(scan, walk)
    elif scan.contract.consistency == "change_token":
        found += _moved_token(walk)
    if scan.contract.consistency == "two_equal_walks":
        return [*found, *_differing(walk, figures)]  # equal walks are what stands for a count
    if scan.contract.consistency == "live":
        found.append(finding("live_traversal"))
    denominators = [
        e for e in figures.expectations if e.denominator and e.result != "not_evaluated"
    ]
    if not denominators and scan.contract.denominator != "end_signal":
        found.append(
            finding("no_denominator", expected="one denominator", found="the end signal alone")
        )
    return found


def _differing(walk: WalkEvidence, figures: Reconciliation) -> list[Finding]:
    """Say how many keys differ between two whole walks, and never more."""
    second = walk.second
    if second is None or second.traversal != "finished" or second.figures is None:
        return []
    if figures.root is not None and second.figures.root == figures.root:
        return []
    return [finding("walks_differ", expected="equal walks", found=second.figures.differences())]


def _moved_token(walk: WalkEvidence) -> list[Finding]:
    """Say that the token moved, or that it did not where it should have."""
    before, after = walk.before.change_token, walk.after and walk.after.change_token
    if before is None or after is None or walk.after is None:
        return []
    if not walk.after.is_at_token_of(walk.before):
        return [finding("change_token_moved", expected=before, found=after)]
    if any(each.code == "count_changed" for each in walk.findings):
        return [finding("change_token_stale", expected="another token", found=after)]
    return []


def _sentences(findings: list[Finding]) -> list[str]:
    """Say each kind of finding once, by its first, and how many more there are."""
    more = Counter(each.code for each in findings)
    told = {each.code: each for each in reversed(findings)}
    return [
        _sentence(told[code]) + (f" ({more[code] - 1:,} more)" if more[code] > 1 else "")
        for code in dict.fromkeys(each.code for each in findings)
    ]


def _sentence(told: Finding) -> str:
    said = told.code.replace("_", " ") + (f" on page {told.page}" if told.page else "")
    facts = [
        f"{word} {fact}"
        for word, fact in (("expected", told.expected), ("found", told.found))
        if fact is not None
    ]
    return f"{said}: {', '.join(facts)}" if facts else said
