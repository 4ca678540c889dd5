"""The key of a record: canonical, from its text or from typed columns."""

import json
from typing import Any, Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.canonical import CanonicalFormError, key_bytes, key_hashes
from scan_pipeline.core.merkle import HASH_SIZE

LONGEST: Final = 640
"""Digits of the longest integer that can be a key; as in `core.canonical`."""

PIECE: Final = 4096
"""Keys that are objects at once; what they take is then used again for the next ones."""


def key_of(text: bytes, fields: tuple[str, ...]) -> str | None:
    """Return a record's canonical key, None where a field is missing or no text or integer.

    What is wrong elsewhere in the record does not hide its key: a member that stands twice or half
    a surrogate pair makes it nonconforming, and it was collected all the same.
    """
    try:
        value: Any = json.loads(text, object_pairs_hook=_told_once, parse_int=_whole)
        return key_bytes([_step(value, field) for field in fields]).decode()
    except (CanonicalFormError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _told_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object without the members that stand in it more than once."""
    told = dict(members)
    if len(told) == len(members):
        return told
    names = [name for name, _ in members]
    return {name: value for name, value in members if names.count(name) == 1}


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST else float("nan")


def _step(value: Any, field: str) -> Any:
    if field in value:
        return value[field]
    for name in field.split("."):
        value = value[name]
    return value


def key_column(columns: pa.Table, fields: tuple[str, ...]) -> pa.Array | None:
    """Build canonical keys from typed columns at once; None where a value needs escaping."""
    parts: list[pl.Expr] = []
    names = [name for name in fields if name in columns.column_names]
    if len(names) != len(fields):
        return None
    frame = pl.DataFrame(columns.select(names))
    for name in names:
        if frame[name].dtype == pl.String:
            if frame[name].str.contains(r'["\\\x00-\x1f]').any():
                return None
            parts.append(pl.concat_str(pl.lit('"'), pl.col(name), pl.lit('"')))
        elif frame[name].dtype.is_integer():
            parts.append(pl.col(name).cast(pl.String))
        else:
            return None
    inner = pl.concat_str(parts, separator=",")
    keys = frame.select(pl.concat_str(pl.lit("["), inner, pl.lit("]"))).to_series()
    return keys.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def key_column_hashes(keys: pa.Array) -> pa.Array:
    """Return the key hash of each key, null where there is none."""
    texts = keys.cast(pa.binary())
    if keys.null_count == 0:
        pieces = (texts.slice(start, PIECE) for start in range(0, len(texts), PIECE))
        return digests_array(b"".join(b"".join(key_hashes(piece.to_pylist())) for piece in pieces))
    present = iter(key_hashes([text for text in texts.to_pylist() if text is not None]))
    return pa.array(
        [None if text.as_py() is None else next(present) for text in texts], pa.binary()
    )


def digests_array(joined: bytes) -> pa.Array:
    """Return digests of 32 bytes, joined, as an array; without an object for each."""
    width = pa.binary(HASH_SIZE)
    count = len(joined) // HASH_SIZE
    fixed = pa.FixedSizeBinaryArray.from_buffers(width, count, [None, pa.py_buffer(joined)])
    return fixed.cast(pa.binary())
