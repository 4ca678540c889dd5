"""A JSON value in a typed column: exactly itself, or refused."""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact

EXACT_FLOAT: Final = 2.0**53
"""Magnitude from which a double no longer holds every integer (IEEE 754 binary64)."""

_DIGITS: Final = bytes(48 if chr(byte) in "0123456789." else 32 for byte in range(256))
_MANY: Final = b"0" * 16
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_BEFORE_NUMBER: Final = (b":", b",", b"[")
_SPACE: Final = b" \t\r\n"
_NUMBER_BYTES: Final = frozenset(bytes([byte]) for byte in b"0123456789.")
_DECIMAL: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_EXPONENT: Final = re.compile(rb"[:,\[]\s*(-?[\d.]+[eE]-\d+)")


class NotExactError(Exception):
    """A value does not fit its column without changing."""


def exact_value(value: Any, kind: pa.DataType) -> Any:
    """Return a parsed value as a column of this type holds it.

    Args:
        value: not null; numbers are int or Decimal.
        kind: the column's type.

    Raises:
        NotExactError: storing it would change it; says what was found.
    """
    if pa.types.is_list(kind) and isinstance(value, list):
        return [None if each is None else exact_value(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        unknown = set(value) - {kind.field(i).name for i in range(kind.num_fields)}
        if unknown:
            raise NotExactError(f"unknown members {sorted(unknown)}")
        return {
            name: None if each is None else exact_value(each, kind.field(name).type)
            for name, each in value.items()
        }
    plain = _plain_value(value, kind)
    if pa.types.is_string(kind):  # most values of most records
        return plain
    try:
        stored = pa.scalar(plain, type=kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError) as error:
        raise NotExactError(f"a value that {kind} does not hold: {type(error).__name__}") from None
    if pa.types.is_floating(kind) and not is_exact_double(value, stored):
        raise NotExactError("a number that a double would round")
    if pa.types.is_decimal(kind) and stored != plain:
        raise NotExactError(f"a number with more digits than {kind}")
    return stored


def told_value(text: str, kind: pa.DataType) -> Any:
    """Return a value that travels as text, such as a bound, as a column of this type holds it.

    Raises:
        NotExactError: it is none of that type.
    """
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return exact_value(text, kind)
    try:
        return exact_value(parse_exact(text.encode()), kind)
    except CanonicalFormError as error:
        raise NotExactError("a text that is no number") from error


def exact_text(value: Any) -> str:
    """Return a parsed value as JSON text."""
    return canonical_json(value).decode()


def is_exact_double(value: int | Decimal, stored: float) -> bool:
    """Say whether a double is the number, or the number is how that double is written shortest.

    The second lets 0.1 pass, which no double is, and not 4503599627370497.53, of which a double
    keeps no part of the fraction.
    """
    if stored in (float("inf"), float("-inf")):
        return False
    return Decimal(repr(stored)) == value or Decimal(stored) == value


def doubles_are_exact(texts: bytes, table: pa.Table) -> bool:
    """Say whether the doubles of a table, parsed from these texts, are sure to be exact.

    Up to 15 significant digits a double gives every decimal back (IEEE 754 binary64, DBL_DIG of
    C11, 5.2.4.2.2), so that only longer numbers and the smallest exponents have to be looked at:
    in the texts, since the table no longer shows what was lost. False may also mean that a number
    of another column looks like it.
    """
    values = [each for column in table.columns for each in _doubles(column)]
    if not values:
        return True
    tiny = False
    for each in values:
        size = pc.call_function("abs", [each])
        largest = pc.call_function("max", [size]).as_py()
        if largest is not None and not largest < EXACT_FLOAT:
            return False
        smallest = pc.call_function("min", [size]).as_py()
        tiny = tiny or (smallest is not None and smallest < 1e-290)
    suspects = [n for n in _long_numbers(texts) if not n.removeprefix(b"-").isdigit()]
    if tiny and (b"e-" in texts or b"E-" in texts):
        suspects += _EXPONENT.findall(texts)
    return all(
        repr(float(each)) == each.decode() or is_exact_double(Decimal(each.decode()), float(each))
        for each in suspects
    )


def exponents_are_shallow(texts: bytes) -> bool:
    """Say whether no number has a negative exponent of two digits or more.

    Arrow 26 looks beyond its tables for a decimal's scale of 77 and more: 1e-77 becomes 0, and
    1e-999999999 ends the process. False may also mean a text that looks like such a number.
    """
    for mark in (b"e-", b"E-"):
        at = texts.find(mark)
        while at > 0:
            if texts[at - 1 : at] in _NUMBER_BYTES and texts[at + 2 : at + 4].isdigit():
                return False
            at = texts.find(mark, at + 2)
    return True


def _long_numbers(texts: bytes) -> Iterator[bytes]:
    """Yield the numbers of 16 digits and more; what stands in a string may look like one.

    A run of digits is found in a copy in which all digits are equal: ten times as fast as a
    pattern that begins at every digit.
    """
    digits = texts.translate(_DIGITS)
    start = digits.find(_MANY)
    while start >= 0:
        before = texts[max(0, start - 64) : start].removesuffix(b"-").rstrip(_SPACE)
        if before.endswith(_BEFORE_NUMBER):
            signed = start - 1 if texts[start - 1 : start] == b"-" else start
            if number := _NUMBER.match(texts, signed):
                yield number[0]
        start = digits.find(_MANY, digits.find(b" ", start))


def _doubles(column: pa.ChunkedArray) -> list[pa.Array]:
    """Return every array of doubles in a column, however deep."""
    found: list[pa.Array] = []
    todo = list(column.chunks)
    while todo:
        array = todo.pop()
        if pa.types.is_floating(array.type):
            found.append(array)
        elif pa.types.is_list(array.type):
            todo.append(array.values)
        elif pa.types.is_struct(array.type):
            todo += [array.field(i) for i in range(array.type.num_fields)]
    return found


def _plain_value(value: Any, kind: pa.DataType) -> Any:
    """Return the Python value that Arrow takes without coercing, or raise NotExactError."""
    found = {bool: "a boolean", str: "a text", dict: "an object", list: "a list"}.get(
        type(value), "a number"
    )
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_string(kind) and isinstance(value, str):
        return value
    if pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool):
        return value
    numeric = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if pa.types.is_floating(kind) and numeric:
        return _double(value)
    if pa.types.is_decimal(kind) and numeric:
        return _in_plain_digits(Decimal(value), kind)
    if pa.types.is_decimal(kind) and isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            raise NotExactError(f"a text that is no {kind}")
        return _in_plain_digits(_decimal(value, kind), kind)
    if (pa.types.is_timestamp(kind) or pa.types.is_date(kind)) and isinstance(value, str):
        return _moment(value, kind)
    raise NotExactError(found)


def _in_plain_digits(value: Decimal, kind: pa.DataType) -> Decimal:
    """Return a number without an exponent above zero, which Arrow refuses whatever its value."""
    if not value:
        return Decimal(0)
    if abs(value.adjusted()) > kind.precision:
        raise NotExactError(f"a number with more digits than {kind}")
    return Decimal(format(value, "f"))


def _double(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NotExactError("a number beyond every double") from None


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise NotExactError(f"a number with more digits than {kind}") from None


def _moment(text: str, kind: pa.DataType) -> Any:
    """Read a moment or day from a text, as a cast does."""
    try:
        return pc.cast(pa.scalar(text), kind).as_py()
    except pa.ArrowInvalid:
        raise NotExactError(f"a text that is no {kind}") from None
