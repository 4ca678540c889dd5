"""Schemas that Delta keeps as they stand, and rows that have them."""

import pyarrow as pa
import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.store.table_schema import UTC_US, check_rows_schema, check_table_schema

GENERATION = pa.field("scan_generation", pa.string(), nullable=False)


def schema_of(kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([GENERATION, pa.field("value", kind, nullable=nullable)])


STORED = [
    pa.int8(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(38, 2),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    UTC_US,
    pa.list_(pa.string()),
    pa.list_(pa.field("element", pa.string())),
    pa.struct([pa.field("at", UTC_US, nullable=False)]),
    pa.map_(pa.string(), pa.int64()),
]

CHANGED = [
    pa.uint8(),
    pa.uint64(),
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("us", "+00:00"),
    pa.date64(),
    pa.time64("us"),
    pa.duration("us"),
    pa.float16(),
    pa.decimal256(50, 2),
    pa.binary(32),
    pa.large_string(),
    pa.string_view(),
    pa.large_binary(),
    pa.null(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.list_(pa.field("element", pa.timestamp("us"))),
    pa.struct([pa.field("at", pa.timestamp("us"))]),
    pa.struct([pa.field("nothing", pa.null())]),
]


@pytest.mark.parametrize("kind", STORED, ids=str)
@pytest.mark.parametrize("nullable", [True, False])
def test_a_type_that_delta_stores_as_it_stands_is_admitted(
    kind: pa.DataType, nullable: bool
) -> None:
    schema = schema_of(kind, nullable=nullable)

    check_table_schema(schema)
    check_rows_schema(schema, expected=schema, where="rows")


@pytest.mark.parametrize("kind", CHANGED, ids=str)
def test_a_type_that_delta_would_change_is_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(ContractError, match="column `value`"):
        check_table_schema(schema_of(kind))


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([pa.field("value", pa.int64())]),
        pa.schema([pa.field("value", pa.int64()), GENERATION]),
        pa.schema([pa.field("scan_generation", pa.string())]),
        pa.schema([pa.field("scan_generation", pa.int64(), nullable=False)]),
        pa.schema([GENERATION, pa.field("a", pa.int64()), pa.field("a", pa.string())]),
    ],
    ids=["empty", "without", "later", "nullable", "number", "twice"],
)
def test_a_table_without_its_generation_column_or_with_a_doubled_one_is_refused(
    schema: pa.Schema,
) -> None:
    with pytest.raises(ContractError):
        check_table_schema(schema)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int64()),
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.int64()),
        (pa.timestamp("us"), UTC_US),
        (pa.timestamp("ns", "UTC"), UTC_US),
        (pa.timestamp("us", "+00:00"), UTC_US),
        (pa.decimal128(38, 3), pa.decimal128(38, 2)),
        (pa.binary(32), pa.binary()),
        (pa.string(), pa.binary()),
        (pa.null(), pa.string()),
        (pa.struct([pa.field("a", pa.float64())]), pa.struct([pa.field("a", pa.int64())])),
    ],
    ids=str,
)
def test_rows_of_another_type_are_refused_by_name(
    found: pa.DataType, expected: pa.DataType
) -> None:
    with pytest.raises(ContractError, match=r"column `value`: found .*, expected"):
        check_rows_schema(schema_of(found), expected=schema_of(expected), where="rows")


@pytest.mark.parametrize("nullable", [True, False])
def test_rows_of_another_nullability_are_refused(nullable: bool) -> None:
    with pytest.raises(ContractError, match="not null"):
        check_rows_schema(
            schema_of(pa.int64(), nullable=nullable),
            expected=schema_of(pa.int64(), nullable=not nullable),
            where="rows",
        )


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["scan_generation", "a"], r"missing \['b'\]"),
        (["scan_generation", "a", "b", "c"], r"not expected \['c'\]"),
        (["scan_generation", "b", "a"], "other order"),
    ],
)
def test_rows_with_other_columns_are_refused(names: list[str], told: str) -> None:
    expected = pa.schema([GENERATION, pa.field("a", pa.int64()), pa.field("b", pa.int64())])
    found = pa.schema([GENERATION, *(pa.field(name, pa.int64()) for name in names[1:])])

    with pytest.raises(ContractError, match=told):
        check_rows_schema(found, expected=expected, where="rows")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.large_list(pa.large_string()), pa.list_(pa.field("element", pa.string()))),
        (
            pa.struct([pa.field("a", pa.large_string())]),
            pa.struct([pa.field("a", pa.string())]),
        ),
    ],
    ids=str,
)
def test_another_layout_of_the_same_values_is_admitted(
    found: pa.DataType, expected: pa.DataType
) -> None:
    check_rows_schema(schema_of(found), expected=schema_of(expected), where="rows")
