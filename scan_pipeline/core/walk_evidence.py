"""What the stored events say of a walk, summed up for the judgement."""

from typing import Literal

from scan_pipeline.core.checkpoint import Round
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.second_walk import SecondWalk
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import LimitName, StopReason, Traversal

Recheck = Literal["equal", "differs", "not_done"]


@record
class PinEvidence:
    """How the pin fared: the version, whether every request named it, and the recheck.

    Where a continuation carries the version, `sent_on_every_request` says that every answer named
    it.
    """

    version: str | None = None
    sent_on_every_request: bool = False
    recheck: Recheck = "not_done"


@record
class WalkEvidence:
    """What the stored events say of the walk.

    Attributes:
        traversal: how it stopped.
        stop_reason: why.
        end_signal: the declared signal that ended it, None where none did.
        limits_hit: limits that stopped it.
        chain_intact: whether the stored events link and their bodies are the admitted ones.
        pin: evidence of the pin.
        bound_sent: whether every request named the high-water mark.
        before: what the source said of itself before the first page.
        after: the same after the last; None where the walk did not come so far.
        total: first exact count the source reported.
        unrepeated: parameters of ours that a continuation did not repeat.
        second: the second of two walks; its findings are among `findings`, and `chain_intact`
            speaks of both.
        openings_of_second: what the source said of itself before and after the second.
        round: which round of changes it was; None where the source tracks none.
        findings: what the walk noticed.
    """

    traversal: Traversal
    stop_reason: StopReason
    end_signal: str | None
    limits_hit: tuple[LimitName, ...]
    chain_intact: bool
    pin: PinEvidence
    bound_sent: bool
    before: Opening
    after: Opening | None
    total: int | None
    findings: tuple[Finding, ...]
    unrepeated: tuple[str, ...] = ()
    second: SecondWalk | None = None
    openings_of_second: tuple[Opening | None, ...] = ()
    round: Round | None = None
