"""What a tool takes: shapes that a client sees in the tool's schema."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from scan_pipeline.agents.queries import (
    Grouping,
    Measure,
    Measured,
    Order,
    Query,
    Stopping,
    StopWord,
)
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.readers.conditions import Condition, Operator

Value: TypeAlias = StrictStr | StrictBool | StrictInt
"""Taken as it is: a number with a fraction has been rounded before it comes here."""


class ConditionInput(BaseModel):
    """One condition; all of them must be met."""

    model_config = ConfigDict(extra="forbid")

    field: str = Field(description="a column, or column.member")
    op: Operator = "eq"
    value: Value | list[Value] | None = Field(
        default=None,
        description="text, whole number, true or false; decimals, moments and whole numbers "
        "beyond 2^53 as text; a list for `in`; nothing for is_null and not_null. A null field "
        "meets no other operator.",
    )

    def condition(self) -> Condition:
        """Return it as a value."""
        value = tuple(self.value) if isinstance(self.value, list) else self.value
        return Condition(field=self.field, op=self.op, value=value)


class OrderInput(BaseModel):
    """One field to order by; nulls stand last."""

    model_config = ConfigDict(extra="forbid")

    field: str
    descending: bool = False


class MeasureInput(BaseModel):
    """One figure of an aggregate."""

    model_config = ConfigDict(extra="forbid")

    measure: Measure = "count"
    field: str | None = Field(default=None, description="of which field; count has none")


class StoppingInput(BaseModel):
    """When you are done; decide before you read."""

    model_config = ConfigDict(extra="forbid")

    policy: Literal["find_one", "find_up_to", "exhaustive"] = Field(
        default="exhaustive",
        description="find_one gives one row, find_up_to gives n, exhaustive gives all by pages. "
        "Only after every page of an exhaustive query may absence be concluded from reading.",
    )
    n: StrictInt | None = Field(default=None, gt=0, description="for find_up_to")


def rows_query(
    *,
    where: list[ConditionInput],
    columns: list[str],
    order: list[OrderInput],
    stopping: StoppingInput,
    at_least: Literal["verified", "corroborated"],
    accept: ConclusionScope | None,
) -> Query:
    """Return a question for rows."""
    word: StopWord = stopping.policy
    return Query(
        where=tuple(each.condition() for each in where),
        columns=tuple(columns),
        order=tuple(Order(field=each.field, descending=each.descending) for each in order),
        stopping=Stopping(policy=word, n=stopping.n),
        at_least=at_least,
        accept=accept,
    )


def figures_query(
    *,
    where: list[ConditionInput],
    by: list[str],
    measures: list[MeasureInput],
    at_least: Literal["verified", "corroborated"],
    accept: ConclusionScope | None,
) -> Query:
    """Return a question for figures."""
    asked = tuple(Measured(measure=each.measure, field=each.field) for each in measures)
    return Query(
        where=tuple(each.condition() for each in where),
        stopping=Stopping(policy="aggregate"),
        at_least=at_least,
        accept=accept,
        grouping=Grouping(by=tuple(by), measures=asked or (Measured(),)),
    )
