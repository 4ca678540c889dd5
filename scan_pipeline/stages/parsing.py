"""From record bytes to typed columns: every value exact, or its record nonconforming.

The fast way parses many records at once with Arrow's JSON reader under an explicit schema, which
refuses missing, unexpected and doubled members and never coerces (pyarrow 26: 1.9, true and "12"
are refused for an integer). What it refuses is looked at record by record.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.value import record
from scan_pipeline.stages.record_schema import ResolvedSchema

BLOCK: Final = 2**22
"""Bytes that Arrow's reader takes at once; smaller than a batch, so that it stays in the cache."""

EXACT_FLOAT: Final = 2.0**53
"""Magnitude from which a double no longer holds every integer (IEEE 754 binary64)."""


@record
class Refused:
    """A record that the schema refuses.

    Attributes:
        row: its row in the batch, from 0.
        column: the field, None where the whole record is meant.
        expected: what the schema wants.
        found: what is there, in a word.
    """

    row: int
    column: str | None
    expected: str
    found: str


@record
class Parsed:
    """Typed columns of some records.

    Attributes:
        columns: one row a record; all null where a record was refused.
        extra: JSON text of the unknown fields by row, only where there are some.
        refused: records the schema refuses, at least one entry each.
    """

    columns: pa.Table
    extra: dict[int, str]
    refused: tuple[Refused, ...]


class RecordParser:
    """Parses records against one resolved schema."""

    def __init__(self, schema: ResolvedSchema) -> None:
        if schema.columns is None:
            raise ValueError("an inferred schema is resolved before records are parsed")
        self._schema = schema
        self._nullable = pa.schema([field.with_nullable(True) for field in schema.columns])
        self._read = pa.schema(
            [
                field.with_nullable(field.nullable or field.name in schema.optional)
                for field in schema.columns
            ]
        )
        self._fast = not schema.as_json and not any(_needs_care(f.type) for f in schema.columns)

    def parse(self, records: Sequence[bytes]) -> Parsed:
        """Parse records; the result has one row for each, in order."""
        if not records:
            return Parsed(columns=self._nullable.empty_table(), extra={}, refused=())
        if self._fast:
            table = self._at_once(records)
            if table is not None:
                return Parsed(columns=table, extra={}, refused=())
            if len(records) > 64:
                return self._in_halves(records)
        return self._one_by_one(records)

    def _at_once(self, records: Sequence[bytes]) -> pa.Table | None:
        """Return all records as a table, or None where one of them needs a closer look."""
        longest = max(map(len, records))
        lines = b"\n".join(records)
        if b"\r" in lines or lines.count(b"\n") >= len(records):
            lines = b"\n".join(_single_line(each) for each in records)
        try:
            table = pj.read_json(
                pa.BufferReader(lines),
                read_options=pj.ReadOptions(use_threads=False, block_size=max(BLOCK, 2 * longest)),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._read, unexpected_field_behavior="error"
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(records) or not self._exact(table):
            return None
        return table.select(self._nullable.names).cast(self._nullable)

    def _exact(self, table: pa.Table) -> bool:
        """Say whether no float is so large that a double may have rounded it."""
        for name, field in zip(table.column_names, table.schema, strict=True):
            if pa.types.is_floating(field.type) and table.num_rows:
                largest = pc.call_function(
                    "max", [pc.call_function("abs", [table.column(name)])]
                ).as_py()
                if largest is not None and largest >= EXACT_FLOAT:
                    return False
        return True

    def _in_halves(self, records: Sequence[bytes]) -> Parsed:
        """Keep the fast way for all but the neighbourhood of what it refuses."""
        middle = len(records) // 2
        left, right = self.parse(records[:middle]), self.parse(records[middle:])
        return Parsed(
            columns=pa.concat_tables([left.columns, right.columns]),
            extra={**left.extra, **{row + middle: text for row, text in right.extra.items()}},
            refused=(
                *left.refused,
                *(
                    Refused(
                        row=each.row + middle,
                        column=each.column,
                        expected=each.expected,
                        found=each.found,
                    )
                    for each in right.refused
                ),
            ),
        )

    def _one_by_one(self, records: Sequence[bytes]) -> Parsed:
        rows: list[dict[str, Any]] = []
        extra: dict[int, str] = {}
        refused: list[Refused] = []
        for number, text in enumerate(records):
            values, unknown, wrong = self._one(number, text)
            rows.append({} if wrong else values)
            refused += wrong
            if unknown:
                extra[number] = canonical_json(unknown).decode()
        columns = pa.Table.from_pylist(
            [{name: row.get(name) for name in self._nullable.names} for row in rows],
            schema=self._nullable,
        )
        return Parsed(columns=columns, extra=extra, refused=tuple(refused))

    def _one(self, row: int, text: bytes) -> tuple[dict[str, Any], dict[str, Any], list[Refused]]:
        try:
            value = parse_exact(text)
        except CanonicalFormError as error:
            whole = Refused(row=row, column=None, expected="one JSON object", found=str(error))
            return {}, {}, [whole]
        if not isinstance(value, dict):
            whole = Refused(
                row=row, column=None, expected="a JSON object", found=type(value).__name__
            )
            return {}, {}, [whole]
        values: dict[str, Any] = {}
        wrong: list[Refused] = []
        for field in self._read:
            if field.name not in value:
                if not field.nullable:
                    wrong.append(_refused(row, field, "nothing"))
                continue
            try:
                values[field.name] = _typed(
                    value[field.name], field, as_json=field.name in self._schema.as_json
                )
            except _NotExactError as error:
                wrong.append(_refused(row, field, str(error)))
        unknown = {name: kept for name, kept in value.items() if name not in self._nullable.names}
        return values, unknown, wrong


class _NotExactError(Exception):
    """A value does not fit its column without changing."""


def infer_columns(pages: Iterator[Sequence[bytes]]) -> pa.Schema:
    """Infer typed columns from all records: a type holds only where every value has it.

    Integers, booleans and text become such columns; numbers with a fraction, nested values and
    fields of mixed type keep their JSON text. Fields are in order of first sight.
    """
    kinds: dict[str, set[str]] = {}
    for records in pages:
        for text in records:
            try:
                value = parse_exact(text)
            except CanonicalFormError:
                continue
            if isinstance(value, dict):
                for name, each in value.items():
                    kinds.setdefault(name, set()).add(_kind(each))
    fields = []
    for name, seen in kinds.items():
        if name.startswith("_") or name == "scan_generation":
            continue
        real = seen - {"null"}
        inferred = next(iter(real)) if len(real) == 1 else "json"
        types = {"int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
        metadata = None if inferred in types else {b"as": b"json"}
        fields.append(pa.field(name, types.get(inferred, pa.string()), metadata=metadata))
    return pa.schema(fields)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() if -(2**63) <= value < 2**63:
            return "int64"
        case str():
            return "string"
        case _:
            return "json"


def _typed(value: Any, field: pa.Field, *, as_json: bool) -> Any:
    """Return a parsed value as its column holds it, or raise `_NotExactError`."""
    if value is None:
        if not field.nullable:
            raise _NotExactError("null")
        return None
    if as_json:
        return canonical_json(value).decode()
    return _exact_value(value, field.type)


def _exact_value(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_list(kind) and isinstance(value, list):
        return [None if each is None else _exact_value(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        unknown = set(value) - {kind.field(i).name for i in range(kind.num_fields)}
        if unknown:
            raise _NotExactError(f"unknown members {sorted(unknown)}")
        return {
            name: None if each is None else _exact_value(each, kind.field(name).type)
            for name, each in value.items()
        }
    plain = _plain_value(value, kind)
    try:
        stored = pa.scalar(plain, type=kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError) as error:
        raise _NotExactError(f"a value that {kind} does not hold: {type(error).__name__}") from None
    if pa.types.is_floating(kind) and abs(plain) >= EXACT_FLOAT and Decimal(stored) != value:
        raise _NotExactError("a number that a double would round")
    if pa.types.is_decimal(kind) and stored != plain:
        raise _NotExactError(f"a number with more digits than {kind}")
    return stored


def _plain_value(value: Any, kind: pa.DataType) -> Any:
    """Return the Python value that Arrow takes without coercing, or raise `_NotExactError`."""
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
        return float(value)
    if pa.types.is_decimal(kind) and (numeric or isinstance(value, str)):
        try:
            return Decimal(value)
        except ArithmeticError:
            raise _NotExactError("a text that is no number") from None
    if (pa.types.is_timestamp(kind) or pa.types.is_date(kind)) and isinstance(value, str):
        return _moment(value, kind)
    raise _NotExactError(found)


def _moment(text: str, kind: pa.DataType) -> Any:
    try:
        return pc.cast(pa.scalar(text), kind).as_py()
    except pa.ArrowInvalid:
        raise _NotExactError(f"a text that is no {kind}") from None


def _refused(row: int, field: pa.Field, found: str) -> Refused:
    wanted = str(field.type) if field.nullable else f"{field.type}, not null"
    return Refused(row=row, column=field.name, expected=wanted, found=found)


def _needs_care(kind: pa.DataType) -> bool:
    """Say whether Arrow's JSON reader cannot fill a type the way JSON writes it."""
    return pa.types.is_date(kind)


def _single_line(text: bytes) -> bytes:
    """Return a record without line breaks; inside JSON they are white space between tokens."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text
