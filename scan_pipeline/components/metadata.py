"""What people see of a generation in Dagster: counts, sentences, tables and places."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import dagster as dg
import pyarrow as pa

from scan_pipeline.core.receipt import Receipt, ReceiptExpectation, last_stop_reason
from scan_pipeline.core.reconciliation import ExpectationResult
from scan_pipeline.stages.inventory import VerifiedInventory
from scan_pipeline.stages.standing import Standing
from scan_pipeline.stages.unlock import PartialCollection, VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.receipts import StoredReceipt

Metadata = dict[str, Any]

RECEIPT_ID: Final = "scan_pipeline/receipt_id"
RECEIPT_IDS: Final = "scan_pipeline/receipt_ids"
"""The same of several scans, by the name under which each was read."""

SKEW_SECONDS: Final = "scan_pipeline/skew_seconds"
STATEMENT: Final = "scan_pipeline/statement"
COVERAGE_STATUS: Final = "scan_pipeline/coverage_status"
CONCLUSION_SCOPE: Final = "scan_pipeline/conclusion_scope"
AGE_SECONDS: Final = "scan_pipeline/age_seconds"
LATE: Final = "scan_pipeline/late"
STOP_REASON: Final = "scan_pipeline/stop_reason"
CERTIFIED_HERE: Final = "scan_pipeline/certified_here"
"""Whether the run that tells of a receipt is the one that issued it."""

JUDGED_AGAIN_AS: Final = "scan_pipeline/judged_again_as"
"""The generation whose receipt supersedes this one's."""

SHOWN_ROWS: Final = 100
"""Rows of a table in metadata, at most: the tables of the lake hold all of them."""


def table(rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a table that the UI shows; nested values and nulls become text.

    Args:
        rows: with the same members each; none give an empty table.
    """
    shown = [
        dg.TableRecord({name: _cell(value) for name, value in row.items()})
        for row, _ in zip(rows, range(SHOWN_ROWS), strict=False)
    ]
    columns = [dg.TableColumn(name) for name in (shown[0].data if shown else {"": ""})]
    return dg.MetadataValue.table(shown, schema=dg.TableSchema(columns=columns))


def expectations_table(
    held: Iterable[ExpectationResult | ReceiptExpectation],
) -> dg.TableMetadataValue:
    """Return expectations as a table: what was expected, what arrived, and what came of it."""
    shown = ("name", "expected", "observed", "result")
    return table({name: getattr(each, name) for name in shown} for each in held)


def column_schema(schema: pa.Schema) -> dg.TableSchema:
    """Return a table's columns as Dagster shows them; names with an underscore are ours."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=field.name,
                type=str(field.type),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in schema
        ]
    )


def pages_metadata(events: Sequence[Event]) -> Metadata:
    """Return the figures of a closed walk."""
    pages = [event for event in events if event.event == "page"]
    close = events[-1].facts
    return {
        "dagster/row_count": len(events),
        "pages": len(pages),
        "records": sum(event.returned or 0 for event in pages),
        "bytes": sum(event.body_bytes or 0 for event in pages),
        "requests": sum(event.attempts or 0 for event in pages),
        "refused_responses": sum(event.event == "refused" for event in events),
        "traversal": close["traversal"],
        STOP_REASON: close["stop_reason"],
        "seconds": (events[-1].received_at - events[0].received_at).total_seconds(),
        "chain": events[-1].chain.hex(),
    }


def receipt_facts(receipt: Receipt, receipt_id: str) -> Metadata:
    """Return the few facts that travel with whatever rests on a receipt."""
    return {
        RECEIPT_ID: receipt_id,
        STATEMENT: receipt.statement,
        COVERAGE_STATUS: receipt.coverage_status,
        CONCLUSION_SCOPE: receipt.conclusion_scope,
    }


def opened_facts(opened: VerifiedCollection | PartialCollection) -> Metadata:
    """Return the same of what was opened, with what was redacted since its receipt was said."""
    said = opened.warning if isinstance(opened, PartialCollection) else opened.word()
    return {**receipt_facts(opened.receipt, opened.receipt_id), STATEMENT: said}


def age_facts(standing: Standing) -> Metadata:
    """Return how old the data is that something rests on, and whether that is late."""
    return {AGE_SECONDS: round(standing.age.total_seconds()), LATE: standing.is_late}


def inventory_facts(opened: VerifiedInventory) -> Metadata:
    """Return what travels with whatever rests on several receipts; the least of them counts."""
    status, scope = opened.weakest
    return {
        RECEIPT_IDS: dict(opened.receipt_ids),
        STATEMENT: opened.word(),
        COVERAGE_STATUS: status,
        CONCLUSION_SCOPE: scope,
        SKEW_SECONDS: opened.skew.total_seconds(),
        "scan_pipeline/generations": table(
            {
                "read as": name,
                "scan": each.receipt.scan,
                "generation": each.receipt.scan_generation,
                "coverage_status": each.receipt.coverage_status,
                "conclusion_scope": each.receipt.conclusion_scope,
                "receipt_id": each.receipt_id,
            }
            for name, each in opened.items()
        ),
    }


def receipt_metadata(stored: StoredReceipt, *, workspace: Workspace) -> Metadata:
    """Return a receipt as the UI shows it."""
    receipt = stored.receipt
    path = workspace.lake.receipt_path(receipt.scan, receipt.scan_generation)
    value = dg.MetadataValue
    return {
        **receipt_facts(receipt, stored.receipt_id),
        "accepted": receipt.accepted,
        "dagster/row_count": receipt.records_observed,
        "unique_ids": receipt.unique_ids_observed,
        "records_expected": receipt.records_expected,
        "duplicate_ids": receipt.duplicate_ids,
        "conflicting_ids": receipt.conflicting_ids,
        "nonconforming": receipt.extraction.nonconforming,
        "pages": receipt.pages_observed,
        "traversal": receipt.traversal,
        STOP_REASON: last_stop_reason(receipt),
        "missing_id_ranges": list(receipt.missing_id_ranges),
        "reasons": value.md("\n".join(f"- {each}" for each in receipt.reasons) or "none"),
        "expectations": expectations_table(receipt.expectations),
        "findings": _findings(receipt),
        "assumptions": table(each.__dict__ for each in receipt.assumptions),
        "merkle_root": receipt.merkle.root,
        "restart_of": receipt.restart_of,
        "report": value.md(
            f"`scan-pipeline receipt {receipt.scan} {receipt.scan_generation} --html`"
        ),
        "receipt": value.path(path) if workspace.lake.is_local else value.url(path),
    }


def _findings(receipt: Receipt) -> Any:
    """Return the findings that the receipt carries, by what a reader looks for first."""
    told = ("severity", "code", "page", "expected", "found", "remedy")
    rows = [{name: getattr(each, name) for name in told} for each in receipt.findings.first]
    return table(rows) if rows else "none"


def _cell(value: object) -> str | int | float | bool:
    if isinstance(value, str | int | float | bool):
        return value
    return "" if value is None else str(value)
