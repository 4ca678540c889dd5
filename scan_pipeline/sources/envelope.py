"""Reading a page's JSON: the records as bytes, and what stands around them.

Parsers keep one of two equal members and say nothing (`{"items": [..], "items": []}` loses a page
in msgspec and orjson), so the envelope is parsed a second time with its record list emptied, with
doubled members refused and numbers exact.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec
import pyarrow as pa

from scan_pipeline.core.canonical import CanonicalFormError, parse_exact
from scan_pipeline.core.contract import FieldPath
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.value import record

_LIST: Final = list[msgspec.Raw] | msgspec.UnsetType


class _Absent:
    """The one value that says a path leads nowhere; None is what JSON null gives."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()


@record
class Envelope:
    """A page taken apart.

    Attributes:
        records: each record's bytes as sent, in page order.
        around: the parsed body, its record list empty.
    """

    records: Sequence[bytes]
    around: Any


def open_envelope(body: bytes, *, records_at: FieldPath) -> Envelope:
    """Take a body apart.

    Args:
        body: UTF-8 JSON.
        records_at: path of the record list; empty where the body is the list.

    Raises:
        ProtocolError: `body_unparsable`, `member_doubled` or `records_missing`.
    """
    raw = _raw_records(body, records_at)
    around = _exact(_emptied(body, raw)) if records_at else None
    return Envelope(records=[bytes(each) for each in raw], around=around)


def split_records(body: bytes, *, records_at: FieldPath) -> list[bytes]:
    """Return the records of a body that was admitted before, without a look at its envelope.

    Raises:
        ProtocolError: as `open_envelope`.
    """
    return [bytes(each) for each in _raw_records(body, records_at)]


def value_at(around: Any, path: FieldPath) -> Any:
    """Return the value at a path, `ABSENT` where it leads nowhere."""
    for step in path:
        if not isinstance(around, dict) or step not in around:
            return ABSENT
        around = around[step]
    return around


def parse_body(body: bytes) -> Any:
    """Parse a body that is not a page, e.g. an identity.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`.
    """
    return _exact(body)


def _raw_records(body: bytes, path: FieldPath) -> list[msgspec.Raw]:
    try:
        body.decode()  # msgspec passes invalid UTF-8 through in raw values
        found: Any = _decoder(path).decode(body)
        for _ in path:
            found = msgspec.UNSET if found is msgspec.UNSET else found.member
    except msgspec.ValidationError:
        _exact(body)
        found = msgspec.UNSET
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise _unparsable(body, path, error) from None
    if found is msgspec.UNSET:
        _exact(body)
        raise ProtocolError(
            "records_missing",
            f"the answer has no list at {_words(path)}; expected the records",
        )
    return found


@cache
def _decoder(path: FieldPath) -> "msgspec.json.Decoder[Any]":
    """Return a decoder that reads the record list at a path and skips all else."""
    kind: Any = list[msgspec.Raw] if not path else _LIST
    for depth, step in enumerate(reversed(path)):
        if depth:
            kind = kind | msgspec.UnsetType
        kind = msgspec.defstruct(
            f"At{depth}", [("member", kind, msgspec.UNSET)], rename={"member": step}
        )
    return msgspec.json.Decoder(kind)


def _emptied(body: bytes, records: list[msgspec.Raw]) -> bytes:
    """Return the body with its record list emptied: the first record's start to the last's end.

    The raw records are views of the body; their addresses say where they lie.
    """
    if not records:
        return body
    whole, first, last = (pa.py_buffer(each) for each in (body, records[0], records[-1]))
    start, end = first.address - whole.address, last.address - whole.address + last.size
    if not 0 <= start < end <= len(body):  # copies, not views: parse everything
        return body
    return body[:start] + body[end:]


def _exact(text: bytes) -> Any:
    try:
        return parse_exact(text)
    except CanonicalFormError as error:
        code = "member_doubled" if "twice" in str(error) else "body_unparsable"
        raise ProtocolError(code, f"the answer is not the JSON it should be: {error}") from None


def _unparsable(body: bytes, records_at: FieldPath, error: Exception) -> ProtocolError:
    start = body[:64].lstrip().lower()
    what = "an HTML page" if start.startswith((b"<!doctype", b"<html")) else type(error).__name__
    return ProtocolError(
        "body_unparsable",
        f"{len(body)} bytes are not JSON with records at {_words(records_at)}: {what}",
    )


def _words(path: FieldPath) -> str:
    return ".".join(path) if path else "$"
