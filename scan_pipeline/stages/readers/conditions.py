"""Typed conditions on a record's fields: what a query asks for and what a policy lets through.

As in SQL, a field without a value (null) meets no comparison, neither `eq` nor `ne`; `is_null` and
`not_null` ask for that. Text is compared code point by code point.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import polars as pl

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.stages.readers.fitted_values import Scalar, expected, fitted, plain_type

Operator: TypeAlias = Literal[
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "in",
    "has",
    "starts_with",
    "contains",
    "is_null",
    "not_null",
]
"""`in`: the field is one of a list; `has`: the field is a list and holds the value."""

MAX_LISTED: Final = 1000
"""Most values of one `in`."""

_WITHOUT_VALUE: Final = frozenset({"is_null", "not_null"})
_BY_ORDER: Final = frozenset({"lt", "le", "gt", "ge"})
_OF_TEXT: Final = frozenset({"starts_with", "contains"})
_WORDS: Final[Mapping[str, str]] = {
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "in": "in",
    "has": "has",
    "starts_with": "starts with",
    "contains": "contains",
}


class ConditionError(ContractError):
    """A condition does not fit the records.

    Attributes:
        code: `field_unknown` or `condition_unfit`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@record
class Condition:
    """One thing a record must meet.

    Attributes:
        field: a column, or `address.country` for a member of one.
        op: how it is compared.
        value: with what; a list for `in`, nothing for `is_null` and `not_null`.
    """

    field: str
    op: Operator = "eq"
    value: Scalar | tuple[Scalar, ...] | None = None

    def words(self) -> str:
        """Return it as a reader says it, e.g. `schema_version != 3`."""
        if self.op in _WITHOUT_VALUE:
            return f"{self.field} {'is' if self.op == 'is_null' else 'is not'} null"
        value = self.value
        shown = canonical_json(list(value) if isinstance(value, tuple) else value).decode()
        return f"{self.field} {_WORDS[self.op]} {shown}"


def parse_condition(field: str, op: str, value: str) -> Condition:
    """Return a condition as it is typed at a command line.

    Args:
        field: the field.
        op: the operator.
        value: JSON (`3`, `true`, `["eu", "us"]`), or text where it is none.

    Raises:
        ConditionError: there is no such operator.
    """
    if op not in get_args(Operator):
        raise ConditionError(
            "condition_unfit", f"found {op}; expected one of {', '.join(get_args(Operator))}"
        )
    try:
        parsed: Any = json.loads(value)
    except ValueError:
        parsed = value
    if isinstance(parsed, float | dict):
        parsed = value  # a number with a fraction stays text, so that nothing rounds it
    given = tuple(parsed) if isinstance(parsed, list) else parsed
    return Condition(field=field, op=cast("Operator", op), value=given)


def normalized(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return conditions in one order, each once: two ways to ask the same are the same question."""
    listed = [_sorted_values(each) for each in conditions]
    return tuple(
        {canonical_json(as_json(each)): each for each in sorted(listed, key=_order)}.values()
    )


def as_json(condition: Condition) -> dict[str, Any]:
    """Return a condition as plain JSON values."""
    value = condition.value
    return {
        "field": condition.field,
        "op": condition.op,
        "value": list(value) if isinstance(value, tuple) else value,
    }


def expression(condition: Condition, schema: pl.Schema) -> pl.Expr:
    """Return a condition as an expression that is never null.

    Raises:
        ConditionError: the field is not there, or the value does not fit its type; says what does.
    """
    column, dtype = _column(condition.field, schema)
    op, value = condition.op, condition.value
    if op == "is_null":
        return column.is_null()
    if op == "not_null":
        return column.is_not_null()
    if value is None:
        raise _unfit(condition, "found no value; expected one, or is_null to ask for none")
    if op == "in":
        if not isinstance(value, tuple) or not 0 < len(value) <= MAX_LISTED:
            raise _unfit(condition, f"expected a list of 1 to {MAX_LISTED} values")
        fitted = [_fitted(condition, each, dtype) for each in value]
        return column.is_in(pl.Series(fitted, dtype=dtype).implode()).fill_null(value=False)
    if isinstance(value, tuple):
        raise _unfit(condition, "found a list; expected one value, or op: in")
    if op == "has":
        if not isinstance(dtype, pl.List):
            raise _unfit(condition, f"has asks of a list, and {condition.field} is {_name(dtype)}")
        inner = pl.lit(_fitted(condition, value, dtype.inner), dtype=plain_type(dtype.inner))
        return column.list.contains(inner).fill_null(value=False)
    if op in _OF_TEXT:
        if dtype != pl.String or not isinstance(value, str):
            raise _unfit(condition, f"{op} asks of text, and {condition.field} is {_name(dtype)}")
        text = pl.lit(value)
        found = (
            column.str.starts_with(text)
            if op == "starts_with"
            else column.str.contains(text, literal=True)
        )
        return found.fill_null(value=False)
    if op in _BY_ORDER and dtype == pl.Boolean:
        raise _unfit(condition, "true and false have no order; expected eq or ne")
    literal = pl.lit(_fitted(condition, value, dtype), dtype=dtype)
    compared: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
        "eq": pl.Expr.eq,
        "ne": pl.Expr.ne,
        "lt": pl.Expr.lt,
        "le": pl.Expr.le,
        "gt": pl.Expr.gt,
        "ge": pl.Expr.ge,
    }
    return compared[op](column, literal).fill_null(value=False)


def all_of(conditions: Sequence[Condition], schema: pl.Schema) -> pl.Expr:
    """Return one expression that every condition must meet; true where there is none."""
    met = pl.lit(value=True)
    for each in conditions:
        met = met & expression(each, schema)
    return met


def _column(path: str, schema: pl.Schema) -> tuple[pl.Expr, pl.DataType]:
    name, *inside = path.split(".") if path not in schema else [path]
    dtype = schema.get(name)
    if dtype is None:
        raise ConditionError(
            "field_unknown", f"found the field {path}; expected one of {_names(schema)}"
        )
    column = pl.col(name)
    for step in inside:
        members = (
            {each.name: each.dtype for each in dtype.fields} if isinstance(dtype, pl.Struct) else {}
        )
        if step not in members:
            raise ConditionError(
                "field_unknown",
                f"found the field {path}; {name} has the members {_names(members) or 'none'}",
            )
        column, dtype = column.struct.field(step), plain_type(members[step])
    return column, dtype


def _fitted(condition: Condition, value: Scalar, dtype: Any) -> Any:
    fits = fitted(value, dtype)
    if fits is None:
        raise _unfit(condition, f"expected {expected(dtype)}")
    return fits


def _sorted_values(condition: Condition) -> Condition:
    if not isinstance(condition.value, tuple):
        return condition
    values = {canonical_json(each): each for each in condition.value}
    return Condition(
        field=condition.field,
        op=condition.op,
        value=tuple(values[each] for each in sorted(values)),
    )


def _order(condition: Condition) -> bytes:
    return canonical_json(as_json(condition))


def _unfit(condition: Condition, why: str) -> ConditionError:
    return ConditionError("condition_unfit", f"{condition.field} {condition.op}: {why}")


def _name(dtype: pl.DataType) -> str:
    return str(dtype).lower()


def _names(named: Mapping[str, Any]) -> str:
    return ", ".join(named)
