"""Reading a page's JSON: the records as bytes, and what stands around them.

Parsers keep one of two equal members and say nothing (`{"items": [..], "items": []}` loses a page
in msgspec and orjson), so the envelope is parsed a second time with its record list emptied, with
doubled members refused and numbers exact.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec
import pyarrow as pa

from scan_pipeline.core.canonical import CanonicalFormError, parse_exact
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record

_LIST: Final = list[msgspec.Raw] | msgspec.UnsetType
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


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
    records, around = _split(body, records_at)
    return Envelope(records=records, around=_exact(around) if records_at else None)


def split_records(body: bytes, *, records_at: FieldPath) -> list[bytes]:
    """Return the records of a body that was admitted before, without a look at its envelope.

    Raises:
        ProtocolError: as `open_envelope`.
    """
    return _split(body, records_at)[0]


def check_records_at(path: FieldPath) -> None:
    """Refuse a path of the record list that no page can be read by; msgspec's rule.

    Raises:
        ContractError: a step of it holds a quote, a backslash or a control character.
    """
    if any({*step} & {'"', "\\"} or min(step, default=" ") < " " for step in path):
        raise ContractError(
            "records_at holds a quote, a backslash or a control character; expected the plain "
            "names of the fields on the way to the records"
        )


def value_at(around: Any, path: FieldPath) -> Any:
    """Return the value at a path, `ABSENT` where it leads nowhere.

    A number is a step into a list, from 0: `errors.0.type`.
    """
    for step in path:
        if isinstance(around, list):
            if not step.isdecimal() or int(step) >= len(around):
                return ABSENT
            around = around[int(step)]
            continue
        if not isinstance(around, dict) or step not in around:
            return ABSENT
        around = around[step]
    return around


def cut_member(record: bytes, name: str) -> tuple[bytes, bytes | None]:
    """Return an object without one of its members, and that member's value, both as sent.

    Args:
        record: a JSON object.
        name: the member; where it is not there, the object comes back as it is, beside None.

    Raises:
        ProtocolError: `body_unparsable`, the record is no object, or the name is escaped in it.
    """
    try:
        try:
            raw = _member(name).decode(record).member
        except msgspec.DecodeError:
            record, sent = _SURROGATE.sub(rb"\\ufffd", record), record
            raw = _member(name).decode(record).member
        else:
            sent = record
    except msgspec.DecodeError as error:
        raise _unparsable(record, (), error) from None
    if raw is msgspec.UNSET:
        return sent, None
    start, end = _span(record, raw)
    named = sent.rfind(b'"%b"' % name.encode(), 0, start)
    if named < 0 or sent[named + len(name) + 2 : start].strip() != b":":
        raise ProtocolError("body_unparsable", f"the name of member {name} is not written as such")
    before, after = sent[:named].rstrip(), sent[end:].lstrip()
    if before.endswith(b","):
        before = before[:-1]
    elif after.startswith(b","):
        after = after[1:].lstrip()
    return before + after, sent[start:end]


@cache
def _member(name: str) -> "msgspec.json.Decoder[Any]":
    """Return a decoder that reads one member of an object, raw, and skips the others."""
    member = [("member", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET)]
    kind = msgspec.defstruct("Object", member, rename={"member": name})
    return msgspec.json.Decoder(kind)


def parse_body(body: bytes) -> Any:
    """Parse a body that is not a page, e.g. an identity.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`.
    """
    return _exact(body)


def _split(body: bytes, path: FieldPath) -> tuple[list[bytes], bytes]:
    """Return the records of a body, and the body with its record list emptied.

    msgspec refuses half a surrogate pair wherever it stands. In a record it is that record's
    fault: the records are then found in a copy of equal length in which no such escape is left.
    """
    try:
        raw = _raw_records(body, path)
    except ProtocolError:
        whole = _SURROGATE.sub(rb"\\ufffd", body)
        if whole == body:
            raise
        found = _raw_records(whole, path)
        spans = [_span(whole, each) for each in found]
        if any(whole[a:b] != bytes(each) for (a, b), each in zip(spans, found, strict=True)):
            raise
        records = [body[start:end] for start, end in spans]
        return records, body[: spans[0][0]] + body[spans[-1][1] :] if spans else body
    return [bytes(each) for each in raw], _emptied(body, raw)


def _span(body: bytes, raw: msgspec.Raw) -> tuple[int, int]:
    """Return where a raw value, which is a view of its body, begins and ends in it."""
    whole, part = pa.py_buffer(body), pa.py_buffer(raw)
    start = part.address - whole.address
    return start, start + part.size


def _raw_records(body: bytes, path: FieldPath) -> list[msgspec.Raw]:
    try:
        if not body.isascii():
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
    start, end = _span(body, records[0])[0], _span(body, records[-1])[1]
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
