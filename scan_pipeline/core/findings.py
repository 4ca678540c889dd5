"""Findings: what was noticed, and which are told first."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.finding_kinds import KINDS
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Severity

FIRST_FINDINGS: Final = 100
"""How many findings a receipt carries; the table carries all."""


_HEAVY_FIRST: Final[Sequence[Severity]] = ("error", "warning", "note")


@record
class Finding:
    """One thing that was noticed.

    Attributes:
        code: a key of `KINDS`.
        severity: weight of this finding; of its kind, unless said otherwise.
        page: ordinal of the page, from 1, where it lies on one.
        key: canonical key of the record, where it is about one.
        expected: what should have been, in words or a number.
        found: what was.
    """

    code: str
    severity: Severity
    page: int | None = None
    key: str | None = None
    expected: str | None = None
    found: str | None = None

    @property
    def cause(self) -> str:
        """Return what usually causes this."""
        return KINDS[self.code].cause

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return KINDS[self.code].remedy

    def as_json(self) -> dict[str, Any]:
        """Return the finding with its cause and remedy, all members present."""
        return {
            "code": self.code,
            "severity": self.severity,
            "page": self.page,
            "key": self.key,
            "expected": self.expected,
            "found": self.found,
            "cause": self.cause,
            "remedy": self.remedy,
        }


def finding(
    code: str,
    *,
    page: int | None = None,
    key: str | None = None,
    expected: object = None,
    found: object = None,
    severity: Severity | None = None,
) -> Finding:
    """Make a finding of a known kind."""
    return Finding(
        code=code,
        severity=severity or KINDS[code].severity,
        page=page,
        key=key,
        expected=None if expected is None else str(expected),
        found=None if found is None else str(found),
    )


def most_telling(
    findings: Iterable[Finding], *, at_most: int = FIRST_FINDINGS
) -> tuple[Finding, ...]:
    """Return the findings to show where not all can be: heavy ones first, one of each code first.

    A thousand repeated keys must not hide that ids are missing.
    """
    told: dict[str, int] = {}
    ranked: list[tuple[int, int, int, Finding]] = []
    for order, each in enumerate(findings):
        told[each.code] = told.get(each.code, 0) + 1
        ranked.append((_HEAVY_FIRST.index(each.severity), told[each.code], order, each))
    ranked.sort(key=lambda rank: rank[:3])
    return tuple(each for *_, each in ranked[:at_most])


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Return the heaviest severity, None where there is no finding."""
    present = {each.severity for each in findings}
    return next((severity for severity in _HEAVY_FIRST if severity in present), None)


def findings_digest(findings: Iterable[Finding]) -> str:
    """Return `sha256:<hex>` over the findings' canonical JSON, in order."""
    return f"sha256:{digest_of([each.as_json() for each in findings]).hex()}"
