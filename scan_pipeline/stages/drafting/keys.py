"""Which field may be the key, and what types the fields have, as far as two pages show."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any, Final

from scan_pipeline.stages.drafting.answers import plain

_MOMENT: Final = re.compile(
    r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:[Zz]|[+-]\d{2}:\d{2})$"
)
"""A moment of RFC 3339 that a column of microseconds holds exactly."""

_NAMED: Final = re.compile(r"(?:[_-](?:id|uuid|guid|key)|[a-z](?:Id|ID|Uuid|UUID|Key))$")
"""A name that ends in the word for a key; `lid` or `paid` does not."""

_OURS: Final = "scan_generation"


def key_of(
    records: Sequence[Mapping[str, Any]], *, collection: str, declared: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """Return the fields that may be the key: in every record, never null, never twice.

    Args:
        records: all records that were seen.
        collection: name of the collection, e.g. `customers`: its key may be `customer_id`.
        declared: fields that the answer itself calls its key; they are held against the records.
    """
    if not records:
        return None
    fields = [name for name in records[0] if all(_keyed(each.get(name)) for each in records)]
    if declared and set(declared) <= set(fields) and _unique(records, declared):
        return declared
    singular = plain(collection).removesuffix("s")
    fields.sort(key=lambda name: _rank(name, singular))  # stable: else as the records have them
    for name in fields:
        if _unique(records, (name,)):
            return (name,)
    pairs = combinations(fields[:8], 2)
    return next((pair for pair in pairs if _unique(records, pair)), None)


def declared_key(body: Any) -> tuple[str, ...]:
    """Return the fields that an answer calls its primary key, none where it does not say."""
    found = body.get("primary_keys") if isinstance(body, Mapping) else None
    named = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if named and isinstance(found, list) else ()


def is_named_like_a_key(name: str) -> bool:
    """Say whether a name is that of a key."""
    return _rank(name, "") < _LEAST


def columns_of(records: Sequence[Mapping[str, Any]], key: Sequence[str]) -> list[dict[str, Any]]:
    """Return inline columns for every field seen that can be one."""
    names = dict.fromkeys(name for each in records for name in each)
    lower = [name.lower() for name in names]
    kept = [
        name
        for name in names
        if name and not name.startswith("_") and name != _OURS and lower.count(name.lower()) == 1
    ]
    return [
        {"name": name, "type": _type(records, name), **({"nullable": False} if name in key else {})}
        for name in kept
    ]


_LEAST: Final = 5


def _rank(name: str, singular: str) -> int:
    short, known = plain(name), ("id", "uuid", "guid", "key", "uid")
    if short == "id":
        place = 0
    elif singular and short in {singular + each for each in known}:
        place = 1
    elif short in known:
        place = 2
    elif singular and short == singular:
        place = 3
    elif _NAMED.search(name):
        place = 4
    else:
        place = _LEAST + (short not in ("name", "code", "slug", "number"))
    return place


def _keyed(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _unique(records: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> bool:
    seen = {tuple((type(each[name]), each[name]) for name in fields) for each in records}
    return len(seen) == len(records)


def _type(records: Sequence[Mapping[str, Any]], name: str) -> str:
    values = [each[name] for each in records if each.get(name) is not None]
    kinds = {type(each) for each in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64" if all(-(2**63) <= each < 2**63 for each in values) else "json"
    if kinds and kinds <= {int, Decimal}:
        return "float64" if all(_exact(each) for each in values) else "json"
    if kinds == {str}:
        return "timestamp" if all(_MOMENT.match(each) for each in values) else "string"
    return "json"


def _exact(value: int | Decimal) -> bool:
    """Say whether a double gives back the number that was sent."""
    return Decimal(repr(float(value))) == Decimal(value)
