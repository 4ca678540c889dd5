"""What a round of changes shows of itself, for the judgement."""

from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.walk_evidence import WalkEvidence


def checkpoint_doubts(scan: Scan, walk: WalkEvidence) -> list[Finding]:
    """Say what comes in no round: changes while one is read, or what a baseline passed over."""
    facts, found = scan.source.checkpoint, list[Finding]()
    if facts is None:
        return found
    if facts.covers_since == "end":
        expected = "a checkpoint that covers what changed since the round began"
        found.append(
            finding("checkpoint_at_end", expected=expected, found="one that is made at its end")
        )
    begun = walk.round is not None and walk.round.since is not None
    if facts.baseline == "may_skip" and not begun:
        expected = "pages that hold every record that stays"
        found.append(finding("baseline_may_skip", expected=expected, found="no such promise"))
    return found


def round_held(scan: Scan, walk: WalkEvidence) -> tuple[bool, str | None]:
    """Say whether a round brought every change since it began, and where the next one begins."""
    facts = scan.source.checkpoint
    if facts is None or walk.round is None or walk.round.checkpoint is None:
        return False, "its end named no checkpoint for the next round"
    return facts.covers_since == "start", None  # else a finding says why
