"""What is wrong with a walk, given what had to come of it."""

from typing import Any

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.adapter_guard import BROKEN
from scan_pipeline.stages.run import Night
from scan_pipeline.testing.behaviours import Outcome
from scan_pipeline.testing.faults import Fault

RETRIED = frozenset({"throttled", "unavailable", "timed_out", "response_lost"})


@record
class Walked:
    """One night, read back.

    Attributes:
        scan: what was walked, under the kit's contract.
        night: what it came to; None where it raised.
        raised: what it raised, None where it did not.
        keys: keys that were staged, in order of arrival.
        expected: keys that had to be.
        ordered: whether their order counts.
        best: the best status and scope that the consistency allows.
        slept: seconds waited.
    """

    scan: Scan
    night: Night | None
    raised: str | None
    keys: list[list[Any]] | None
    expected: list[list[Any]]
    ordered: bool
    best: tuple[str, str]
    slept: float

    @property
    def receipt(self) -> Receipt | None:
        """The last receipt of the night."""
        return None if self.night is None else self.night.stored.receipt

    @property
    def pages(self) -> int:
        """Pages of the last walk."""
        return 0 if self.receipt is None else self.receipt.pages_observed

    def told(self) -> str:
        """Return what came of it, in a line."""
        if self.receipt is None:
            return f"raised {self.raised}"
        parts = [_verdict(each.receipt) for each in self.night.earlier] if self.night else []
        return ", then ".join([*parts, _verdict(self.receipt)])


def wrong_with(
    outcome: Outcome, walked: Walked, *, calm: Walked | None, fault: Fault
) -> str | None:
    """Return what is wrong with a walk, None where nothing is.

    Args:
        outcome: what must come of it.
        walked: what did.
        calm: the undisturbed walk, where the roots must be equal.
        fault: what befell it.
    """
    receipt = walked.receipt
    if receipt is None:
        return f"the source raised {walked.raised}, and there is no receipt"
    if (broke := _broke_off(walked)) is not None:
        return broke
    verified = receipt.coverage_status in ("verified", "corroborated")
    match outcome:
        case "whole":
            return _not_whole(walked, receipt, calm) or _not_retried(walked, receipt, fault)
        case "begun_again":
            return _not_begun_again(walked, receipt, calm)
        case "stopped":
            return None if _stopped(receipt) else walked.told()
        case "never_taken":
            again = receipt.refused_responses > 0 and not _not_whole(walked, receipt, calm)
            return None if again or _stopped(receipt) else walked.told()
        case "not_accepted":
            return walked.told() if verified or receipt.accepted else None
        case "not_verified":
            return walked.told() if verified else None


def _verdict(receipt: Receipt) -> str:
    codes = sorted({each.code for each in receipt.findings.first if each.severity != "note"})
    told = f"{receipt.coverage_status}, {receipt.traversal} ({receipt.stop_reason})"
    records = f"{receipt.records_observed} records on {receipt.pages_observed} pages"
    return f"{told}, {records}" + (f": {', '.join(codes)}" if codes else "")


def _broke_off(walked: Walked) -> str | None:
    """Say where a source's own code broke off: such a walk fails by accident, and not by a rule."""
    nights = () if walked.night is None else (*walked.night.earlier, walked.night.stored)
    told = [each for night in nights for each in night.receipt.findings.first]
    return next((each.found for each in told if each.code == BROKEN), None)


def _stopped(receipt: Receipt) -> bool:
    by_rule = receipt.traversal == "failed" and receipt.coverage_status == "failed"
    return by_rule and not receipt.accepted


def _not_whole(walked: Walked, receipt: Receipt, calm: Walked | None) -> str | None:
    keys, expected = walked.keys or [], walked.expected
    if not walked.ordered:
        keys, expected = sorted(keys, key=repr), sorted(expected, key=repr)
    if keys != expected:
        lost = [each for each in expected if each not in keys]
        more = f", {len(lost)} of them missing, first {lost[0]}" if lost else ""
        return f"{len(keys)} records of {len(expected)}{more}, or in another order: {walked.told()}"
    if (receipt.coverage_status, receipt.conclusion_scope) != walked.best:
        return f"{walked.told()}; the best here is {walked.best[0]}, {walked.best[1]}"
    if not receipt.accepted:
        return f"not accepted: {walked.told()}"
    if calm is not None and calm.receipt is not None:
        roots = calm.receipt.merkle.root, receipt.merkle.root
        if roots[0] != roots[1]:
            return f"root {roots[1]}; the undisturbed walk has {roots[0]}"
    return None


def _not_retried(walked: Walked, receipt: Receipt, fault: Fault) -> str | None:
    if fault.kind not in RETRIED:
        return None
    if not receipt.refused_responses:
        return f"no refused answer is on record: {walked.told()}"
    if fault.kind == "throttled" and walked.slept <= 0:
        return "sent again without a wait"
    return None


def _not_begun_again(walked: Walked, receipt: Receipt, calm: Walked | None) -> str | None:
    if walked.night is None or not walked.night.earlier:
        return f"no new generation was begun: {walked.told()}"
    first = walked.night.earlier[0].receipt
    if first.traversal != "interrupted" or first.coverage_status != "unknown" or first.accepted:
        return f"the first generation is {_verdict(first)}; expected interrupted and unknown"
    if receipt.restart_of != first.scan_generation:
        return f"the second generation restarts {receipt.restart_of}, not the first"
    return _not_whole(walked, receipt, calm)
