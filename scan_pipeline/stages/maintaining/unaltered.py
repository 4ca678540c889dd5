"""What is rewritten and signed anew must be what was signed before."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from scan_pipeline.core.amendment import Amendment
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import PinnedTableEvidence
from scan_pipeline.store.file_writer import NewFile
from scan_pipeline.store.held_now import HeldNow, held_now, pinned_evidence
from scan_pipeline.store.pinning import pin_written, verify_pin
from scan_pipeline.store.tables import Table

Change: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch | None]
"""Gives a batch as it should be; None for none of its rows."""

Announce: TypeAlias = Callable[[PinnedTableEvidence], None]
"""Told what will stand in the place of what a receipt pins, before it does."""


def unaltered(
    name: str, table: Table, held: PinnedTableEvidence, amendments: Sequence[Amendment]
) -> HeldNow:
    """Return what a generation's rows are held against, after holding them, contents and all.

    Raises:
        TamperedError: the rows are neither what was sealed nor what an amendment says.
    """
    now = held_now(name, table, held, amendments)
    if now.pin is None:
        if table.files(held.generation):
            raise TamperedError(
                table.name,
                f"{table.name} {held.generation}: found rows; expected none, as "
                f"{now.amendments[-1].word()}",
            )
        return now
    verify_pin(table, held.generation, now.pin, contents=True)
    return now


def rewrite(table: Table, generation: str, *, change: Change, announce: Announce) -> None:
    """Rewrite a sealed generation's rows; the new files are pinned and told before they count."""

    def told(files: Sequence[NewFile]) -> None:
        pin = pin_written(
            files, folder=table.folder, location=table.location, version=table.version() + 1
        )
        announce(pinned_evidence(pin, generation=generation))

    table.rewrite(change, generation=generation, announce=told)
