"""The analysis that ships with a scan: run where the receipt opens the whole, refused elsewhere."""

from collections.abc import Mapping
from typing import Any, Final

from scan_pipeline.cli.account import words
from scan_pipeline.cli.output import answer, print_facts, print_table
from scan_pipeline.core.claims import Claim
from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import GateClosedError
from scan_pipeline.core.value import record
from scan_pipeline.defs.analyses import ANALYSES
from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline.stages.unlock import unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt

PROVENANCE: Final = frozenset({"scan_generation", "receipt_id", "claim_id", "claim", "statement"})
"""Columns that say the same on every row; people are shown them once, above the table."""


@record
class Outcome:
    """What an analysis came to.

    Attributes:
        analysis: its name.
        claim: what it says, None where it was refused.
        rows: its rows as stored, each with receipt and claim.
        refusal: why it was refused, None where it was not.
    """

    analysis: str
    claim: Claim | None
    rows: tuple[Mapping[str, Any], ...]
    refusal: str | None

    def word(self) -> str:
        """Return its sentence, or that it was refused and why."""
        return f"refused: {self.refusal}" if self.claim is None else self.claim.statement

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "analysis": self.analysis,
            "refused": self.refusal,
            "claim": None if self.claim is None else dict(self.claim.__dict__),
            "rows": [dict(row) for row in self.rows],
        }


def analyse(stored: StoredReceipt, scan: Scan, *, workspace: Workspace) -> Outcome | None:
    """Run the analysis that ships with a scan; None where none does.

    A scan that only shares the name of a shipped one has another record schema, and the analysis
    does not speak of its records.

    Raises:
        TamperedError: the records are not those that were sealed.
    """
    if scan.name not in ANALYSES:
        return None
    if scan.record_schema != shipped_scan(scan.name).parse().record_schema:
        return None
    name, compute = ANALYSES[scan.name]
    try:
        collection = unlock(stored, scan, workspace=workspace)
    except GateClosedError as error:
        return Outcome(analysis=name, claim=None, rows=(), refusal=str(error))
    result = compute(collection, workspace)
    return Outcome(analysis=name, claim=result.claim, rows=result.rows, refusal=None)


def print_outcome(outcome: Outcome) -> None:
    """Give an analysis: its claim and table, or the refusal in words."""
    title, claim = words(outcome.analysis), outcome.claim
    if claim is None:
        answer(f"{title} was refused: {outcome.refusal}")
        return
    answer(f"{title}: {claim.statement}")
    columns = [name for name in outcome.rows[0] if name not in PROVENANCE] if outcome.rows else []
    print_table(columns, [[row[name] for name in columns] for row in outcome.rows])
    print_facts(
        [
            ("claim", f"{claim.name}, evaluated by {claim.evaluated_by}"),
            ("claim id", claim.claim_id),
            ("rests on", claim.receipt_id),
        ]
    )
