"""The records that rounds come to, read from the sealed generations or from the table before."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.syncing.folding import Folding
from scan_pipeline.stages.unlock import checked_records
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.table_reader import TableReader

_COLUMNS = ("_key", "_raw")


@record
class Before:
    """A table of what earlier rounds came to, one row a key.

    Attributes:
        table: where the rows lie.
        generation: partition that holds them.
        at: the handle whose moment counts; a fresh one for None.
    """

    table: TableReader
    generation: str
    at: DeltaTable | None = None


class State:
    """What rounds come to, laid over what there was before them.

    Args:
        scan: the scan.
        rounds: receipts of the rounds, in order; the first is a baseline where nothing is before.
        before: what earlier rounds came to; None for nothing.
        workspace: where the rounds' records lie.

    Raises:
        TamperedError: the records of a round are not those that were sealed.
        GateClosedError: they were dropped, as an amendment says.
    """

    def __init__(
        self,
        scan: Scan,
        rounds: Sequence[StoredReceipt],
        *,
        before: Before | None,
        workspace: Workspace,
    ) -> None:
        facts = scan.source.checkpoint
        self._folding = Folding(partly=facts is not None and facts.updates == "changed_members")
        self._before, later = before, list(rounds)
        self._earlier: dict[str, bytes] = {}
        if before is None:
            table, generation = _records(later.pop(0), workspace)
            self._before = Before(table=table, generation=generation)
            self._take(table, generation, only=_unsettled(table, generation))
        for each in later:
            self._take(*_records(each, workspace))

    def records(self) -> Iterator[tuple[list[str], list[bytes]]]:
        """Yield keys and texts in pieces: what no round speaks of as it was, then the rest.

        May be called again, and yields the same.
        """
        for batch in self.untouched(_COLUMNS):
            keys, texts = _plain(batch, _COLUMNS)
            yield keys, [text.encode() for text in texts]
        yield self.changed()

    def untouched(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that no round speaks of, as they were.

        Args:
            columns: of the table before; `_key` and `_raw` are among them.
        """
        self._earlier.clear()
        if self._before is None:
            return
        told = pa.array([key for key, _ in self._folding.words()], pa.string())
        table, generation = self._before.table, self._before.generation
        for batch in table.batches(generation, columns=columns, at=self._before.at):
            keys = batch.column("_key")
            touched = pc.call_function("is_in", [keys], pc.SetLookupOptions(told))
            before = batch.filter(touched)
            for key, text in zip(*_plain(before, _COLUMNS), strict=True):
                self._earlier[key] = text.encode()
            known = pc.call_function("is_valid", [keys])
            left = pc.call_function("and_not", [known, touched])
            yield batch.filter(left)

    def changed(self) -> tuple[list[str], list[bytes]]:
        """Return keys and texts of what rounds speak of, once the untouched ones were yielded."""
        keys, texts = list[str](), list[bytes]()
        for key, word in self._folding.words():
            now = word.over(self._earlier.get(key))
            if now is not None:
                keys.append(key)
                texts.append(now)
        return keys, texts

    def _take(
        self, table: TableReader, generation: str, *, only: frozenset[str] | None = None
    ) -> None:
        columns = (*_COLUMNS, "_removed")
        for batch in table.batches(generation, columns=columns):
            for key, text, removed in zip(*_plain(batch, columns), strict=True):
                if key is not None and (only is None or key in only):
                    self._folding.take(key, text.encode() if removed is None else None)


def _records(stored: StoredReceipt, workspace: Workspace) -> tuple[TableReader, str]:
    """Return the table and partition of a round's records, held against its receipt."""
    held = stored.receipt.evidence["records"].generation
    return checked_records(stored, workspace).table, held


def _unsettled(table: TableReader, generation: str) -> frozenset[str]:
    """Return the keys of a baseline that came more than once, or were removed meanwhile."""
    rows = pl.DataFrame(table.read(generation, columns=("_key", "_removed")))
    again = pl.col("_key").is_duplicated() | pl.col("_removed").is_not_null()
    return frozenset(rows.filter(again)["_key"].to_list())


def _plain(batch: pa.RecordBatch, columns: Sequence[str]) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in columns]
