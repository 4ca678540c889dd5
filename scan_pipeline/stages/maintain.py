"""Maintenance of a scan's part of the lake: what is open is settled, what is over is let go."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from scan_pipeline.core.errors import ScanPipelineError, WriterConflictError
from scan_pipeline.core.retention import Retention
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.maintaining.dropping import OF_RECORDS, Dropping, table_of
from scan_pipeline.stages.maintaining.keeping import KeptBack, What, plan
from scan_pipeline.stages.maintaining.one_at_a_time import one_at_a_time
from scan_pipeline.stages.pipeline import COMPACT_ABOVE
from scan_pipeline.stages.run import LeftOpen, repair_published, repair_receipts, settle_open
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.published_table import open_published
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.sweeping import clean_log, sweep
from scan_pipeline.store.tables import Table, open_table

ANY: Final = "20000101T000000Z"
"""Names a store of which only the tables are asked."""


@record
class Dropped:
    """What retention let go of one generation."""

    generation: str
    what: What
    bytes: int


@record
class Refused:
    """What was to be let go and could not be: the rows are not what was sealed."""

    generation: str
    what: What
    reason: str


@record
class Maintained:
    """What maintenance came to.

    Attributes:
        closed: receipts of abandoned generations that were closed.
        left: open generations that could not be certified.
        compacted: open generations whose many files were made few.
        dropped: what retention let go.
        kept_back: what retention does not keep and something else does.
        refused: what could not be let go.
        swept_files: files that no version named, and that are gone now.
    """

    closed: tuple[StoredReceipt, ...]
    left: tuple[LeftOpen, ...]
    compacted: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    kept_back: tuple[KeptBack, ...]
    refused: tuple[Refused, ...]
    swept_files: int


def maintain(scan: Scan, *, workspace: Workspace) -> Maintained:
    """Settle, drop, compact, sweep and clean logs; what a receipt pins is touched by no part of it.

    Abandoned generations are closed and certified; the newest open one that a run may still take up
    stays open. Then the scan's retention is carried out, each part told by a signed amendment
    before it is done. A break anywhere leaves a lake that reads right, and doing it again completes
    it. Sealed generations are never compacted again.

    Raises:
        WriterConflictError: another process maintains this scan.
        ConfigurationError: the signing key is missing.
    """
    workspace.begin(scan.name)
    with one_at_a_time(scan.name, workspace=workspace):
        repair_receipts(scan.name, workspace=workspace)
        repair_published(scan, workspace=workspace)
        settled = settle_open(scan, workspace=workspace)
        compacted = _compact(scan.name, settled.resumed, workspace=workspace)
        dropped, refused, kept_back = list[Dropped](), list[Refused](), ()
        if (retention := scan.operation.retention) is not None:
            dropped, refused, kept_back = _let_go(scan.name, retention, workspace=workspace)
        swept = _tidy(scan.name, workspace=workspace)
    return Maintained(
        closed=settled.closed,
        left=settled.left,
        compacted=compacted,
        dropped=tuple(dropped),
        kept_back=tuple(kept_back),
        refused=tuple(refused),
        swept_files=swept,
    )


def tables_of(scan: str, *, workspace: Workspace) -> tuple[Table, ...]:
    """Return the tables of a scan that generations are written to, the published one left out."""
    store = workspace.store(scan, ANY)
    receipts = open_table(workspace.lake, "receipts", scan, "receipts")
    named = [table_of(store, name) for name in ("pages", *OF_RECORDS)]
    return tuple(table for table in (*named, receipts) if table.exists())


def _let_go(
    scan: str, retention: Retention, *, workspace: Workspace
) -> tuple[list[Dropped], list[Refused], Sequence[KeptBack]]:
    planned = plan(scan, retention, workspace=workspace)
    dropped, refused = list[Dropped](), list[Refused]()

    def drop(generation: str, what: What, dropping: Dropping) -> None:
        receipt = receipts[generation]
        try:
            gone = (
                dropping.bodies(receipt.evidence["pages"])
                if what == "bodies"
                else dropping.records(receipt)
            )
        except ScanPipelineError as error:
            refused.append(Refused(generation=generation, what=what, reason=str(error)))
            return
        if gone:
            dropped.append(Dropped(generation=generation, what=what, bytes=gone))

    receipts = {each.scan_generation: each for each in (*planned.bodies, *planned.records)}
    whole, part = retention.records, retention.bodies or retention.records
    for receipt in planned.bodies:
        of_records = receipt in planned.records
        keep = whole if of_records else part
        word = "" if keep is None else keep.word()
        because = f"retention: {'records' if of_records else 'bodies'} are kept for {word}"
        drop(
            receipt.scan_generation,
            "bodies",
            Dropping(scan, workspace=workspace, because=because),
        )
    because = f"retention: records are kept for {'' if whole is None else whole.word()}"
    for receipt in planned.records:
        drop(
            receipt.scan_generation,
            "records",
            Dropping(scan, workspace=workspace, because=because),
        )
    return dropped, refused, planned.kept_back


def _compact(scan: str, generation: str | None, *, workspace: Workspace) -> tuple[str, ...]:
    """Make few files of an open walk's many; a sealed generation stays as it was pinned."""
    if generation is None:
        return ()
    store: GenerationStore = workspace.store(scan, generation)
    table = store.pages()
    if store.is_sealed() or len(table.files(generation)) <= COMPACT_ABOVE:
        return ()
    with suppress(WriterConflictError):  # its walk goes on: it will compact when it is closed
        if table.compact(generation):
            return (generation,)
    return ()


def _tidy(scan: str, *, workspace: Workspace) -> int:
    """Sweep the files of sealed generations, and let go of old log entries."""
    sealed = workspace.receipts(scan).committed_generations()
    tables: Iterable[Table] = tables_of(scan, workspace=workspace)
    swept = 0
    for table in tables:
        swept += sweep(table, only=sealed)
        clean_log(table)
    published = open_published(workspace.lake, scan)
    return swept + (published.sweep() if published.exists() else 0)
