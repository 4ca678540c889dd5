"""What every analysis that ships comes to, so that one printer serves them all."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from scan_pipeline.core.claims import Claim, Completeness
from scan_pipeline.core.value import record


@record
class AnalysisResult:
    """The result of an analysis of one generation.

    Attributes:
        claim: what may be said, bound to the receipt.
        rows: the table, as it is stored.
        completeness: how much of the whole was judged, where a reader judged and no engine.
        shown: columns of it that people are shown; all where empty.
        quality: how good the analysis itself is, where that is a question. It says nothing of what
            was covered, and the claim nothing of it.
    """

    claim: Claim
    rows: tuple[dict[str, Any], ...]
    completeness: Completeness | None = None
    shown: tuple[str, ...] = ()
    quality: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def statement(self) -> str:
        """The claim's sentence."""
        return self.claim.statement
