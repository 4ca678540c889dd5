"""Columns of records without a declared schema: a type holds only where every value has it."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.json as pj

from scan_pipeline.core.canonical import CanonicalFormError, JsonValue, parse_exact

Kind: TypeAlias = Literal["null", "int64", "bool", "string", "json"]

_TYPES: Final = {"int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}


def infer_columns(pages: Iterable[Sequence[bytes]]) -> pa.Schema:
    """Infer typed columns from all records.

    Integers, booleans and text become such columns; numbers with a fraction, nested values and
    fields of mixed type keep their JSON text, and their columns say so (metadata `as: json`).
    Fields are in order of first sight.
    """
    kinds: dict[str, set[Kind]] = {}
    for records in pages:
        found = _kinds_at_once(records)
        for name, seen in (_kinds_one_by_one(records) if found is None else found).items():
            kinds.setdefault(name, set()).update(seen)
    fields = []
    for name, seen in kinds.items():
        if name.startswith("_") or name == "scan_generation":
            continue
        real = seen - {"null"}
        inferred = next(iter(real)) if len(real) == 1 else "json"
        metadata = None if inferred in _TYPES else {b"as": b"json"}
        fields.append(pa.field(name, _TYPES.get(inferred, pa.string()), metadata=metadata))
    return pa.schema(fields)


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
