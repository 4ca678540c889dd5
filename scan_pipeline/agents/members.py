"""What is left of a table when some of its columns, and members of its objects, are kept back.

A path names a column, or a member of one: `contact.email`, in each element where `contact` is a
list of objects. Names may hold dots themselves, so a path may be read in several ways, and what is
to be hidden is hidden in all of them.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import polars as pl

from scan_pipeline.stages.readers.fitted_values import plain_type

Names: TypeAlias = tuple[str, ...]
"""The names on the way to a member, the column's first."""


def readings(path: str, fields: Mapping[str, pl.DataType]) -> Iterator[Names]:
    """Yield every way to read a path; none where it names nothing."""
    for name, dtype in fields.items():
        if path == name:
            yield (name,)
        elif path.startswith(f"{name}."):
            for rest in readings(path[len(name) + 1 :], _members(dtype)):
                yield (name, *rest)


def left_of(column: pl.Expr, dtype: pl.DataType, hidden: frozenset[Names]) -> pl.Expr | None:
    """Return a column without what is hidden in it, or None where nothing is left.

    Args:
        column: the column.
        dtype: its type.
        hidden: names on the way to each hidden member, from within the column; an empty one hides
            all of it.
    """
    if not hidden:
        return column
    if () in hidden:
        return None
    if isinstance(dtype, pl.List):
        element = left_of(pl.element(), plain_type(dtype.inner), hidden)
        return None if element is None else column.list.eval(element)
    kept = list[pl.Expr]()
    for name, inner in _members(dtype).items():
        below = frozenset(names[1:] for names in hidden if names[0] == name)
        left = left_of(column.struct.field(name), inner, below)
        if left is not None:
            kept.append(left.alias(name))
    # An object that is null stays null, and does not become one of nulls.
    return pl.when(column.is_not_null()).then(pl.struct(kept)) if kept else None


def _members(dtype: pl.DataType) -> dict[str, pl.DataType]:
    """Return the members of an object, or of a list's objects."""
    if isinstance(dtype, pl.List):
        return _members(plain_type(dtype.inner))
    if not isinstance(dtype, pl.Struct):
        return {}
    return {each.name: plain_type(each.dtype) for each in dtype.fields}
