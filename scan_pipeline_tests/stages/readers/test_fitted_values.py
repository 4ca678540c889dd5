"""A value is what a column holds, exactly, or it is refused."""

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from scan_pipeline.stages.readers.conditions import Condition, ConditionError, all_of

FRAME = pl.DataFrame(
    {
        "n": [2**53 + 1, 2**53, None],
        "x": [0.5, float("inf"), None],
        "d": [Decimal("1.5"), Decimal(-2), None],
        "t": [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12, 0, 0, 1, UTC), None],
    },
    schema_overrides={"d": pl.Decimal(38, 9), "t": pl.Datetime("us", "UTC")},
)


def matching(field, op, value):
    met = all_of([Condition(field=field, op=op, value=value)], FRAME.schema)
    return FRAME.with_row_index().filter(met)["index"].to_list()


@pytest.mark.parametrize(
    ("field", "op", "value", "rows"),
    [
        ("n", "eq", 2**53 + 1, [0]),
        ("n", "eq", str(2**53 + 1), [0]),
        ("n", "in", (str(2**53), 2**53 + 1), [0, 1]),
        ("n", "ne", "9007199254740993", [1]),
        ("d", "eq", "1.50", [0]),
        ("d", "in", ("1.5", "7"), [0]),
        ("t", "eq", "2026-01-01T14:00:00+02:00", [0]),
        ("t", "eq", "2026-01-01T12:00:00.000001000Z", [1]),
        ("t", "in", ("2026-01-01T06:30:00-05:30",), [0]),
        ("t", "gt", "2026-01-01T13:00:00+01:00", [1]),
        ("x", "eq", "inf", [1]),
    ],
)
def test_value_finds_its_rows_whatever_it_is_written_as(field, op, value, rows):
    assert matching(field, op, value) == rows


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", "007"),
        ("n", "1_0"),
        ("n", "1.0"),
        ("n", 2**63),
        ("n", "9" * 400),
        ("x", 10**400),
        ("d", "1.0000000001"),
        ("d", "NaN"),
        ("t", "2026-01-01T12:00:00.0000001Z"),
        ("t", "2026-01-01T12:00:00"),
        ("t", "0001-01-01T00:00:00+23:00"),
    ],
)
def test_value_that_the_column_cannot_hold_is_refused(field, value):
    """Cut, rounded or moved, it would be another value, and its answer another question's."""
    with pytest.raises(ConditionError) as refused:
        matching(field, "eq", value)

    assert refused.value.code == "condition_unfit"
