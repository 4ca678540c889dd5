"""A value as a column's type holds it, exactly."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, TypeAlias

import polars as pl

Scalar: TypeAlias = str | int | bool
"""Numbers with a fraction and moments are written as text, so that nothing rounds them."""

_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,38})")
_FINER: Final = re.compile(r"[.,][0-9]{6}0*[1-9]")
"""A fraction of a second beyond the microseconds that a column keeps."""

_MOST_DIGITS: Final = 38
_EXACT: Final = Context(prec=2 * _MOST_DIGITS, traps=[Inexact, InvalidOperation])


def fitted(value: Scalar, kind: Any) -> Any:
    """Return a value as a column's type holds it; None where it does not fit."""
    dtype = plain_type(kind)
    if isinstance(value, bool) or dtype == pl.Boolean:
        return value if isinstance(value, bool) and dtype == pl.Boolean else None
    if dtype == pl.String:
        return value if isinstance(value, str) else None
    if dtype.is_integer():
        return _integer(value, dtype)
    if isinstance(dtype, pl.Decimal):
        return _decimal(value, dtype)
    if dtype.is_float():
        return _float(value)
    if isinstance(dtype, pl.Datetime) and isinstance(value, str):
        return _moment(value, zoned=dtype.time_zone is not None)
    return _day(value) if dtype == pl.Date and isinstance(value, str) else None


def expected(kind: Any) -> str:
    """Return what fits a column's type, in words."""
    return _EXPECTED.get(plain_type(kind).base_type(), "no comparison")


def plain_type(kind: Any) -> pl.DataType:
    """Return a type as an instance; Polars takes a class for one."""
    return kind() if isinstance(kind, type) else kind


_EXPECTED: Final[Mapping[Any, str]] = {
    pl.String: "text",
    pl.Boolean: "true or false",
    pl.Decimal: 'a number as text, e.g. "12.50", of no more digits than the column has',
    pl.Float64: 'a number as text, e.g. "0.5"',
    pl.Datetime: 'a moment as text, e.g. "2026-11-30T02:00:00Z"',
    pl.Date: 'a day as text, e.g. "2026-11-30"',
    **dict.fromkeys(
        (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
        "a whole number, or its digits as text, within the column's range",
    ),
}


def _integer(value: Scalar, dtype: pl.DataType) -> int | None:
    """Return a whole number, which may be text: a reader of JSON may round one beyond 2^53."""
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else value
    return value if isinstance(value, int) and _holds(dtype, value) else None


def _holds(dtype: pl.DataType, value: int) -> bool:
    bits = int(str(dtype).lstrip("UInt"))
    unsigned = str(dtype).startswith("U")
    least, beyond = (0, 2**bits) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return least <= value < beyond


def _decimal(value: Scalar, dtype: pl.Decimal) -> Decimal | None:
    try:
        number = Decimal(str(value)).normalize(_EXACT)
    except (InvalidOperation, Inexact):
        return None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):  # NaN and infinities
        return None
    whole = (dtype.precision or _MOST_DIGITS) - dtype.scale
    return number if -exponent <= dtype.scale and len(digits) + exponent <= whole else None


def _float(value: Scalar) -> float | None:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _moment(value: str, *, zoned: bool) -> datetime | None:
    if _FINER.search(value):
        return None  # it would be cut, and be another moment
    try:
        moment = datetime.fromisoformat(value)
        if (moment.tzinfo is not None) != zoned:
            return None
        return moment.astimezone(UTC) if zoned else moment
    except (ValueError, OverflowError):
        return None


def _day(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None
