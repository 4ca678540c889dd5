"""Whether the declared consistency held throughout a walk, as its events tell."""

from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.round_evidence import round_held
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.second_walk import why_not_equal
from scan_pipeline.core.walk_evidence import WalkEvidence


def consistency_held(
    scan: Scan, walk: WalkEvidence, figures: Reconciliation
) -> tuple[bool, str | None]:
    """Say whether the declared consistency held, and if not, why."""
    if scan.contract.mode == "sync":
        return round_held(scan, walk)
    match scan.contract.consistency:
        case "snapshot":
            if scan.source.snapshot is None or walk.pin.version is None:
                return False, "no version was pinned"
            if not walk.pin.sent_on_every_request:
                return False, "not every request named the pinned version"
            rechecked = {
                "differs": "the pin recheck differs",
                "not_done": "the pin was not rechecked",
            }
            return walk.pin.recheck == "equal", rechecked.get(walk.pin.recheck)
        case "high_water_mark":
            if walk.before.high_water_mark is None:
                return False, "no high-water mark was read before the walk"
            if not walk.bound_sent:
                return False, "not every request named the high-water mark"
            return True, None
        case "change_token":
            if walk.before.change_token is None:
                return False, "no change token was read before the walk"
            if walk.after is None or walk.after.change_token is None:
                return False, "the change token was not read again after the walk"
            if not walk.after.is_at_token_of(walk.before):
                return False, "the collection was written to while it was read"
            return True, None
        case "two_equal_walks":
            why_not = why_not_equal(walk.second, root=figures.root)
            return why_not is None, why_not
        case "live":
            return False, "the collection could change while it was read"
