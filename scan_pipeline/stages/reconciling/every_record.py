"""What a filter promises of every record: a field, and the value it must have in each of them.

Values are compared, not texts: 1 equals 1.0 and differs from "1" and from true; a member that is
missing is not null. A typed column says it where it can; else the record's own text does.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import polars as pl

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.scan import Scan

_UNREADABLE: Final = object()
_MISSING: Final = object()

_KINDS: Final[Mapping[type, str]] = {
    bool: "a boolean",
    str: "another text",
    int: "a number",
    float: "a number",
    Decimal: "a number",
    list: "a list",
    dict: "an object",
}


class EveryRecord:
    """Holds records against `expect.every_record`.

    Args:
        scan: the scan.
        text: reads one record's text.
    """

    def __init__(self, scan: Scan, *, text: Callable[[int, int], bytes]) -> None:
        self._declared = scan.contract.expect.every_record or {}
        self._text = text
        # A column of JSON text shows no types; of an inferred one nobody knows whether it is one.
        self._inferred = scan.record_schema is None
        columns = scan.record_schema if isinstance(scan.record_schema, tuple) else ()
        self._as_json = frozenset(each.name for each in columns if each.type == "json")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the records that `wrong` wants to see."""
        if not self._declared:
            return ()
        return (*self._declared, "_raw") if self._inferred else tuple(self._declared)

    def wrong(self, rows: pl.DataFrame) -> Iterator[Finding]:
        """Yield a finding for each field of each record that has another value.

        What cannot be read of a record that does not conform is not held against it.
        """
        for name, expected in self._declared.items():
            doubtful = rows.filter(self._doubtful(rows[name], expected))
            names = ("_page", "_position", "_key", "_conforming", name)
            raws = doubtful["_raw"] if self._inferred else [None] * doubtful.height
            for row, raw in zip(doubtful.select(names).iter_rows(), raws, strict=True):
                page, position, key, conforming, held = row
                found = self._found(name, held, raw, page=page, position=position)
                if found is _UNREADABLE and not conforming:
                    continue
                found = None if found is _UNREADABLE else found
                if found is _MISSING or not _equal(found, expected):
                    yield finding(
                        "filter_missed",
                        page=page,
                        key=key,
                        expected=f"{name} {canonical_json(expected).decode()}",
                        found=_word(found),
                    )

    def _doubtful(self, column: pl.Series, expected: str | int | bool | None) -> pl.Expr:
        """Return the rows whose column does not show by its type that the value is right."""
        plain = not self._inferred and column.name not in self._as_json
        types: tuple[Any, ...] = (pl.String,) if isinstance(expected, str) else (pl.Boolean,)
        if isinstance(expected, int) and not isinstance(expected, bool):
            types = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
            plain = plain and -(2**63) <= expected < 2**63
        if expected is None or not plain or column.dtype not in types:
            return pl.lit(value=True)
        return pl.col(column.name).ne_missing(pl.lit(expected))

    def _found(self, name: str, held: Any, raw: str | None, *, page: int, position: int) -> Any:
        if not self._inferred and isinstance(held, bool | int | str) and name not in self._as_json:
            return held
        try:
            text = self._text(page, position) if raw is None else raw.encode()
            record = parse_exact(text)
        except CanonicalFormError:
            return _UNREADABLE if held is None else held
        if not isinstance(record, dict):
            return _UNREADABLE
        return record.get(name, _MISSING)


def _equal(found: Any, expected: str | int | bool | None) -> bool:
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, int | float | Decimal):
        return isinstance(expected, int) and Decimal(found) == Decimal(expected)
    return type(found) is type(expected) and found == expected


def _word(found: Any) -> str:
    """Say what stands there by its kind: a receipt carries no values of records."""
    if found is _MISSING:
        return "missing"
    return "null" if found is None else _KINDS.get(type(found), "another value")
