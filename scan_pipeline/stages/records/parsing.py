"""From record bytes to typed columns: every value exact, or its record nonconforming.

The fast way parses many records at once with Arrow's JSON reader under an explicit schema, which
refuses missing, unexpected and doubled members and never coerces (pyarrow 26: 1.9, true and "12"
are refused for an integer). Columns of JSON text are found beside it. What it refuses is looked at
record by record.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pj

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.value import record
from scan_pipeline.stages.records.column_types import holds_decimals, names_within, read_as
from scan_pipeline.stages.records.exact_values import (
    NotExactError,
    doubles_are_exact,
    exact_text,
    exact_value,
    exponents_are_shallow,
)
from scan_pipeline.stages.records.json_columns import JsonColumns
from scan_pipeline.stages.records.schema import ResolvedSchema

BLOCK: Final = 2**22
"""Bytes that Arrow's reader takes at once; smaller than a batch, so that it stays in the cache."""


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
        columns: one row a record; null where a refused record's value is not its column's.
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
        self._declared = {field.name: field for field in schema.columns}  # asked for each record
        self._nullable = pa.schema([field.with_nullable(True) for field in schema.columns])
        self._read = pa.schema(
            [
                pa.field(
                    field.name,
                    read_as(field.type),
                    nullable=field.nullable or field.name in schema.optional,
                )
                for field in schema.columns
                if field.name not in schema.as_json
            ]
        )
        self._json = JsonColumns(schema.as_json) if schema.as_json else None
        self._inner = set[str]().union(*(names_within(field.type) for field in schema.columns))
        self._decimals = [each.name for each in schema.columns if holds_decimals(each.type)]

    def parse(self, records: Sequence[bytes]) -> Parsed:
        """Parse records; the result has one row for each, in order."""
        return self.parse_lines(b"\n".join(records), rows=len(records), records=lambda: records)

    def parse_lines(
        self, lines: bytes, *, rows: int, records: Callable[[], Sequence[bytes]]
    ) -> Parsed:
        """Parse records that are joined already.

        Args:
            lines: the records, joined by line breaks.
            rows: their number.
            records: returns them one by one; asked where one of them needs a closer look.
        """
        if not rows:
            return Parsed(columns=self._nullable.empty_table(), extra={}, refused=())
        table = self._at_once(lines, rows=rows, block=BLOCK)
        if table is None and _fits_badly(single := records()):
            lines = b"\n".join(map(_single_line, single))
            table = self._at_once(lines, rows=rows, block=2 * max(BLOCK, *map(len, single)))
        if table is not None:
            return Parsed(columns=table, extra={}, refused=())
        return self._in_halves(records()) if rows > 64 else self._one_by_one(records())

    def _at_once(self, lines: bytes, *, rows: int, block: int) -> pa.Table | None:
        """Return all records as a table, or None where one of them needs a closer look."""
        table = self._read_lines(lines, block=block)
        if table is not None and self._json is not None:
            table = self._with_texts(table, lines, self._json)
        if table is None or table.num_rows != rows or not self._nulls_are_told(table, lines):
            return None
        try:
            table = table.select(self._nullable.names).cast(self._nullable)
            for name in self._decimals:  # the reader looks at a decimal's digits, not at its size
                table.column(name).validate(full=True)
        except pa.ArrowInvalid:
            return None
        return table if doubles_are_exact(lines, table) else None

    def _read_lines(self, lines: bytes, *, block: int) -> pa.Table | None:
        if self._decimals and not exponents_are_shallow(lines):
            return None
        try:
            return pj.read_json(
                pa.BufferReader(lines),
                read_options=pj.ReadOptions(use_threads=False, block_size=block),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._read,
                    unexpected_field_behavior="error" if self._json is None else "infer",
                ),
            )
        except pa.ArrowInvalid:
            return None

    def _with_texts(self, table: pa.Table, lines: bytes, json: JsonColumns) -> pa.Table | None:
        """Put JSON text into its columns; None where a record needs a closer look.

        The reader inferred their types, which holds their form and what stands twice, and would
        have inferred an unexpected field as well.
        """
        if not {*table.column_names} <= self._declared.keys():
            return None
        completed = json.complete(table, lines)
        if completed is None:
            return None
        table, lacking = completed
        lacked = any(
            number for name, number in lacking.items() if name not in self._schema.optional
        )
        return None if lacked else table

    def _nulls_are_told(self, table: pa.Table, lines: bytes) -> bool:
        """Say whether every null of the table is one that its record says and may say.

        The reader gives null for a missing member too. Where members of a name are told null as
        often as the column is, none was missing; a text cannot look like one, since the quotes
        inside it are escaped.
        """
        for field in self._declared.values():
            optional = field.name in self._schema.optional
            if optional and field.nullable:
                continue
            nulls = table.column(field.name).null_count
            if not nulls:
                continue
            name = canonical_json(field.name)
            told = lines.count(name + b":null")
            if optional or told < nulls:
                told += lines.count(name + b": null")
            if field.name in self._inner or told != (0 if optional else nulls):
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
            rows.append(values)
            refused += wrong
            if unknown:
                extra[number] = canonical_json(unknown).decode()
        columns = pa.table(
            [
                pa.array([row.get(name) for row in rows], field.type)
                for name, field in self._declared.items()
            ],
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
        for name, field in self._declared.items():
            if name not in value:
                if name not in self._schema.optional:
                    wrong.append(_refused(row, field, "nothing"))
                continue
            try:
                values[name] = self._typed(value[name], field)
            except NotExactError as error:
                wrong.append(_refused(row, field, str(error)))
        unknown = {name: kept for name, kept in value.items() if name not in self._declared}
        return values, unknown, wrong

    def _typed(self, value: Any, field: pa.Field) -> Any:
        """Return a parsed value as its column holds it, or raise NotExactError."""
        if value is None:
            if not field.nullable:
                raise NotExactError("null")
            return None
        if field.name in self._schema.as_json:
            return exact_text(value)
        return exact_value(value, field.type)


def _refused(row: int, field: pa.Field, found: str) -> Refused:
    wanted = str(field.type) if field.nullable else f"{field.type}, not null"
    return Refused(row=row, column=field.name, expected=wanted, found=found)


def _fits_badly(records: Sequence[bytes]) -> bool:
    """Say whether the reader may refuse records for their form: cut inside one, or too long.

    A block is cut at a line's end. Where that is inside a record both halves are refused, so that
    it is enough to look once the reader has refused.
    """
    return any(len(each) > BLOCK // 2 or b"\n" in each or b"\r" in each for each in records)


def _single_line(text: bytes) -> bytes:
    """Return a record without line breaks; inside JSON they are white space between tokens."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text
