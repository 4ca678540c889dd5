"""In which order a question's rows come: sorted once, and kept where nobody else can read it.

To know which rows are on one page costs as much as to know it for all pages, so it is found out
once a question. What is kept is where the walk found each row, and no value of any of them, in a
file that has no name: it cannot be opened by anybody, and is gone with the process, however that
ends (open(2), O_TMPFILE, read 2026-11-30; where there is none, the name goes before the file is
written). Whoever asks is authorized before, and the rows at the places are read through the view
as it is then.
"""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Final, NamedTuple
from weakref import finalize

import polars as pl
import pyarrow as pa

from scan_pipeline.agents.failures import ReaderError

KEPT: Final = 16
"""Most orders that are kept at once; 12 bytes a row each. One that is dropped is found again."""

_BATCH: Final = 4096
"""Rows that are read at once of an order."""


class OrderName(NamedTuple):
    """What an order depends on: another receipt, view or question has another."""

    receipt_id: str
    view_digest: str
    query_digest: str


class Order:
    """The places of all rows of one question, on disk.

    Args:
        places: page and position of each row, in order.
        folder: on which file system; not in memory, as the system's own folder may be.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, places: pl.DataFrame, *, folder: Path) -> None:
        table = places.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        self.rows = places.height
        file = TemporaryFile(dir=folder)  # noqa: SIM115  # it lives as long as the order
        self._closing = finalize(self, file.close)
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH)
        self._reader = pa.ipc.open_file(file)

    def places(self, *, first: int, count: int) -> pl.DataFrame:
        """Return the places of so many rows, from a number on; the first row is 1."""
        begin, end = first - 1, min(first - 1 + count, self.rows)
        if begin >= end:
            return pl.DataFrame(pl.from_arrow(self._reader.schema.empty_table()))
        batches = range(begin // _BATCH, (end - 1) // _BATCH + 1)
        read = pa.Table.from_batches([self._reader.get_batch(n) for n in batches])
        return pl.DataFrame(pl.from_arrow(read.slice(begin % _BATCH, end - begin)))

    def close(self) -> None:
        """Give the file back."""
        self._closing()


class Orders:
    """The orders of the questions that were asked last.

    Args:
        folder: on which file system they lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._orders = folder, OrderedDict[OrderName, Order]()
        self._lock, self._finding = Lock(), Lock()

    def places(
        self,
        name: OrderName,
        *,
        first: int,
        count: int,
        rows: int,
        find: Callable[[], pl.DataFrame],
    ) -> pl.DataFrame:
        """Return the places of so many rows, from a number on.

        Args:
            name: of which question.
            first: number of the first row, from 1.
            count: most rows.
            rows: how many the question has.
            find: sorts the places of all rows; one at a time, since it is what takes memory.

        Raises:
            ReaderError: there are others than there were, or the disk does not take them.
        """
        kept = self._kept(name, first=first, count=count)
        if kept is not None:
            return kept
        with self._finding:
            kept = self._kept(name, first=first, count=count)
            if kept is not None:
                return kept
            places = find()
            if places.height != rows:
                raise ReaderError(
                    "restart",
                    "rows_changed",
                    f"{places.height:,} rows match where {rows:,} did; open the query again",
                )
            self._keep(name, places)
            return places.slice(first - 1, count)

    def _kept(self, name: OrderName, *, first: int, count: int) -> pl.DataFrame | None:
        with self._lock:
            order = self._orders.get(name)
            if order is None:
                return None
            self._orders.move_to_end(name)
            return order.places(first=first, count=count)

    def _keep(self, name: OrderName, places: pl.DataFrame) -> None:
        try:
            order = Order(places, folder=self._folder)
        except OSError as error:
            raise ReaderError(
                "retry",
                "order_not_kept",
                "the disk does not take the order of the rows; try again later",
                detail=type(error).__name__,
            ) from error
        with self._lock:
            self._orders[name] = order
            while len(self._orders) > KEPT:
                self._orders.popitem(last=False)[1].close()
