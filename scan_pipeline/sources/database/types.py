"""SQL values as JSON: the published type table, and the way back for keys.

| PostgreSQL | JSON |
|---|---|
| boolean | `true`, `false` |
| smallint, integer, bigint, oid | number, exact |
| numeric | number, exact by value (`1.50` is `1.5`); NaN and infinities as texts |
| real, double precision | shortest decimal of the same float; NaN and infinities as texts |
| text, varchar, char(n), name | text, as stored |
| bytea | text, base64 |
| timestamp with time zone | text, RFC 3339 in UTC: `2026-11-30T02:00:00.5Z` |
| timestamp, date, time, interval | text, ISO 8601 without a zone; interval as `P1DT2H` |
| json, jsonb | the JSON value itself, numbers exact; its text where it has no canonical form |
| arrays | lists of the same |
| anything else | text, as PostgreSQL writes it |

Moments that RFC 3339 cannot say (`infinity`, years before 1 or above 9999) keep PostgreSQL's text.

| SQLite storage class | JSON |
|---|---|
| NULL | `null` |
| INTEGER | number, exact |
| REAL | shortest decimal of the same float; infinities as texts |
| TEXT | text; where it is not UTF-8, `{"base64": ...}` |
| BLOB | text, base64 |

SQLite has no types for booleans and moments; they arrive as what they are stored as.
PostgreSQL 15 manual, chapter 8; sqlite.org/datatype3; both read 2026-11-30.
"""

import math
import re
import sqlite3
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Loader
from psycopg.types.string import TextLoader
from sqlalchemy.types import NullType, UserDefinedType

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.value import record
from scan_pipeline.sources.database.facts import Dialect

ORDERED: Final = frozenset(
    {"int2", "int4", "int8", "oid", "numeric", "text", "varchar", "bpchar", "name", "uuid", "bool"}
    | {"date", "timestamp", "timestamptz", "bytea"}
)
"""PostgreSQL types that may order a walk: equality is one of values, and the text goes back."""

_AS_THEY_ARE: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "text", "varchar", "bpchar", "name"}
)
_MOMENT: Final = re.compile(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?$")


@record
class ColumnType:
    """A column's type, as far as a value has to find its way back.

    Attributes:
        base: PostgreSQL's own name of the type below a domain; a storage class of SQLite's.
        cast: what a value is cast to; None compares it as it is.
    """

    base: str
    cast: str | None = None


class _Named(UserDefinedType[Any]):
    """A type known by its name alone."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


def bound(value: Any, kind: ColumnType) -> sa.ColumnElement[Any]:
    """Return a JSON value as a bind parameter of a column's type."""
    if kind.base == "bytea" and isinstance(value, str):
        value = b64decode(value)
    plain = sa.literal(value, NullType())
    return plain if kind.cast is None else sa.cast(plain, _Named(kind.cast))


def mark_text(value: Any) -> str:
    """Return a column's greatest value, as JSON, as the text it travels as."""
    return value if isinstance(value, str) else canonical_json(value).decode()


def mark_value(text: str, kind: ColumnType) -> Any:
    """Return such a text as the value that a column compares with."""
    return int(text) if kind.base == "integer" else text


def load_as_json(connection: "psycopg.Connection[Any]") -> None:
    """Make a connection to PostgreSQL give its values as JSON, by the table above."""
    special: dict[str, type[Loader]] = {
        "numeric": _NumberLoader,
        "float4": _NumberLoader,
        "float8": _NumberLoader,
        "bytea": _BytesLoader,
        "timestamptz": _ZonedLoader,
        "timestamp": _MomentLoader,
        "json": _JsonLoader,
        "jsonb": _JsonLoader,
    }
    for info in connection.adapters.types:
        if info.name not in _AS_THEY_ARE:
            connection.adapters.register_loader(info.oid, special.get(info.name, TextLoader))


def read_as_json(connection: sqlite3.Connection) -> None:
    """Make a connection to SQLite give texts that are no UTF-8 as what they are."""
    connection.text_factory = _text


def json_value(value: Any, dialect: Dialect) -> Any:
    """Return a value as the connection gave it as JSON, by the table above."""
    if dialect == "postgresql":
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _text(raw: bytes) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode("ascii")}


def _decoded(data: Any) -> str:
    return bytes(data).decode()


class _NumberLoader(Loader):
    def load(self, data: Any) -> Any:
        value = Decimal(_decoded(data))
        return value if value.is_finite() else _decoded(data)


class _BytesLoader(Loader):
    def load(self, data: Any) -> Any:
        return b64encode(bytes.fromhex(_decoded(data)[2:])).decode("ascii")


class _MomentLoader(Loader):
    def load(self, data: Any) -> Any:
        text = _decoded(data)
        moment = _MOMENT.match(text)
        return f"{moment[1]}T{moment[2]}" if moment else text


class _ZonedLoader(Loader):
    def load(self, data: Any) -> Any:
        text = _decoded(data)
        moment = _MOMENT.match(text)
        return f"{moment[1]}T{moment[2]}Z" if moment else text


class _JsonLoader(Loader):
    def load(self, data: Any) -> Any:
        try:
            return parse_exact(bytes(data))
        except CanonicalFormError:
            return _decoded(data)
