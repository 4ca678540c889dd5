"""What a table's rows may look like: compared strictly, because Delta casts without a word.

Delta (deltalake 1.6.6) stores 1.5 as 1 and "12" as 12 where the column is an integer, nanoseconds
as microseconds and unsigned integers as signed ones. So a schema is admitted only if Delta would
store it unchanged, and rows only if their schema is that one.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from scan_pipeline.core.column_names import GENERATION, is_column_name, same_column
from scan_pipeline.core.errors import ContractError

UTC_US: Final = pa.timestamp("us", "UTC")

_SAME_VALUES: Final[tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...]] = (
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
)
"""Other layouts of the same values, which Polars and DuckDB hand out: no cast can change them."""


def stored_schema(handle: DeltaTable) -> pa.Schema:
    """Return a table's schema as Delta holds it."""
    return pa.schema(handle.schema().to_arrow())


@lru_cache(maxsize=256)  # a table is opened dozens of times a night, with one schema
def check_table_schema(schema: pa.Schema) -> None:
    """Check that Delta stores a schema as it stands.

    Raises:
        ContractError: the generation column is missing or another, a column repeats, or a type
            would be changed in storing; the message names the column.
    """
    if schema.names[:1] != [GENERATION] or schema.field(0) != pa.field(
        GENERATION, pa.string(), nullable=False
    ):
        found = schema.field(0) if len(schema) else "no column"
        raise ContractError(f"found {found}; expected `{GENERATION}: string not null` first")
    if wrong := [name for name in schema.names if not is_column_name(name)]:
        raise ContractError(f"found the columns {wrong}; expected names without a NUL")
    by_name: dict[str, list[str]] = {}
    for name in schema.names:
        by_name.setdefault(same_column(name), []).append(name)
    if repeated := sorted(name for names in by_name.values() if len(names) > 1 for name in names):
        raise ContractError(
            f"found the columns {repeated} more than once; expected each once: names that "
            "differ in case alone are one to Delta"
        )
    for field in schema:
        try:
            stored = pa.schema(DeltaSchema.from_arrow(pa.schema([field])).to_arrow()).field(0)
        except Exception as error:  # the library raises its bare Exception here
            raise ContractError(
                f"column `{field.name}`: found {field.type}, which Delta cannot store; {_ADVICE}"
            ) from error
        if stored != field or _unsettled(field.type):
            raise ContractError(
                f"column `{field.name}`: found {field.type}, which Delta would store as "
                f"{stored.type} or not as it stands; {_ADVICE}"
            )


def check_rows_schema(found: pa.Schema, *, expected: pa.Schema, where: str) -> None:
    """Check that rows have a table's schema, order, nullability and time zones included.

    Args:
        found: schema of the rows, or the one that a table already has.
        expected: schema of the table.
        where: what the rows are, for the message.

    Raises:
        ContractError: they differ; the message names the first column that does.
    """
    if found.names != expected.names:
        missing = [name for name in expected.names if name not in found.names]
        extra = [name for name in found.names if name not in expected.names]
        difference = f"missing {missing}, not expected {extra}"
        raise ContractError(
            f"{where}: columns differ: {difference if missing or extra else 'other order'}; "
            f"expected {expected.names} in this order"
        )
    for one, other in zip(found, expected, strict=True):
        if _settled(one.type) != other.type or one.nullable != other.nullable:
            raise ContractError(
                f"{where}: column `{one.name}`: found {_told(one)}, expected {_told(other)}; "
                "convert it before it comes here, where nothing is cast"
            )


def merged_schema(newest: pa.Schema, *, stored: pa.Schema) -> pa.Schema:
    """Return what a table shows whose generations have different columns.

    The newest generation's columns, then those that only earlier ones have; what not every one has
    may be null. Of a column with two types the newest counts: other Delta readers then cannot read
    the earlier generations' one, while `store.table_reader` reads each by its own files' schema.
    The same holds for a name that was written in another case.
    """
    names = {same_column(name) for name in newest.names}
    earlier = {field.name: field for field in stored}
    return pa.schema(
        [
            field.with_nullable(
                field.nullable or field.name not in earlier or earlier[field.name].nullable
            )
            for field in newest
        ]
        + [field.with_nullable(True) for field in stored if same_column(field.name) not in names]
    )


_ADVICE: Final = (
    "expected a type that it stores unchanged: signed integers, floats, decimal128, string, "
    "binary, bool, date32, timestamp[us, tz=UTC], and lists, structs and maps of these"
)


def _settled(found: pa.DataType) -> pa.DataType:
    """The type that Delta stores for the same values in another layout; others as they are."""
    for matches, stored in _SAME_VALUES:
        if matches(found):
            return stored
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        element = found.value_field
        return pa.list_(element.with_type(_settled(element.type)))
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_settled(field.type)) for field in found])
    return found


def _unsettled(found: pa.DataType) -> bool:
    if pa.types.is_timestamp(found):
        return found != UTC_US
    children = [found.field(index) for index in range(found.num_fields)]
    return pa.types.is_null(found) or any(_unsettled(child.type) for child in children)


def _told(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"
