"""The analyses that ship with a scan: run where the receipt opens the whole, refused elsewhere."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from scan_pipeline.cli.account import words
from scan_pipeline.cli.output import answer, print_facts, print_table
from scan_pipeline.core.claims import Claim, Completeness
from scan_pipeline.core.errors import (
    ConfigurationError,
    GateClosedError,
    NarrowError,
    RetryError,
)
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.defs.analyses import ANALYSES, Shipped
from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline.stages.unlock import VerifiedCollection, unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt

PROVENANCE: Final = frozenset({"scan_generation", "receipt_id", "claim_id", "claim", "statement"})
"""Columns that say the same on every row; people are shown them once, above the table."""


@record
class Outcome:
    """What an analysis came to.

    Attributes:
        analysis: its name.
        claim: what it says, None where it was refused or did not run.
        rows: its rows as stored, each with receipt and claim.
        refusal: why the gate refused it, None where it did not.
        not_run: why it did not run although the gate is open, e.g. an extra that is missing; this
            is no word on what was covered.
        completeness: how much of the whole was judged, where a reader judged and no engine.
        shown: columns that people are shown; all but those of provenance where empty.
        quality: how good the analysis itself is, apart from coverage.
    """

    analysis: str
    claim: Claim | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    refusal: str | None = None
    not_run: str | None = None
    completeness: Completeness | None = None
    shown: tuple[str, ...] = ()
    quality: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def word(self) -> str:
        """Return its sentence, or that it was refused or did not run and why."""
        if self.refusal is not None:
            return f"refused: {self.refusal}"
        if self.claim is None:
            return f"did not run: {self.not_run}"
        judged = "" if self.completeness is None else f"({words(self.completeness)}) "
        return f"{judged}{self.claim.statement}"

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "analysis": self.analysis,
            "refused": self.refusal,
            "not_run": self.not_run,
            "claim": None if self.claim is None else dict(self.claim.__dict__),
            "completeness": self.completeness,
            "quality": dict(self.quality),
            "rows": [dict(row) for row in self.rows],
        }


def analyse(stored: StoredReceipt, scan: Scan, *, workspace: Workspace) -> tuple[Outcome, ...]:
    """Run the analyses that ship with a scan; none where none do.

    A scan that only shares the name of a shipped one has another record schema, and its analyses
    do not speak of its records.

    Raises:
        TamperedError: the records are not those that were sealed.
    """
    if scan.name not in ANALYSES:
        return ()
    if scan.record_schema != shipped_scan(scan.name).parse().record_schema:
        return ()
    shipped = ANALYSES[scan.name]
    try:
        collection = unlock(stored, scan, workspace=workspace)
    except GateClosedError as error:
        return tuple(Outcome(analysis=each.name, refusal=str(error)) for each in shipped)
    return tuple(_run(each, collection, workspace=workspace) for each in shipped)


def _run(shipped: Shipped, collection: VerifiedCollection, *, workspace: Workspace) -> Outcome:
    try:
        result = shipped.load()(collection, workspace)
    except (ConfigurationError, NarrowError, RetryError) as error:
        return Outcome(analysis=shipped.name, not_run=str(error))
    return Outcome(
        analysis=shipped.name,
        claim=result.claim,
        rows=result.rows,
        completeness=result.completeness,
        shown=result.shown,
        quality=result.quality,
    )


def print_outcome(outcome: Outcome) -> None:
    """Give an analysis: its claim and table, or in words why there is none."""
    title, claim = words(outcome.analysis), outcome.claim
    if claim is None:
        refused = outcome.refusal is not None
        answer(f"{title} {'was ' if refused else ''}{outcome.word()}")
        return
    answer(f"{title}: {outcome.word()}")
    first = outcome.rows[0] if outcome.rows else {}
    columns = outcome.shown or [name for name in first if name not in PROVENANCE]
    print_table(columns, [[row[name] for name in columns] for row in outcome.rows])
    print_facts(
        [
            ("claim", f"{claim.name}, evaluated by {claim.evaluated_by}"),
            ("claim id", claim.claim_id),
            ("rests on", claim.receipt_id),
        ]
    )
    if outcome.quality:
        answer("Of the analysis itself, apart from what was covered:")
        print_facts((words(name), value) for name, value in outcome.quality.items())
