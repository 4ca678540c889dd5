"""How a walk stopped, and which error stops it how."""

from typing import Final

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    KeyDestroyedError,
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    TamperedError,
    TimeLimitError,
)
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import StopReason, Traversal
from scan_pipeline.core.walk import LimitHit


@record
class Stopped:
    """How a walk stopped."""

    traversal: Traversal
    stop_reason: StopReason
    findings: tuple[Finding, ...] = ()
    limit: LimitHit | None = None


FINISHED: Final = Stopped(traversal="finished", stop_reason="end_signal")

CANCELLED: Final = Stopped(
    traversal="cancelled", stop_reason="cancelled", findings=(finding("cancelled"),)
)

BEGUN_AGAIN: Final[tuple[StopReason, ...]] = (
    "snapshot_expired",
    "continuation_consumed",
    "data_key_destroyed",
    "change_token_moved",
    "principal_changed",
)
"""What makes a walk one that cannot go on, so that a new beginning may go through."""

_INTERRUPTED: Final[tuple[tuple[type[ScanPipelineError], StopReason], ...]] = (
    (SnapshotExpiredError, "snapshot_expired"),
    (ContinuationConsumedError, "continuation_consumed"),
    (KeyDestroyedError, "data_key_destroyed"),
    (AccessRefusedError, "access_refused"),
    (SourceUnavailableError, "source_unavailable"),
    (SourceWindowError, "source_window"),
)


def stopped_by(error: ScanPipelineError, *, page: int) -> Stopped:
    """Turn an error that ends a walk into the way it stopped; raise any other.

    Args:
        error: what happened.
        page: ordinal of the page that was asked for, from 1.
    """
    if isinstance(error, ProtocolError):
        expected, found = "the declared protocol", str(error)
        return Stopped(
            traversal="failed",
            stop_reason="protocol_broken",
            findings=(finding(error.code, page=page, expected=expected, found=found),),
        )
    if isinstance(error, TamperedError):
        return Stopped(
            traversal="failed",
            stop_reason="evidence_disagrees",
            findings=(finding("evidence_altered", expected="the stored pages", found=str(error)),),
        )
    if isinstance(error, TimeLimitError):
        hit = LimitHit(name="seconds", allowed=error.allowed, reached=error.reached)
        return limited(hit, page=page, told=str(error))
    for kind, reason in _INTERRUPTED:
        if isinstance(error, kind):
            return Stopped(
                traversal="interrupted",
                stop_reason=reason,
                findings=(finding(reason, page=page, found=str(error)),),
            )
    raise error


def windowed(window: int | None, *, page: int) -> Stopped:
    """Return how a walk stops whose end may be that of the source's result window."""
    told = finding("source_window", page=page, found=f"an end at the source's window of {window}")
    return Stopped(traversal="interrupted", stop_reason="source_window", findings=(told,))


def limited(hit: LimitHit, *, page: int | None, told: str | None = None) -> Stopped:
    """Return how a walk stops at a limit; what was read stays, as pages and no more.

    Args:
        hit: the limit.
        page: ordinal of the page it was hit at, from 1; None before the first.
        told: how it was hit in the middle of a request; None where it was before one.
    """
    return Stopped(
        traversal="interrupted",
        stop_reason="limit_reached",
        findings=(
            finding(
                "limit_reached",
                page=page,
                expected=f"{hit.name} below {hit.allowed:g}",
                found=told or f"{hit.reached:g}",
            ),
        ),
        limit=hit,
    )
