"""The last accepted generation as a plain table, for readers who never heard of generations."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.errors import GateClosedError, TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.syncing.current import publish_current
from scan_pipeline.stages.unlock import LABELS, checked_records
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.published_table import GENERATION, RECEIPT_ID, REDACTED, open_published
from scan_pipeline.store.receipts import StoredReceipt, Untrusted, generation_order
from scan_pipeline.store.tables import Table

HIDDEN: Final = ("_page", "_position", "_key", "_key_hash", "_leaf_hash")
"""Columns of the staging that a reader of the published table has no use for."""


def publish(scan: Scan, *, workspace: Workspace) -> str | None:
    """Let the published table hold the newest accepted generation that stands.

    What is not accepted changes nothing: the last accepted night stays. Where the published one
    was judged again and is no longer accepted, the last one before it takes its place; where there
    is none whose records are kept, the table is withdrawn, with a word in its place. Of a scan of
    rounds it holds what the rounds that hold together come to.

    Returns:
        The generation that was put there; None where nothing was.

    Raises:
        TamperedError: the staged records are not those of the receipt.
    """
    if scan.contract.mode == "sync":
        return publish_current(scan, workspace=workspace)
    held = published_generation(scan.name, workspace=workspace)
    shelf, scope, dropped = Shelf(scan.name, workspace=workspace), scope_digest(scan), False
    for each in shelf.newest_first():
        if isinstance(each, Untrusted):
            if each.generation == held:
                return None  # a spoilt file is no judgement: the audit names it
            continue
        receipt, generation = each.receipt, each.receipt.scan_generation
        older = held is not None and generation_order(generation) < generation_order(held)
        hidden = older and not dropped
        if shelf.superseded_by(each) is not None:
            dropped |= generation == held
        elif generation == held:
            open_published(workspace.lake, scan.name).sweep()  # what a break may have left
            return None
        elif _is_fit(receipt) and receipt.scope_digest == scope and not hidden:
            try:
                _put(each, scan, workspace=workspace)
            except GateClosedError:
                continue  # its records were dropped since: it is nobody's table any more
            return generation
    if dropped and held is not None:
        _withdraw(scan, workspace=workspace, generation=held)
    return None


def publish_again(stored: StoredReceipt, scan: Scan, *, workspace: Workspace) -> None:
    """Put the published generation there once more, as its records are now.

    Of a scan of rounds, what all its rounds come to is laid together anew.

    Raises:
        TamperedError: the staged records are not those of the receipt.
    """
    if scan.contract.mode == "sync":
        publish_current(scan, workspace=workspace, anew=True)
        return
    _put(stored, scan, workspace=workspace)


def _is_fit(receipt: Receipt) -> bool:
    """Say whether a receipt publishes; pages of a walk that stopped are nobody's table."""
    return receipt.accepted and receipt.conclusion_scope != "observed_pages_only"


def _put(stored: StoredReceipt, scan: Scan, *, workspace: Workspace) -> None:
    generation = stored.receipt.scan_generation
    opened = checked_records(stored, workspace)
    rows = rows_to_publish(stored, opened.table)
    table = open_published(workspace.lake, scan.name, rows.schema, layout=Layout(dictionary=LABELS))
    published = table.replace_all(
        rows,
        generation=generation,
        metadata={
            RECEIPT_ID: stored.receipt_id,
            GENERATION: generation,
            **({REDACTED: opened.redactions.word()} if opened.redactions else {}),
        },
    )
    expected = stored.receipt.unique_ids_observed - len(opened.redactions.keys)
    if published != expected:
        raise TamperedError("published", f"{published} rows were published; expected {expected}")
    table.sweep()  # no reader of the folder may count the last night's files beside this one's
    workspace.lake.remove_word(workspace.lake.published_uri(scan.name))


def _withdraw(scan: Scan, *, workspace: Workspace, generation: str) -> None:
    workspace.lake.withdraw(
        workspace.lake.published_uri(scan.name),
        word=f"The table of {scan.name} held generation {generation}. Its pages were judged again "
        "and are no longer accepted, and no accepted generation is left that stands and has its "
        "records. The next accepted one is published here. See: scan-pipeline generations "
        f"{scan.name}\n",
    )


def rows_to_publish(stored: StoredReceipt, staged: Table) -> pa.RecordBatchReader:
    """Return what is published of a receipt's records: plain columns, and labels on a part."""
    generation = stored.receipt.scan_generation
    keep = [each for each in staged.written_schema(generation) if each.name not in HIDDEN]
    labels = _labels(stored)
    schema = pa.schema([*keep, *(pa.field(name, pa.string()) for name in labels)])
    repeats = stored.receipt.duplicate_ids > 0
    plain = _rows(staged, generation, pa.schema(keep), repeats=repeats)
    return pa.RecordBatchReader.from_batches(
        schema, (_labelled(batch, schema, labels) for batch in plain)
    )


def published_generation(scan: str, *, workspace: Workspace) -> str | None:
    """Return the generation that the published table holds, None where there is none."""
    table = open_published(workspace.lake, scan)
    if not table.exists():
        return None
    found = table.latest_commit().get(GENERATION)
    return None if found is None else str(found)


def _labels(stored: StoredReceipt) -> dict[str, str]:
    """Return what every row must say where the scan accepts less than a whole; nothing else."""
    receipt = stored.receipt
    if is_whole(receipt.coverage_status, receipt.conclusion_scope):
        return {}
    values = (stored.receipt_id, receipt.coverage_status, receipt.conclusion_scope)
    return dict(zip(LABELS, values, strict=True))


def _labelled(
    batch: pa.RecordBatch, schema: pa.Schema, labels: Mapping[str, str]
) -> pa.RecordBatch:
    said = [_repeated(value, batch.num_rows) for value in labels.values()]
    return pa.RecordBatch.from_arrays([*batch.columns, *said], schema=schema)


@lru_cache(maxsize=16)
def _repeated(value: str, rows: int) -> pa.Array:
    """Return a column of one value; nearly all batches of a table are of one size."""
    return pa.repeat(pa.scalar(value), rows)


def _rows(
    staged: Table, generation: str, schema: pa.Schema, *, repeats: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows; of a record that was delivered again, as declared, the first alone."""
    if not repeats:
        yield from staged.batches(generation, columns=schema.names)
        return
    keys = pl.DataFrame(staged.read(generation, columns=("_key_hash",)))["_key_hash"]
    first = pa.array(keys.is_first_distinct().to_list())
    start = 0
    for batch in staged.batches(generation, columns=schema.names):
        yield batch.filter(first.slice(start, batch.num_rows))
        start += batch.num_rows
