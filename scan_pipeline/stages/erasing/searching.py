"""Every file of a lake looked into for a key, in its bytes and in what they decode to."""

import base64
import json
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileType

from scan_pipeline.stages.erasing.naming import Named
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.lake import open_filesystem


def files_that_name(named: Named, *, scan: str, workspace: Workspace) -> Iterator[str]:
    """Yield the files below a lake that belong to a scan and name a key, as paths below it.

    Raw bytes are looked at, the texts of Parquet columns, and what a DSSE envelope signs. Sealed
    cells are not opened here.

    Args:
        named: the key.
        scan: a member of the path of what is looked at.
        workspace: whose lake.
    """
    filesystem, root = open_filesystem(workspace.lake.root)
    listed = filesystem.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    for info in sorted(listed, key=lambda each: each.path):
        inside = info.path.removeprefix(f"{root}/")
        if info.type != FileType.File or scan not in inside.split("/"):
            continue
        with filesystem.open_input_file(info.path) as source:
            data = source.read()
        if named.is_in_bytes(data) or any(map(named.is_in, _texts(inside, data))):
            yield inside


def _texts(path: str, data: bytes) -> Iterator[str]:
    if path.endswith(".parquet"):
        with suppress(pa.ArrowException, OSError):
            for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches():
                yield from _strings(batch)
    elif path.endswith(".json"):
        yield from _signed(data)


def _strings(batch: pa.RecordBatch) -> Iterator[str]:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            for text in column.to_pylist():
                if text is not None:
                    yield text
                    yield from _signed(text.encode()) if field.name == "envelope" else ()
        elif pa.types.is_nested(field.type):
            yield json.dumps(column.to_pylist(), ensure_ascii=False, default=str)


def _signed(data: bytes) -> Iterator[str]:
    with suppress(ValueError, KeyError, TypeError):
        yield base64.b64decode(json.loads(data)["payload"]).decode()
