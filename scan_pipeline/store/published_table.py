"""The table of a scan's last accepted generation, whose folder holds nothing but that.

Many readers know no Delta log: a folder connector (Power BI's "Folder", a glob in a notebook) takes
every `*.parquet` below a folder for data. What such a reader must not find is the last generation's
files beside this one's, or what a broken write left, or a checkpoint of the log, which is Parquet
too. See ADR 4.
"""

import re
from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa
from pyarrow.fs import FileSelector, FileType

from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.tables import CONFIGURATION, Table

_WRITTEN: Final = re.compile(r"scan_generation=[^/]+/part-(\d{20})-[^/]+\.parquet", re.ASCII)
"""A file of `Table`: its number is of the version that its write would have made."""

_NEVER: Final = "1000000"
"""Commits between checkpoints: there is one commit an accepted night."""


class PublishedTable(Table):
    """A table that is written by `replace_all` alone."""

    configuration: ClassVar[Mapping[str, str]] = {
        **CONFIGURATION,
        "delta.checkpointInterval": _NEVER,
    }

    def sweep(self) -> int:
        """Remove the files that the newest version does not name; return how many.

        A write that is under way is left alone: its files bear a number above the newest version,
        and one that began at an older version can no longer be committed (`replace_all`).
        """
        handle, folder = self.open(), self.folder
        newest = handle.version()
        named = {file.path for each in self.generations() for file in self.files(each, at=handle)}
        found = folder.filesystem.get_file_info(FileSelector(folder.path, recursive=True))
        inside = (
            each.path.removeprefix(f"{folder.path}/")
            for each in found
            if each.type == FileType.File
        )
        left = [
            path
            for path in inside
            if (match := _WRITTEN.fullmatch(path)) and int(match[1]) <= newest and path not in named
        ]
        folder.discard(left)
        return len(left)


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
