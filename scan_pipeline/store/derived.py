"""Rows that follow from the evidence: deriving them again changes nothing.

Two processes may finish one generation, one after the other's break or both at once. Were the
second to replace equal rows, files that the first has pinned in a receipt would be gone. So equal
rows stay in the files they lie in, and other rows are refused once there is a receipt. Both are
decided after the look at the table that the write rests on (`Table` opens its handle before it
asks for the first row, and refuses the commit if the generation's files changed since).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pyarrow as pa

from scan_pipeline.core.errors import WriterConflictError
from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.row_batches import Rows, batches_of
from scan_pipeline.store.row_comparison import RowComparison
from scan_pipeline.store.tables import Table


class _UnchangedError(Exception):
    """The rows are there already; leaves the write before its commit."""


class DerivedTable(Table):
    """A table of derived rows, written while the generation has no receipt.

    Args:
        uri: as `Table`.
        schema: as `Table`.
        location: as `Table`.
        layout: as `Table`.
        sealed: says whether the generation that is written has a receipt.
    """

    def __init__(
        self,
        uri: str,
        schema: pa.Schema | None,
        *,
        location: str,
        layout: Layout,
        sealed: Callable[[], bool],
    ) -> None:
        super().__init__(uri, schema, location=location, layout=layout)
        self._sealed = sealed

    def replace_generation(
        self,
        rows: Rows,
        *,
        generation: str,
        evolve: bool = False,
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Put rows in the place of a generation's unless they are there already.

        Raises as `Table.replace_generation`, and WriterConflictError where other rows would take
        the place of sealed ones.
        """
        return self.replace_unless(
            rows, generation=generation, evolve=evolve, metadata=metadata, there=lambda: False
        )

    def replace_unless(
        self,
        rows: Rows,
        *,
        generation: str,
        there: Callable[[], bool],
        evolve: bool = False,
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Put rows in the place of a generation's unless `there`, or equal ones, are there.

        Returns:
            The number of rows looked at.
        """
        counted = 0

        def checked() -> Iterator[pa.RecordBatch]:
            nonlocal counted
            if there():
                raise _UnchangedError
            comparison = RowComparison(self.batches(generation))
            for batch in batches_of(rows):
                counted += batch.num_rows
                comparison.take(batch)
                yield batch
            if comparison.equal():
                raise _UnchangedError
            if self._sealed():
                raise WriterConflictError(
                    f"{self.location} {generation}: found a receipt, and other rows than those to "
                    "be written; expected none: the generation is sealed, and nothing replaces it"
                )

        reader = pa.RecordBatchReader.from_batches(rows.schema, checked())
        with suppress(_UnchangedError):
            super().replace_generation(
                reader, generation=generation, evolve=evolve, metadata=metadata
            )
        return counted
