"""Why a receipt says what it says: the first disagreement, or what must be believed."""

from collections.abc import Mapping
from typing import Any, Final

from scan_pipeline.core.receipt import Receipt, ReceiptExpectation, ReceiptFinding
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import CoverageStatus

_WEIGHT: Final = ("error", "warning")
"""Severities that decide, heaviest first; a note decides nothing."""

_WHY: Final[Mapping[CoverageStatus, str]] = {
    "failed": "the evidence disagrees, so nothing may be concluded about the whole; the "
    "generation opens to nobody",
    "unknown": "nothing contradicts, but it is not proven that the whole was read; only readers "
    "who ask for this lesser scope by name may have it",
    "corroborated": "two whole walks agreed; readers must ask for `corroborated` by name",
    "verified": "the whole collection was read, and its denominator says so",
}


@record
class Disagreement:
    """The first thing that keeps a receipt from saying more.

    Attributes:
        what: code of the finding, or name of the expectation.
        page: ordinal of the page, None where it lies on none.
        key: key of the record, None where it is about none.
        expected: what should have been.
        found: what was.
        cause: what usually causes it.
        remedy: what to do.
    """

    what: str
    page: int | None
    key: str | None
    expected: str | None
    found: str | None
    cause: str
    remedy: str


@record
class Explanation:
    """A receipt explained.

    Attributes:
        first: the first disagreement, None where there is none.
        others: codes that decide too, with how many findings of each the receipt carries, the
            first apart.
        carried: findings the receipt carries.
        total: findings there are; where it carries fewer, the numbers of `others` are the least.
        missing: ranges of keys that never came.
        why: what follows for a reader.
        believed: what must be believed, with the basis of each.
    """

    statement: str
    accepted: bool
    first: Disagreement | None
    others: Mapping[str, int]
    carried: int
    total: int
    missing: tuple[str, ...]
    why: str
    believed: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain values."""
        return {
            "statement": self.statement,
            "accepted": self.accepted,
            "first_disagreement": None if self.first is None else dict(self.first.__dict__),
            "others": dict(self.others),
            "findings_carried": self.carried,
            "findings_total": self.total,
            "missing_id_ranges": list(self.missing),
            "why_it_matters": self.why,
            "must_be_believed": [{"name": name, "basis": basis} for name, basis in self.believed],
        }


def explain(receipt: Receipt) -> Explanation:
    """Explain a receipt from what it carries; the tables are not asked.

    The first finding of the heaviest severity is the first disagreement: findings stand in the
    order of walk, records, reconciliation and judgement. Without one it is the first expectation
    that was missed, or the first reason the judgement gives.
    """
    decisive = _decisive(receipt)
    others: dict[str, int] = {}
    for each in decisive[1:]:
        others[each.code] = others.get(each.code, 0) + 1
    return Explanation(
        statement=receipt.statement,
        accepted=receipt.accepted,
        first=_of_finding(decisive[0]) if decisive else _otherwise(receipt),
        others=others,
        carried=len(receipt.findings.first),
        total=receipt.findings.total,
        missing=receipt.missing_id_ranges,
        why=_why(receipt),
        believed=tuple((each.name, each.basis) for each in receipt.assumptions),
    )


def _decisive(receipt: Receipt) -> list[ReceiptFinding]:
    """Return the findings that decided, the heaviest first, else in the order they were made."""
    told = [each for each in receipt.findings.first if each.severity in _WEIGHT]
    return sorted(told, key=lambda each: _WEIGHT.index(each.severity))


def _of_finding(told: ReceiptFinding) -> Disagreement:
    return Disagreement(
        what=told.code,
        page=told.page,
        key=told.key,
        expected=told.expected,
        found=told.found,
        cause=told.cause,
        remedy=told.remedy,
    )


def _otherwise(receipt: Receipt) -> Disagreement | None:
    """Return what keeps a receipt without a decisive finding from being accepted."""
    least, missed = receipt.accept, _missed(receipt)
    if missed is not None:
        return _told(
            missed.name,
            expected=missed.expected,
            found=missed.observed,
            cause="the walk and the expectation do not speak of the same collection",
            remedy="correct the expectation, or show both to the owner of the source",
        )
    if receipt.extraction.nonconforming > least.nonconforming:
        return _told(
            "nonconforming",
            expected=f"at most {least.nonconforming:,} records that do not conform",
            found=f"{receipt.extraction.nonconforming:,}",
            cause="records do not fit the record schema; they were collected all the same",
            remedy="correct the schema and restage, or raise accept.nonconforming",
        )
    if receipt.accepted:
        return None
    return _told(
        "accept",
        expected=f"at least {least.status}, {least.scope}",
        found=f"{receipt.coverage_status}, {receipt.conclusion_scope}",
        cause=receipt.reasons[0] if receipt.reasons else "the contract asks for more",
        remedy="give the contract what proves more, or accept less in contract.accept",
    )


def _missed(receipt: Receipt) -> ReceiptExpectation | None:
    return next((each for each in receipt.expectations if each.result == "missed"), None)


def _told(what: str, *, expected: object, found: object, cause: str, remedy: str) -> Disagreement:
    return Disagreement(
        what=what,
        page=None,
        key=None,
        expected=None if expected is None else str(expected),
        found=None if found is None else str(found),
        cause=cause,
        remedy=remedy,
    )


def _why(receipt: Receipt) -> str:
    why = _WHY[receipt.coverage_status]
    if receipt.round is not None and receipt.coverage_status == "verified":
        why = "every change was read up to the end of its round, which the source documents as such"
    return why if receipt.accepted else f"{why}; this is less than the contract accepts"
