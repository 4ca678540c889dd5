"""Fifth stage: the only way to a generation's records, and it asks for the receipt first."""

from typing import TYPE_CHECKING, Literal

import polars as pl
import pyarrow as pa

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.coverage import satisfies
from scan_pipeline.core.errors import GateClosedError, TamperedError
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import WHOLE_COLLECTION, ConclusionScope
from scan_pipeline.sources.extras import needs_extra
from scan_pipeline.stages.generation_rows import generation_rows
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.held_now import held_now
from scan_pipeline.store.pinning import verify_pin
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.tables import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

Wish = Literal["verified", "corroborated"]
"""The least status a reader of the whole asks for."""

LABELS = ("_receipt_id", "_coverage_status", "_conclusion_scope")

SUPERSEDED_BY = "_superseded_by"
"""A further label, of rows that are read as a receipt once told them that no longer stands."""


class VerifiedCollection:
    """The whole collection of one generation; made by `unlock` alone."""

    def __init__(self, opened: "Opened", stored: StoredReceipt) -> None:
        self._table, self._generation = opened.table, _held_records(stored.receipt).generation
        self.receipt, self.receipt_id = stored.receipt, stored.receipt_id
        self.redactions = opened.redactions

    def frame(self) -> pl.LazyFrame:
        """Return exactly this generation's records, one row each, columns as staged."""
        return generation_rows(self._table, self._generation, self.receipt)

    def delivered(self) -> pl.LazyFrame:
        """Return every row as it was delivered, the repeats of an `at_least_once` source too.

        For whoever knows by page and position which rows `frame` has, and reads those alone: to
        tell a repeat takes a pass over all of them.
        """
        return generation_rows(self._table, self._generation, self.receipt, repeats=True)

    def arrow(self) -> pa.Table:
        """Return the same rows as an Arrow table, read at once."""
        if not self.receipt.duplicate_ids:
            return self._table.read(self._generation)
        return self.frame().collect().to_arrow(compat_level=pl.CompatLevel.oldest())

    def duckdb(self, connection: "DuckDBPyConnection | None" = None) -> "DuckDBPyRelation":
        """Return the same rows as a DuckDB relation, read at once.

        Args:
            connection: where it is to be queried; None for DuckDB's own default.

        Raises:
            ConfigurationError: DuckDB is not installed.
        """
        with needs_extra("duckdb", "the DuckDB view of a collection"):
            import duckdb  # noqa: PLC0415  # an extra
        return duckdb.from_arrow(self.arrow(), connection=connection or duckdb.default_connection())

    def word(self) -> str:
        """Return the receipt's sentence, and what was redacted since."""
        return amended(self.receipt.statement, self.redactions)


class PartialCollection:
    """Records that are not proven to be the whole; every row says so."""

    def __init__(
        self,
        opened: "Opened",
        stored: StoredReceipt,
        *,
        word: str,
        superseded_by: str | None = None,
    ) -> None:
        self._table, self._generation = opened.table, _held_records(stored.receipt).generation
        self.receipt, self.receipt_id = stored.receipt, stored.receipt_id
        self.redactions = opened.redactions
        self.warning, self.superseded_by = amended(word, opened.redactions), superseded_by

    def labelled_frame(self) -> pl.LazyFrame:
        """Return the rows with the receipt id, the status and the scope on each of them.

        Where the receipt is superseded, each row names the receipt that stands as well.
        """
        return self._labelled(repeats=False)

    def labelled_delivered(self) -> pl.LazyFrame:
        """Return every row as it was delivered, labelled; as `VerifiedCollection.delivered`."""
        return self._labelled(repeats=True)

    def _labelled(self, *, repeats: bool) -> pl.LazyFrame:
        rows = generation_rows(
            self._table, self._generation, self.receipt, repeats=repeats
        ).with_columns(
            pl.lit(self.receipt_id).alias("_receipt_id"),
            pl.lit(self.receipt.coverage_status).alias("_coverage_status"),
            pl.lit(self.receipt.conclusion_scope).alias("_conclusion_scope"),
        )
        if self.superseded_by is None:
            return rows
        return rows.with_columns(pl.lit(self.superseded_by).alias(SUPERSEDED_BY))


def unlock(
    stored: StoredReceipt,
    scan: Scan,
    *,
    workspace: Workspace,
    at_least: Wish = "verified",
    contents: bool = False,
) -> VerifiedCollection:
    """Open the whole collection of one generation.

    Args:
        stored: its receipt, read and with its signature checked.
        scan: the contract the reader means.
        workspace: where the tables lie.
        at_least: the least status; `corroborated` must be asked for by name.
        contents: whether file contents are hashed, not only their paths and sizes.

    Raises:
        GateClosedError: the receipt is of another contract, is superseded, or does not say as
            much.
        TamperedError: the records are not those that were sealed.
    """
    receipt = stored.receipt
    _same_scope(receipt, scan)
    _stands(stored, workspace)
    whole = receipt.conclusion_scope in WHOLE_COLLECTION
    if not whole or not satisfies(
        receipt.coverage_status,
        receipt.conclusion_scope,
        wish_status=at_least,
        wish_scope=receipt.conclusion_scope,
    ):
        raise _closed(receipt, f"expected {at_least} over the whole collection")
    if receipt.extraction.nonconforming > receipt.accept.nonconforming:
        raise _closed(
            receipt,
            f"{receipt.extraction.nonconforming} records do not conform; expected at most "
            f"{receipt.accept.nonconforming}",
        )
    return VerifiedCollection(checked_records(stored, workspace, contents=contents), stored)


def open_partial(
    stored: StoredReceipt,
    scan: Scan,
    *,
    workspace: Workspace,
    accept: ConclusionScope,
    contents: bool = False,
) -> PartialCollection:
    """Open what was read of one generation, as no more than its scope.

    Args:
        stored: its receipt, read and with its signature checked.
        scan: the contract the reader means.
        workspace: where the tables lie.
        accept: the least scope the reader is content with, named.
        contents: whether file contents are hashed, not only their paths and sizes.

    Raises:
        GateClosedError: the evidence disagrees, the scope is less than `accept`, or the receipt
            is superseded.
        TamperedError: the records are not those that were sealed.
    """
    receipt = stored.receipt
    _same_scope(receipt, scan)
    _stands(stored, workspace)
    opened = _partly(stored, workspace, accept=accept, contents=contents)
    return PartialCollection(opened, stored, word=receipt.statement)


def open_superseded(
    stored: StoredReceipt,
    scan: Scan,
    *,
    workspace: Workspace,
    accept: ConclusionScope,
    contents: bool = False,
) -> PartialCollection:
    """Open what a receipt said before it was superseded; every row names the one that stands.

    For whoever asks for that very receipt, to see what was read then; as `open_partial` else.

    Raises:
        GateClosedError: the receipt stands, or as `open_partial`.
        TamperedError: the records are not those that were sealed.
    """
    receipt = stored.receipt
    _same_scope(receipt, scan)
    by = Shelf(receipt.scan, workspace=workspace).superseded_by(stored)
    if by is None:
        raise _closed(receipt, "it is superseded by no other: open it as what it is")
    opened = _partly(stored, workspace, accept=accept, contents=contents)
    word = f"{receipt.statement} Superseded by {by.receipt.scan_generation}: {by.receipt.statement}"
    return PartialCollection(opened, stored, word=word, superseded_by=by.receipt_id)


def _partly(
    stored: StoredReceipt, workspace: Workspace, *, accept: ConclusionScope, contents: bool
) -> "Opened":
    receipt = stored.receipt
    if receipt.coverage_status == "failed":
        raise _closed(receipt, "a failed generation opens to nobody")
    if not satisfies(
        receipt.coverage_status, receipt.conclusion_scope, wish_status="unknown", wish_scope=accept
    ):
        raise _closed(receipt, f"expected at least {accept}")
    return checked_records(stored, workspace, contents=contents)


def why_closed(receipt: Receipt) -> str:
    """Return in a few words why a receipt does not open the whole."""
    status = f"{receipt.coverage_status}, {receipt.conclusion_scope}"
    return f"{status}: {receipt.reasons[0]}" if receipt.reasons else status


def _same_scope(receipt: Receipt, scan: Scan) -> None:
    expected = scope_digest(scan)
    if receipt.scan != scan.name or receipt.scope_digest != expected:
        raise GateClosedError(
            scan=scan.name,
            generation=receipt.scan_generation,
            reason=f"the receipt is of another contract (scope {receipt.scope_digest}); expected "
            f"{expected}. Scan again under the present contract",
        )


def _stands(stored: StoredReceipt, workspace: Workspace) -> None:
    """Refuse a receipt whose pages were judged again since."""
    receipt = stored.receipt
    by = Shelf(receipt.scan, workspace=workspace).superseded_by(stored)
    if by is not None:
        raise GateClosedError(
            scan=receipt.scan,
            generation=receipt.scan_generation,
            reason=f"its pages were judged again as {by.receipt.scan_generation}, "
            f"{why_closed(by.receipt)}; expected that one to be read. What this one said then is "
            f"opened by its receipt alone, {stored.receipt_id}, and labelled",
        )


def _closed(receipt: Receipt, expected: str) -> GateClosedError:
    return GateClosedError(
        scan=receipt.scan,
        generation=receipt.scan_generation,
        reason=f"coverage is {why_closed(receipt)}; {expected}",
    )


def amended(statement: str, redactions: Redactions) -> str:
    """Return a receipt's sentence with what was redacted since it was said."""
    return f"{statement} Since then: {redactions.word()}." if redactions else statement


def _held_records(receipt: Receipt) -> PinnedTableEvidence:
    held = receipt.evidence.get("records")
    if held is None:
        raise TamperedError("receipt", f"{receipt.scan_generation}: no records are pinned")
    return held


@record
class Opened:
    """A receipt's records, held against its pin, and what was redacted of them since."""

    table: Table
    redactions: Redactions


def checked_records(
    stored: StoredReceipt, workspace: Workspace, *, contents: bool = False
) -> Opened:
    """Return the table of a receipt's records after holding it against the pin.

    Raises:
        TamperedError: the receipt is not the one that was committed, or there are two of its
            generation; or files are missing, added or altered.
        GateClosedError: the records were dropped, as an amendment says.
    """
    receipt = stored.receipt
    workspace.receipts(receipt.scan).confirm(stored)
    held = _held_records(receipt)
    generation, table = held.generation, workspace.store(receipt.scan, held.generation).records()
    notes = workspace.amendments(receipt.scan).of(generation, trust=workspace.trust)
    now = held_now("records", table, held, notes)
    if now.pin is None:
        raise GateClosedError(
            scan=receipt.scan,
            generation=receipt.scan_generation,
            reason=f"{now.amendments[-1].word()}; expected records. Its receipt still audits, as "
            "deep as the ledger: read a newer generation",
        )
    verify_pin(table, generation, now.pin, contents=contents)
    return Opened(table=table, redactions=Redactions.of(now.amendments))
