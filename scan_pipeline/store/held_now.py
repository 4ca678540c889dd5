"""What stands now in the place of what a receipt pins: the same, an amended form, or nothing."""

from collections.abc import Sequence

from scan_pipeline.core.amendment import Amendment
from scan_pipeline.core.receipt import PinnedFileEvidence, PinnedTableEvidence
from scan_pipeline.core.value import record
from scan_pipeline.store.data_files import DataFile
from scan_pipeline.store.pinning import PinnedFile, PinnedTable
from scan_pipeline.store.table_reader import TableReader


@record
class HeldNow:
    """One table's rows of one generation as they should be now.

    Attributes:
        pin: what they are held against; None where they were dropped.
        amendments: what was done to them since they were sealed, oldest first.
    """

    pin: PinnedTable | None
    amendments: tuple[Amendment, ...] = ()


def held_now(
    name: str,
    table: TableReader,
    held: PinnedTableEvidence,
    amendments: Sequence[Amendment],
) -> HeldNow:
    """Say what a generation's rows are to be held against.

    An amendment is written before what it tells of is done; a break in between leaves the rows as
    they were before, which is as right. So what lies there decides which it is, newest first; what
    fits none is held against the newest, and will not agree.

    Args:
        name: of the table, as receipts call it.
        table: it.
        held: what the receipt pins.
        amendments: of the generation that holds the rows, oldest first.
    """
    told = [each for each in amendments if name in each.tables]
    if not told:
        return HeldNow(pin=pinned_table(held))
    found = _layout(table.files(held.generation))
    for number in range(len(told), 0, -1):
        now = told[number - 1].tables[name]
        if found == _pinned_layout(now):
            pin = None if now is None else pinned_table(now)
            return HeldNow(pin=pin, amendments=tuple(told[:number]))
    if found == _pinned_layout(held) or not held.files:
        return HeldNow(pin=pinned_table(held))
    now = told[-1].tables[name]
    return HeldNow(pin=None if now is None else pinned_table(now), amendments=tuple(told))


def pinned_table(held: PinnedTableEvidence) -> PinnedTable:
    """Return a receipt's pin as the store knows it."""
    return PinnedTable(
        location=held.table,
        version=held.version,
        rows=held.rows,
        files_digest=held.files_digest,
        files=tuple(
            PinnedFile(path=each.path, size=each.size, sha256=each.sha256) for each in held.files
        ),
    )


def pinned_evidence(pin: PinnedTable, *, generation: str) -> PinnedTableEvidence:
    """Return a pin as receipts and amendments carry it."""
    return PinnedTableEvidence(
        table=pin.location,
        generation=generation,
        version=pin.version,
        rows=pin.rows,
        files_digest=pin.files_digest,
        files=tuple(
            PinnedFileEvidence(path=each.path, size=each.size, sha256=each.sha256)
            for each in pin.files
        ),
    )


def _layout(files: Sequence[DataFile]) -> frozenset[tuple[str, int]]:
    return frozenset((each.path, each.size) for each in files)


def _pinned_layout(held: PinnedTableEvidence | None) -> frozenset[tuple[str, int]]:
    return frozenset() if held is None else frozenset((each.path, each.size) for each in held.files)
