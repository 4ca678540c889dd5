"""What the parser must know of a column's type, however deep it is nested."""

import pyarrow as pa


def read_as(kind: pa.DataType) -> pa.DataType:
    """Return the type as which Arrow's reader reads a type.

    Moments are read as text and cast afterwards: the reader takes one without a zone for UTC and
    a number for a date, which the cast refuses (pyarrow 26).
    """
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(read_as(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, read_as(each.type)) for each in kind])
    return kind


def holds_decimals(kind: pa.DataType) -> bool:
    """Say whether a type is a decimal or has one inside."""
    children = [kind.field(index).type for index in range(kind.num_fields)]
    return pa.types.is_decimal(kind) or any(map(holds_decimals, children))


def names_within(kind: pa.DataType) -> set[str]:
    """Return the names of a type's members, however deep."""
    if pa.types.is_list(kind):
        return names_within(kind.value_type)
    if pa.types.is_struct(kind):
        return {each.name for each in kind}.union(*(names_within(each.type) for each in kind))
    return set()
