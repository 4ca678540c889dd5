"""What each stage's asset tells of a generation, by the run that made it or from the lake alone."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from scan_pipeline.components.checks import (
    Extracted,
    checks_table,
    pages_checks,
    receipt_check,
    reconciliation_checks,
    records_checks,
)
from scan_pipeline.components.metadata import (
    STATEMENT,
    Metadata,
    column_schema,
    expectations_table,
    pages_metadata,
    receipt_metadata,
    table,
)
from scan_pipeline.components.plots import plot_of_walk, plots_of_receipt
from scan_pipeline.core.reconciliation import PartitionSummary, Reconciliation
from scan_pipeline.core.value import record
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reconciling.ledger_schema import ledger_faults, read_ledger
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.table_reader import TableReader


@record
class Told:
    """What one asset tells of one generation.

    Attributes:
        metadata: figures, tables and places.
        checks: what it was held to.
        version: of its data, None where nothing names it.
    """

    metadata: Metadata
    checks: tuple[dg.AssetCheckResult, ...]
    version: str | None = None

    def result(self, **more: Any) -> dg.MaterializeResult:
        """Return it as a run's result, with metadata that only a run knows."""
        return dg.MaterializeResult(
            metadata={**self.metadata, **more},
            check_results=list(self.checks),
            data_version=None if self.version is None else dg.DataVersion(self.version),
        )


def pages_told(pipeline: Pipeline, events: Sequence[Event], *, plots: bool) -> Told:
    """Tell of a closed walk, with plots if wanted; its chain is computed again from the rows."""
    store = pipeline.store
    faults = ledger_faults(read_ledger(store.pages(), store.evidence))
    return Told(
        metadata={**pages_metadata(events), **(plot_of_walk(store) if plots else {})},
        checks=tuple(pages_checks(events, faults)),
    )


def records_told(pipeline: Pipeline, found: Extracted) -> Told:
    """Tell of the staged records."""
    staged = pipeline.store.records()
    columns = _columns(staged, pipeline.generation)
    return Told(
        metadata={
            "dagster/row_count": found.records,
            "dagster/column_schema": column_schema(columns),
            "nonconforming": found.nonconforming,
            "without_key": found.without_key,
            "dagster/uri": staged.uri,
        },
        checks=tuple(records_checks(found, allowed=pipeline.scan.contract.accept.nonconforming)),
    )


def reconciliation_told(
    pipeline: Pipeline, figures: Reconciliation, partitions: Sequence[PartitionSummary]
) -> Told:
    """Tell of what arrived beside what is known of the whole."""
    return Told(
        metadata={
            "dagster/row_count": len(partitions),
            **figures.figures(),
            "expectations": expectations_table(figures.expectations),
            "partition_summaries": table(each.__dict__ for each in partitions),
            "dagster/uri": pipeline.store.summaries().uri,
        },
        checks=tuple(reconciliation_checks(figures)),
    )


def receipt_told(stored: StoredReceipt, *, workspace: Workspace, plots: bool) -> Told:
    """Tell of a receipt, with plots if wanted."""
    return Told(
        metadata={
            # In the order in which the UI shows it: the verdict, what it rests on, the rest.
            STATEMENT: stored.receipt.statement,
            "checks": table(checks_table(stored.receipt)),
            **(plots_of_receipt(stored, workspace=workspace) if plots else {}),
            **receipt_metadata(stored, workspace=workspace),
        },
        checks=(receipt_check(stored),),
        version=stored.receipt_id,
    )


def kept_extraction(stored: StoredReceipt) -> Extracted:
    """Return what became of a certified generation's records, as its receipt keeps it."""
    kept = stored.receipt.extraction
    return Extracted(
        records=kept.admitted, nonconforming=kept.nonconforming, without_key=kept.without_key
    )


def _columns(staged: TableReader, generation: str) -> pa.Schema:
    """Return the columns a generation was written with; the table's where it is empty."""
    first = next(staged.batches(generation, batch_size=1), None)
    return staged.read(generation).schema if first is None else first.schema
