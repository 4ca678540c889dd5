"""What lies in a table's folder and belongs to no version any more: files, and old log entries."""

import json
import re
from collections.abc import Collection
from typing import Final

from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileType

from scan_pipeline.core.errors import RetryError
from scan_pipeline.store.data_files import Folder
from scan_pipeline.store.table_reader import TableReader

LOG: Final = "_delta_log"

_WRITTEN: Final = re.compile(
    r"scan_generation=(?P<generation>[^/]+)/part-(?P<version>\d{20})-[^/]+\.parquet", re.ASCII
)
"""A file of `Table`: its number is of the version that its write would have made."""

_ENTRY: Final = re.compile(r"(?P<version>\d{20})\.(?:json|checkpoint.*\.parquet)", re.ASCII)


def sweep(table: TableReader, *, only: Collection[str] | None = None) -> int:
    """Remove the data files that a table's newest version does not name; return how many.

    A write that is under way is left alone where it replaces a generation: its files bear a number
    above the newest version, and one that began at an older version can no longer be committed.
    Rows that are added may still be: so generations that are being walked are not swept.

    Args:
        table: written by `Table` alone.
        only: generations whose files are looked at; None for all.

    Raises:
        RetryError: a file is still there.
    """
    if (handle := table.open_if_there()) is None:
        return 0
    folder, newest = table.folder, handle.version()
    found = folder.filesystem.get_file_info(FileSelector(folder.path, recursive=True))
    inside = [
        match
        for each in found
        if each.type == FileType.File
        and (match := _WRITTEN.fullmatch(each.path.removeprefix(f"{folder.path}/")))
        and (only is None or match["generation"] in only)
        and int(match["version"]) <= newest
    ]
    named = {
        file.path
        for generation in {match["generation"] for match in inside}
        for file in table.files(generation, at=handle)
    }
    left = [match[0] for match in inside if match[0] not in named]
    folder.discard(left)
    if stays := [path for path in left if folder.size(path) is not None]:
        raise RetryError(
            f"{table.location}: {len(stays)} files that no version names could not be removed, "
            f"{stays[0]} first; expected to: look at the lake's rights, then run again"
        )
    return len(left)


def clean_log(table: TableReader) -> None:
    """Write a checkpoint and let go of the log entries that are older than a table keeps them.

    Nobody reads an old version: receipts pin contents (`pinning`).
    """
    if (handle := table.open_if_there()) is not None:
        handle.create_checkpoint()
        table.open().cleanup_metadata()


def forget_log(table: TableReader) -> None:
    """Write a checkpoint and remove every log entry before it, however young.

    A writer that looked at the table before must look again: its commit is refused.
    """
    if (handle := table.open_if_there()) is None:
        return
    handle.create_checkpoint()
    folder, version = table.folder, handle.version()
    old = [
        f"{LOG}/{name}"
        for name in _log_names(folder)
        if (match := _ENTRY.fullmatch(name)) and int(match["version"]) < version
    ]
    folder.discard(old)
    if stays := [path for path in old if folder.size(path) is not None]:
        raise RetryError(f"{table.location}: {stays[0]} could not be removed; expected to")
    DeltaTable(table.uri)  # the log can still be read


def forget_statistics(table: TableReader) -> None:
    """Take the least and greatest values out of a log that must stay without a checkpoint.

    A published table's folder holds no other Parquet files than its rows (ADR 4), and so no
    checkpoint; its log entries stay, a commit a night.
    """
    if table.open_if_there() is None:
        return
    folder = table.folder
    for name in _log_names(folder):
        if not name.endswith(".json"):
            continue
        path = f"{folder.path}/{LOG}/{name}"
        with folder.filesystem.open_input_stream(path) as source:
            text = source.read().decode()
        lines = [_without_values(line) for line in text.splitlines()]
        if (plain := "\n".join(lines)) != text.rstrip("\n"):
            with folder.filesystem.open_output_stream(f"{path}.next") as sink:
                sink.write(plain.encode() + b"\n")
            folder.filesystem.move(f"{path}.next", path)


def _without_values(line: str) -> str:
    action = json.loads(line)
    for kind in ("add", "remove"):
        if (stats := action.get(kind, {}).get("stats")) is not None:
            told = {"numRecords": json.loads(stats).get("numRecords")}
            if json.loads(stats) != told:
                action[kind]["stats"] = json.dumps(told)
                return json.dumps(action)
    return line


def _log_names(folder: Folder) -> list[str]:
    log = FileSelector(f"{folder.path}/{LOG}", allow_not_found=True)
    return sorted(each.base_name for each in folder.filesystem.get_file_info(log))
