"""The scan that the kit walks: the user's source under a contract that only judges the source."""

from dataclasses import replace

from scan_pipeline.core.contract import Accept, Contract, Limits, whole_scope
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.expectations import Expectations
from scan_pipeline.core.operation import Operation, Retries
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import (
    ConclusionScope,
    Consistency,
    ContinuationKind,
    CoverageStatus,
)
from scan_pipeline.testing.faults import NotExercisedError

PAGES = 200
"""Pages after which a walk of the kit is stopped; none that goes well comes near."""


def judged(scan: Scan, *, records: int) -> Scan:
    """Return a scan under the kit's contract.

    Key and consistency stay; the count is known from the bench, and independent of what the source
    reports. Record schema, partitions, other expectations, limits and schedule are the user's data
    and not the source's behaviour: they are left out. Accepted is the best that the consistency
    allows, so that whatever loses a record is not accepted even where nothing is ever verified.
    """
    consistency = held(scan.contract.consistency)
    status, scope = best(consistency)
    return replace(
        scan,
        contract=Contract(
            key=scan.contract.key,
            consistency=consistency,
            delivery=scan.contract.delivery,
            limits=Limits(pages=PAGES),
            expect=Expectations(count=records),
            accept=Accept(scope=scope, status=status),
        ),
        operation=Operation(
            retries=Retries(attempts=3, timeout=scan.operation.retries.timeout),
            restarts=1,
            commit_pages=1,
        ),
        record_schema=None,
        schedule=None,
    )


def held(consistency: Consistency) -> Consistency:
    """Return the consistency under which one walk of the kit is judged.

    What needs more than one walk is judged as a live one: the kit plays faults within one.
    """
    return "live" if consistency == "two_equal_walks" else consistency


def best(consistency: Consistency) -> tuple[CoverageStatus, ConclusionScope]:
    """Return the best that a walk of this consistency comes to."""
    return ("unknown" if consistency == "live" else "verified"), whole_scope(consistency)


def with_continuation(scan: Scan, kind: ContinuationKind | None) -> Scan:
    """Return a scan whose source has continuations of a kind.

    Raises:
        NotExercisedError: its protocol knows no such kind.
    """
    if kind is None or scan.source.continuation == kind:
        return scan
    try:
        return replace(scan, source=replace(scan.source, continuation=kind))
    except ContractError as error:
        raise NotExercisedError(f"the protocol has no {kind} continuations: {error}") from error
