"""Whether two streams of rows are equal, however they are cut into batches."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from scan_pipeline.core.errors import TamperedError


class RowComparison:
    """Compares rows that come piece by piece with rows that lie in a table, in order.

    Args:
        stored: the rows of the table; where they do not read as rows of it, nothing equals them.
    """

    def __init__(self, stored: Iterable[pa.RecordBatch]) -> None:
        self._stored: Iterator[pa.RecordBatch] = iter(stored)
        self._rest: pa.RecordBatch | None = None
        self._equal = True

    def take(self, batch: pa.RecordBatch) -> None:
        """Take the next rows."""
        while self._equal and batch.num_rows:
            rest = self._next()
            if rest is None:
                self._equal = False
                return
            rows = min(rest.num_rows, batch.num_rows)
            self._equal = rest.slice(0, rows).equals(batch.slice(0, rows))
            self._rest, batch = rest.slice(rows), batch.slice(rows)

    def equal(self) -> bool:
        """Say whether nothing differs, now that all rows were taken."""
        return self._equal and self._next() is None

    def _next(self) -> pa.RecordBatch | None:
        while self._rest is None or not self._rest.num_rows:
            try:
                self._rest = next(self._stored, None)
            except TamperedError:
                self._equal, self._rest = False, None
            if self._rest is None:
                return None
        return self._rest
