"""Where the records of a batch came: their page, and their place on it."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

import pyarrow as pa


class Places:
    """Pages and positions of the rows of a batch.

    Args:
        pages: each page's ordinal (from 1) and number of records, in order.
    """

    def __init__(self, pages: Iterable[tuple[int, int]]) -> None:
        self._pages: Sequence[tuple[int, int]] = tuple(pages)
        self._starts = list(accumulate((size for _, size in self._pages), initial=0))

    def page(self, row: int) -> int:
        """Return the page of a row, from 1."""
        return self._pages[bisect_right(self._starts, row) - 1][0]

    def position(self, row: int) -> int:
        """Return a row's place on its page, from 0."""
        return row - self._starts[bisect_right(self._starts, row) - 1]

    def page_column(self) -> pa.Array:
        """Return the page of every row (int64)."""
        runs = [pa.repeat(pa.scalar(page, pa.int64()), size) for page, size in self._pages]
        return pa.concat_arrays(runs)

    def position_column(self) -> pa.Array:
        """Return the position of every row (int32)."""
        return pa.concat_arrays([_counting(size) for _, size in self._pages])


@lru_cache(maxsize=8)
def _counting(size: int) -> pa.Array:
    """Return 0, 1, 2 and so on; nearly all pages of a walk are of one size."""
    return pa.array(range(size), pa.int32())
