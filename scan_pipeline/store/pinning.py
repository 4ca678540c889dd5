"""The contents of a sealed generation, pinned file by file.

A pin names no version that must stay: log clean-up takes old versions away, and the files of a
sealed generation stand whatever else the table does. `files_digest` is SHA-256 of the canonical
JSON of the sorted [path, size, sha256]; `layout_digest` is the same without the contents.

A look at paths and sizes costs a reader no hashing, but `files_digest` cannot be checked so: for
it the pin carries the files themselves. After compaction a generation has a handful; above
`LISTED_FILES` the list would outgrow the receipt and is left out, and `layout_digest` serves. A
pin that has neither is checked by contents, whatever was asked.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.value import record
from scan_pipeline.store.data_files import DataFile, Folder, footer_of
from scan_pipeline.store.file_writer import NewFile
from scan_pipeline.store.table_reader import TableReader

LISTED_FILES: Final = 1_000
"""Files that a pin lists, at most."""

_CHUNK_BYTES: Final = 2**20


@record
class PinnedFile:
    """One file of a sealed generation; path relative to its table, size in bytes, hex digest."""

    path: str
    size: int
    sha256: str


@record
class PinnedTable:
    """One table's rows of one generation, by content.

    Attributes:
        location: path below the lake's root, e.g. `staging/customers/records`.
        version: Delta version at sealing; a hint, which may be gone.
        rows: rows of the generation.
        files_digest: of paths, sizes and contents, hex.
        layout_digest: of paths and sizes, hex; None in a pin that lists its files.
        files: the files, sorted by path; empty above `LISTED_FILES`.
    """

    location: str
    version: int
    rows: int
    files_digest: str
    layout_digest: str | None = None
    files: tuple[PinnedFile, ...] = ()


def pin(table: TableReader, generation: str) -> PinnedTable:
    """Hash a generation's files, once, at sealing.

    Raises:
        EvidenceError: there is no such table.
        TamperedError: a file is not what the table's log says.
    """
    handle, folder = table.open(), table.folder
    stated = table.files(generation, at=handle)
    files = tuple(_pinned(file, folder=folder) for file in stated)
    return PinnedTable(
        location=table.location,
        version=handle.version(),
        rows=sum(footer_of(file, folder=folder).num_rows for file in stated),
        files_digest=_files_digest(files),
        layout_digest=_layout_digest(files),
        files=files if len(files) <= LISTED_FILES else (),
    )


def pin_written(
    files: Sequence[NewFile], *, folder: Folder, location: str, version: int
) -> PinnedTable:
    """Hash files that were written and are part of no table yet, all of them listed.

    Args:
        files: as they were written.
        folder: where they lie.
        location: of the table below the lake.
        version: that they will become part of; a hint.
    """
    pinned = tuple(
        _pinned(DataFile(path=each.path, size=each.size, partition=""), folder=folder)
        for each in files
    )
    return PinnedTable(
        location=location,
        version=version,
        rows=sum(each.rows for each in files),
        files_digest=_files_digest(pinned),
        files=pinned,
    )


def verify_pin(
    table: TableReader,
    generation: str,
    pinned: PinnedTable,
    *,
    contents: bool,
    at: DeltaTable | None = None,
) -> None:
    """Check that a generation is what was sealed.

    Paths and sizes, in the log and on disk, and the log's row counts are always checked.

    Args:
        table: the table that holds the generation.
        generation: whose files.
        pinned: what was sealed.
        contents: whether every file is hashed again.
        at: a handle whose moment counts; a fresh one for None.

    Raises:
        TamperedError: something differs; the message names the first file that does.
    """
    folder = table.folder
    stated = table.files(generation, at=at)
    _check_listed(stated, pinned, name=table.name)
    for file in stated:
        if (found := folder.size(file.path)) != file.size:
            raise _differs(table.name, file.path, found=_bytes(found), expected=_bytes(file.size))
    counted = [file.rows for file in stated if file.rows is not None]
    if len(counted) == len(stated) and sum(counted) != pinned.rows:
        raise TamperedError(
            table.name,
            f"{table.name} {generation}: the log counts {sum(counted)} rows; expected "
            f"{pinned.rows}, as sealed",
        )
    if contents or not (pinned.files or pinned.layout_digest):
        _check_contents(stated, pinned, folder=folder)


def _check_listed(stated: Sequence[DataFile], pinned: PinnedTable, *, name: str) -> None:
    if not pinned.files:
        if pinned.layout_digest and _layout_digest(stated) != pinned.layout_digest:
            raise TamperedError(
                name,
                f"{name}: the paths and sizes of {len(stated)} files give another digest than "
                f"{pinned.layout_digest}, which was sealed; the pin lists no files to compare",
            )
        return
    if _files_digest(pinned.files) != pinned.files_digest:
        raise TamperedError(
            name, f"{name}: the pin's own files do not give its digest {pinned.files_digest}"
        )
    expected = {file.path: file.size for file in pinned.files}
    found = {file.path: file.size for file in stated}
    for path in sorted(expected.keys() | found.keys()):
        if expected.get(path) != found.get(path):
            raise _differs(
                name, path, found=_bytes(found.get(path)), expected=_bytes(expected.get(path))
            )


def _check_contents(stated: Sequence[DataFile], pinned: PinnedTable, *, folder: Folder) -> None:
    files = [_pinned(file, folder=folder) for file in stated]
    expected = {file.path: file.sha256 for file in pinned.files}
    for file in files:
        if expected and expected[file.path] != file.sha256:
            raise _differs(
                folder.name,
                file.path,
                found=f"contents {file.sha256}",
                expected=f"contents {expected[file.path]}",
            )
    if _files_digest(files) != pinned.files_digest:
        raise TamperedError(
            folder.name,
            f"{folder.name}: the contents of {len(files)} files give another digest than "
            f"{pinned.files_digest}, which was sealed",
        )


def _pinned(file: DataFile, *, folder: Folder) -> PinnedFile:
    digest, chunk = sha256(), bytearray(_CHUNK_BYTES)
    with folder.open(file) as source, memoryview(chunk) as view:
        try:
            while read := source.readinto(view):
                digest.update(view[:read])
        except (OSError, pa.ArrowException) as error:
            raise _differs(
                folder.name, file.path, found=f"unreadable ({error})", expected=_bytes(file.size)
            ) from error
    return PinnedFile(path=file.path, size=file.size, sha256=digest.hexdigest())


def _files_digest(files: Sequence[PinnedFile]) -> str:
    listed = [[file.path, file.size, file.sha256] for file in sorted(files, key=_path)]
    return sha256(canonical_json(listed)).hexdigest()


def _layout_digest(files: Sequence[PinnedFile] | Sequence[DataFile]) -> str:
    listed = [[file.path, file.size] for file in sorted(files, key=_path)]
    return sha256(canonical_json(listed)).hexdigest()


def _path(file: PinnedFile | DataFile) -> str:
    return file.path


def _bytes(size: int | None) -> str:
    return "no such file" if size is None else f"{size} bytes"


def _differs(name: str, path: str, *, found: str, expected: str) -> TamperedError:
    return TamperedError(
        name, f"{name}: file {path}: found {found}; expected {expected}, as sealed"
    )
