"""The members of a receipt that an audit computes again, by name."""

from collections.abc import Mapping
from typing import Any, Final

from scan_pipeline.core.canonical import canonical_json, key_hash
from scan_pipeline.core.findings import Finding
from scan_pipeline.stages.erasing.naming import REDACTED
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.store.receipts import StoredReceipt

NOT_COMPUTED: Final = frozenset(
    {
        "completed_at",
        "evidence",
        "findings",
        "reasons",
        "redacts",
        "release_policy.policy",
        "statement",
        "supersedes",
    }
)
"""Members with a check of their own, the moment of sealing, and words, which may be bettered."""

OF_RECORDS: Final = (
    "accepted",
    "conclusion_scope",
    "conflicting_ids",
    "coverage_status",
    "duplicate_ids",
    "expectations",
    "extraction",
    "merkle",
    "missing_id_ranges",
    "records_expected",
    "records_observed",
    "release_policy",
    "second_walk.figures",
    "unique_ids_observed",
    "withheld",
)
"""Members that need the records, and not the ledger alone."""


def members(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a receipt is computed again, by its name; inner members as `merkle.root`."""
    found = dict[str, Any]()

    def lay_out(name: str, value: Any) -> None:
        if name in NOT_COMPUTED:
            return
        if isinstance(value, dict) and value:
            for inner, each in value.items():
                lay_out(f"{name}.{inner}", each)
        else:
            found[name] = value

    for name, value in told.items():
        lay_out(name, value)
    return found


def copied(stored: StoredReceipt | None) -> tuple[str, ...]:
    """Return word of a receipt that was copied without a key that it named."""
    if stored is None or stored.receipt.redacts is None:
        return ()
    return (f"receipt copied without a redacted key in place of {stored.receipt.redacts}",)


def is_redacted(value: Any) -> bool:
    """Say whether a figure named a record that was erased."""
    return REDACTED in canonical_json(value).decode()


def of_records(name: str) -> bool:
    """Say whether a member needs the records, and not the ledger alone."""
    return name.startswith(OF_RECORDS)


def noticed(told: Finding, redactions: Redactions) -> tuple[str, str, int | None, str | None]:
    """Return what a finding is about; its words may be bettered. An erased key is no key."""
    named = told.key is not None and (
        told.key == REDACTED or key_hash(told.key.encode()) in redactions.keys
    )
    return told.code, told.severity, told.page, None if named else told.key


def summed(rows: list[dict[str, Any]], redactions: Redactions) -> list[dict[str, Any]]:
    """Return partition summaries to compare; first and last key may have been the erased one's."""
    if not redactions:
        return rows
    return [{n: each for n, each in row.items() if not n.endswith("_key")} for row in rows]
