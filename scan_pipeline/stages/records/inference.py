"""Columns of records without a declared schema: a type holds only where every value has it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.json as pj

from scan_pipeline.core.canonical import CanonicalFormError, JsonValue, parse_exact
from scan_pipeline.core.column_names import is_column_name, is_ours, same_column

Kind: TypeAlias = Literal["null", "int64", "bool", "string", "json"]

_TYPES: Final = {"int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}


MOST_COLUMNS: Final = 1_024
"""Columns that are inferred, at most; a source whose member names are values has no end of them."""

CELLS: Final = 2**23
"""Cells that the reader may make at once of records whose members are not known, at most."""


def infer_columns(
    pages: Iterable[Sequence[bytes]],
    *,
    named: Collection[str] = (),
    most: int = MOST_COLUMNS,
) -> pa.Schema:
    """Infer typed columns from all records.

    Integers, booleans and text become such columns; numbers with a fraction, nested values and
    fields of mixed type keep their JSON text, and their columns say so (metadata `as: json`).
    Fields are in order of first sight. A member whose name no column can have, or has in another
    case already, or that comes after the most there may be, gets no column: it stays in the text.

    Args:
        pages: the records of each page.
        named: fields that the contract speaks of; they come before others to a name or a place.
        most: columns at most, those of `named` beside them.
    """
    seen = _Seen(named, most=most)
    for records in pages:
        seen.look(records)
    fields = []
    for name, kinds in seen.kinds.items():
        real = kinds - {"null"}
        inferred = next(iter(real)) if len(real) == 1 else "json"
        metadata = None if inferred in _TYPES else {b"as": b"json"}
        fields.append(pa.field(name, _TYPES.get(inferred, pa.string()), metadata=metadata))
    return pa.schema(fields)


class _Seen:
    """The kinds of value that were seen of each member that gets a column."""

    def __init__(self, named: Collection[str], *, most: int) -> None:
        self.kinds: dict[str, set[Kind]] = {}
        self._most = most
        self._named = frozenset(named)
        self._taken = {same_column(name): name for name in reversed([*named])}
        self._scattered = False

    def look(self, records: Sequence[bytes]) -> None:
        """Look at records, as many at once as the reader can hold."""
        start, members = 0, max(1, sum(each.count(b'":') for each in records))
        step = len(records)
        while step > 1 and step * members * step // len(records) > CELLS:
            step = (step + 1) // 2
        while start < len(records):
            self._take(records[start : start + step])
            start += step

    def _take(self, records: Sequence[bytes]) -> None:
        found = None if self._scattered else _kinds_at_once(records)
        if found is None:
            found = _kinds_one_by_one(records)
        # Where each record has members of its own, the reader makes mostly empty cells.
        members = sum(each.count(b":") for each in records)
        self._scattered |= len(found) * len(records) > max(8 * members, CELLS // 32)
        self._add(found)

    def _add(self, found: Mapping[str, set[Kind]]) -> None:
        for name, kinds in found.items():
            if name in self.kinds:
                self.kinds[name].update(kinds)
            elif self._may_be_column(name):
                self.kinds[name] = {*kinds}

    def _may_be_column(self, name: str) -> bool:
        if is_ours(name) or not is_column_name(name):
            return False
        if name not in self._named and len(self.kinds) >= self._most:
            return False
        return self._taken.setdefault(same_column(name), name) == name


def _kinds_at_once(records: Sequence[bytes]) -> dict[str, set[Kind]] | None:
    """Return the kinds by name, or None where the records need a closer look.

    Arrow's reader (pyarrow 26) refuses what is no strict JSON, a member that stands twice, and two
    kinds in one field; an integer beyond 64 bits makes a field of doubles. It may take a text for
    a moment; that is still a text.
    """
    lines = b"\n".join(records)
    try:
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        )
    except pa.ArrowInvalid:
        return None
    return {field.name: {_kind_of_type(field.type)} for field in table.schema}


def _kinds_one_by_one(records: Sequence[bytes]) -> dict[str, set[Kind]]:
    kinds: dict[str, set[Kind]] = {}
    for text in records:
        try:
            value = parse_exact(text)
        except CanonicalFormError:
            continue
        if isinstance(value, dict):
            for name, each in value.items():
                kinds.setdefault(name, set()).add(_kind_of_value(each))
    return kinds


def _kind_of_type(kind: pa.DataType) -> Kind:
    if pa.types.is_null(kind):
        return "null"
    if pa.types.is_int64(kind):
        return "int64"
    if pa.types.is_boolean(kind):
        return "bool"
    return "string" if pa.types.is_string(kind) or pa.types.is_temporal(kind) else "json"


def _kind_of_value(value: JsonValue) -> Kind:
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
