"""What every analysis that ships comes to, so that one printer serves them all."""

from typing import Any

from scan_pipeline.core.claims import Claim
from scan_pipeline.core.value import record


@record
class AnalysisResult:
    """The result of an analysis of one generation.

    Attributes:
        claim: what may be said, bound to the receipt.
        rows: the table, as it is stored.
    """

    claim: Claim
    rows: tuple[dict[str, Any], ...]

    @property
    def statement(self) -> str:
        """The claim's sentence."""
        return self.claim.statement
