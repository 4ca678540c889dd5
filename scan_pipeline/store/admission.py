"""The fence before the events of a walk: only the writer who knows what came last goes on.

One commit holds one group of events of one shard. It is made through a single fresh handle, and
rests on what that very handle shows: the version of the Delta transaction `scan/generation/shard`
(the last sequence number), the last committed row, no close event, no receipt. The transaction
refuses a writer who committed from the same moment; the row's chain refuses one who walked on
other answers. Without the second, two walkers of one generation leave pages 1 and 2 of one and 3
and 4 of the other, with every sequence number once and a row of the source lost.
"""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from scan_pipeline.core.errors import ContractError, TamperedError, WriterConflictError
from scan_pipeline.core.value import record
from scan_pipeline.store.data_files import data_files, read_file
from scan_pipeline.store.lake import check_generation, check_name
from scan_pipeline.store.tables import Table

_ATTEMPTS: Final = 10

_CLOSE: Final = "close"


@record
class EventColumns:
    """Names of the columns the fence looks at."""

    shard: str = "shard"
    seq: str = "seq"
    event: str = "event"
    cursor_out: str = "cursor_out_digest"
    chain: str = "chain"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of a row."""
        return (self.shard, self.seq, self.event, self.cursor_out, self.chain)


@record
class Committed:
    """The last event of a walk that is in the table.

    Attributes:
        seq: its number in its shard; the first event is 0.
        event: its kind.
        cursor_out_digest: what it says comes next, 32 bytes.
        chain: the chain up to and with it, 32 bytes.
    """

    seq: int
    event: str
    cursor_out_digest: bytes
    chain: bytes


class Admission:
    """Lets one writer of one shard of one generation commit its events.

    Args:
        table: the table of events.
        scan: name of the scan.
        generation: generation that is written.
        shard: shard of the walk.
        columns: names of the table's columns.
    """

    def __init__(
        self,
        table: Table,
        *,
        scan: str,
        generation: str,
        shard: int,
        columns: EventColumns = EventColumns(),  # noqa: B008  # a frozen value
    ) -> None:
        self._table, self._columns = table, columns
        self._generation, self._shard = check_generation(generation), shard
        self._app_id = f"{check_name(scan)}/{generation}/{shard}"

    def last(self) -> Committed | None:
        """Return the last committed event, None if the walk has none.

        Raises:
            TamperedError: rows and transaction disagree, or a file is not what the log says.
        """
        handle = self._table.open_if_there()
        return None if handle is None else self._last(handle)

    def commit(
        self,
        rows: pa.RecordBatch | pa.Table,
        *,
        expected: Committed | None,
        sealed: Callable[[], bool],
    ) -> Committed:
        """Commit a group of events, all of it or nothing, and return its last one.

        Args:
            rows: the events in order, with the table's schema; the first follows `expected`.
            expected: what this writer believes was committed last.
            sealed: says whether the generation has a receipt; asked after the look at the table.

        Raises:
            ContractError: the rows are no such group.
            WriterConflictError: the table does not end where this writer believes, or is closed
                or sealed. Nothing of the group is left; its pages and tokens are to be dropped.
            TamperedError: rows and transaction disagree, or a file is not what the log says.
            RetryError: the lake did not take the commit.
        """
        group = self._checked(rows, first=0 if expected is None else expected.seq + 1)
        for attempt in range(1, _ATTEMPTS + 1):
            handle = self._table.open_or_create()
            self._admit(self._last(handle), expected=expected, sealed=sealed)
            try:
                self._table.append(
                    rows,
                    generation=self._generation,
                    app_id=self._app_id,
                    version=group.seq,
                    at=handle,
                )
            except WriterConflictError:
                # Delta also refuses a commit when another generation's files were removed since:
                # the next look says whether anything happened that concerns this walk.
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        return group

    def _admit(
        self, found: Committed | None, *, expected: Committed | None, sealed: Callable[[], bool]
    ) -> None:
        if found != expected:
            raise self._conflict(f"found {_told(found)}; expected {_told(expected)}")
        if found is not None and found.event == _CLOSE:
            raise self._conflict(f"found {_told(found)}; expected a walk that is still open")
        if sealed():
            raise self._conflict("found a receipt; expected none: the generation is sealed")

    def _conflict(self, told: str) -> WriterConflictError:
        return WriterConflictError(
            f"{self._app_id}: {told}. Another writer holds this generation: stop, and drop what "
            "was not committed"
        )

    def _last(self, handle: DeltaTable) -> Committed | None:
        version = handle.transaction_version(self._app_id)
        rows = self._rows_from(version, handle)
        last = max(rows, key=lambda row: row.seq, default=None)
        if (last and last.seq) != version or len(rows) > 1:
            raise TamperedError(
                self._table.name,
                f"{self._app_id}: the transaction ends at {version}, the rows from there on are "
                f"{sorted(row.seq for row in rows)}; expected that one row: the table was changed "
                "by something else than this fence",
            )
        return last

    def _rows_from(self, version: int | None, handle: DeltaTable) -> list[Committed]:
        """Read the shard's rows of every file that may hold one at or after a version."""
        actions = self._table.add_actions(self._generation, at=handle)
        actions = _not_below(actions, f"max.{self._columns.seq}", version or 0)
        actions = _not_below(actions, f"max.{self._columns.shard}", self._shard)
        folder, schema = self._table.folder, self._table.schema
        wanted = pa.schema([schema.field(name) for name in self._columns.names])
        rows: list[Committed] = []
        for file in data_files(actions, name=self._table.name):
            for batch in read_file(file, folder=folder, schema=wanted, batch_size=65_536):
                mine = pc.call_function("equal", [batch.column(0), self._shard])
                late = pc.call_function("greater_equal", [batch.column(1), version or 0])
                for row in batch.filter(pc.call_function("and", [mine, late])).to_pylist():
                    _, seq, event, cursor_out, chain = row.values()
                    rows.append(
                        Committed(seq=seq, event=event, cursor_out_digest=cursor_out, chain=chain)
                    )
        return rows

    def _checked(self, rows: pa.RecordBatch | pa.Table, *, first: int) -> Committed:
        shards, seqs, events, cursors, chains = (
            rows.column(name).to_pylist() for name in self._columns.names
        )
        expected = list(range(first, first + len(seqs)))
        if not seqs or seqs != expected or set(shards) != {self._shard}:
            raise ContractError(
                f"{self._app_id}: found {len(seqs)} events {seqs[:1]} to {seqs[-1:]} of the shards "
                f"{sorted(set(shards))}; expected some of shard {self._shard}, numbered from "
                f"{first} on"
            )
        if _CLOSE in events[:-1]:
            raise ContractError(f"{self._app_id}: found events after the close event")
        return Committed(
            seq=seqs[-1], event=events[-1], cursor_out_digest=cursors[-1], chain=chains[-1]
        )


def _not_below(actions: pa.Table, statistic: str, least: int) -> pa.Table:
    """Keep the files that may reach a number; one without the statistic may."""
    if statistic not in actions.column_names:
        return actions
    reaches = pc.call_function("greater_equal", [actions.column(statistic), least])
    return actions.filter(reaches.fill_null(True))


def _told(committed: Committed | None) -> str:
    if committed is None:
        return "no event"
    # The chain tells two walks apart; the cursor's digest is never shown.
    return f"{committed.event} event {committed.seq} with chain {committed.chain.hex()[:16]}"
