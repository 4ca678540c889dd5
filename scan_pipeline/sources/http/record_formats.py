"""Bodies that are records and nothing else: JSON lines, and comma-separated values.

There is no envelope around them, so that continuation, count and pin can only lie in headers. A
record of JSON lines is its line as sent. CSV (RFC 4180, read 2026-11-30) has no bytes for a record
and no types: each row becomes canonical JSON, an object from the header's names to texts, and an
empty field the empty text.
"""

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ProtocolError

RecordFormat = Literal["json", "json_lines", "csv"]

_LINE: Final = msgspec.json.Decoder(msgspec.Raw)


def records_of(body: bytes, kind: RecordFormat) -> list[bytes]:
    """Return the records of a body that is nothing but records.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`, it is not of that format.
    """
    return _FORMATS[kind](body)


def _json_lines(body: bytes) -> list[bytes]:
    found: list[bytes] = []
    for number, line in enumerate(body.split(b"\n"), 1):
        text = line.strip()
        if not text:
            continue
        try:
            text.decode()
            _LINE.decode(text)
        except (UnicodeDecodeError, msgspec.DecodeError) as error:
            raise _unparsable(f"line {number} is no JSON value: {type(error).__name__}") from None
        found.append(text)
    return found


def _csv(body: bytes) -> list[bytes]:
    try:
        reader = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        rows = [row for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unparsable(f"it is no CSV: {error}") from None
    if not rows:
        raise _unparsable("it has no header; expected the names of the columns")
    names, *values = rows
    if len(set(names)) != len(names):
        raise ProtocolError("member_doubled", "a column stands twice in the header of the CSV")
    for number, row in enumerate(values, 2):
        if len(row) != len(names):
            raise _unparsable(
                f"row {number} has {len(row)} fields; expected {len(names)}, as the header has"
            )
    return [canonical_json(dict(zip(names, row, strict=True))) for row in values]


def _unparsable(told: str) -> ProtocolError:
    return ProtocolError("body_unparsable", f"the answer is not what was declared: {told}")


_FORMATS: Final[Mapping[str, Callable[[bytes], list[bytes]]]] = {
    "json_lines": _json_lines,
    "csv": _csv,
}
