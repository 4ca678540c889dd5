"""The table of a scan's last accepted generation, whose folder holds nothing but that.

Many readers know no Delta log: a folder connector (Power BI's "Folder", a glob in a notebook) takes
every `*.parquet` below a folder for data. What such a reader must not find is the last generation's
files beside this one's, or what a broken write left, or a checkpoint of the log, which is Parquet
too. See ADR 4.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa

from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.sweeping import sweep
from scan_pipeline.store.tables import CONFIGURATION, Table

RECEIPT_ID: Final = "scan_pipeline.receipt_id"
GENERATION: Final = "scan_pipeline.generation"
RESTS_ON: Final = "scan_pipeline.rests_on"
REDACTED: Final = "scan_pipeline.redacted"
"""Members of a commit's metadata: the receipt that is published, its generation, and, of a scan of
rounds, the ids of all receipts that the rows rest on, the baseline's first, as JSON; and, where
records were erased, that they were."""

_NEVER: Final = "1000000"
"""Commits between checkpoints: there is one commit an accepted night."""


class PublishedTable(Table):
    """A table that is written by `replace_all` alone."""

    configuration: ClassVar[Mapping[str, str]] = {
        **CONFIGURATION,
        "delta.checkpointInterval": _NEVER,
    }

    def sweep(self) -> int:
        """Remove the files that the newest version does not name; return how many."""
        return sweep(self)


def open_published(
    lake: Lake,
    scan: str,
    schema: pa.Schema | None = None,
    *,
    layout: Layout = Layout(),  # noqa: B008  # a frozen value
) -> PublishedTable:
    """Return the table of a scan's last accepted generation."""
    uri = lake.published_uri(scan)
    return PublishedTable(uri, schema, location=f"published/{scan}", layout=layout)
