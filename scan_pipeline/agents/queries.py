"""A reader's question, in one normal form with a digest."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import polars as pl
from pydantic import Field

from scan_pipeline.agents.access import Access
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.readers.conditions import Condition, as_json, normalized

StopWord: TypeAlias = Literal["find_one", "find_up_to", "aggregate", "exhaustive"]

_BOUNDING: Final = frozenset({"eq", "in", "starts_with", "lt", "le", "gt", "ge"})


@record
class Stopping:
    """When a reader is done.

    Attributes:
        policy: `find_one` and `find_up_to` give so many rows and no more, `aggregate` gives none,
            `exhaustive` gives all, page by page.
        n: how many, for `find_up_to`.
    """

    policy: StopWord = "exhaustive"
    n: PositiveInt | None = None

    @property
    def rows(self) -> int | None:
        """Return the most rows that are given; None for all."""
        return {"find_one": 1, "find_up_to": self.n, "aggregate": 0}.get(self.policy)


@record
class Order:
    """One field that rows are ordered by; rows without it come last."""

    field: str
    descending: bool = False


Measure: TypeAlias = Literal["count", "sum", "min", "max", "distinct"]


@record
class Measured:
    """One figure of an aggregate; `count` needs no field."""

    measure: Measure = "count"
    field: str | None = None

    def words(self) -> str:
        """Return its name in an answer, e.g. `sum of balance`."""
        return self.measure if self.field is None else f"{self.measure} of {self.field}"


@record
class Grouping:
    """What an aggregate counts, by which fields."""

    by: tuple[str, ...] = ()
    measures: Annotated[tuple[Measured, ...], Field(min_length=1)] = (Measured(),)


@record
class Query:
    """What is asked, within what the principal may see.

    Attributes:
        where: conditions, all of which a row must meet.
        columns: the columns that are shown; all that are seen where empty.
        order: fields that rows are ordered by, before the place where the walk found them, which
            makes the order unique.
        stopping: when the reader is done.
        at_least: the least status of the whole the reader asks for.
        accept: for a generation that is no proven whole, the scope the reader is content with.
        grouping: for a question of an aggregate.
    """

    where: tuple[Condition, ...] = ()
    columns: tuple[str, ...] = ()
    order: tuple[Order, ...] = ()
    stopping: Stopping = Stopping()
    at_least: Literal["verified", "corroborated"] = "verified"
    accept: ConclusionScope | None = None
    grouping: Grouping | None = None

    def words(self) -> str:
        """Return the conditions as a sentence's end, or nothing."""
        return " and ".join(each.words() for each in self.where)


def query_json(query: Query) -> dict[str, Any]:
    """Return a normal query as plain JSON values."""
    grouping = query.grouping
    return {
        "where": [as_json(each) for each in query.where],
        "columns": list(query.columns),
        "order": [{"field": each.field, "descending": each.descending} for each in query.order],
        "stopping": {"policy": query.stopping.policy, "n": query.stopping.n},
        "at_least": query.at_least,
        "accept": query.accept,
        "grouping": grouping
        and {
            "by": list(grouping.by),
            "measures": [{"measure": m.measure, "field": m.field} for m in grouping.measures],
        },
    }


def query_digest(query: Query, *, scan: str) -> str:
    """Return the digest of a normal query, `sha256:` and 64 hex digits."""
    return f"sha256:{digest_of({'scan': scan, **query_json(query)}).hex()}"


def normal(query: Query, access: Access, schema: pl.Schema) -> Query:
    """Return a query in its normal form, once it is found to be allowed.

    Args:
        query: as asked.
        access: what the principal sees.
        schema: the columns that are seen.

    Raises:
        ReaderError: it is unbounded where the policy wants a bound, or names what is not there.
    """
    where = normalized(query.where)
    bounded = {each.field for each in where if each.op in _BOUNDING}
    if access.needs_one_of and not bounded.intersection(access.needs_one_of):
        raise ReaderError(
            "narrow",
            "query_unbounded",
            f"the policy wants {access.scan} bounded by one of {', '.join(access.needs_one_of)} "
            "(eq, in, starts_with, lt, le, gt, ge); found none",
        )
    shown = list(schema)
    grouping = query.grouping
    named = [*query.columns, *(each.field for each in query.order)]
    if grouping is not None:
        named += [*grouping.by, *(m.field for m in grouping.measures if m.field is not None)]
    unknown = [name for name in named if name not in shown]
    if unknown:
        raise ReaderError(
            "narrow",
            "field_unknown",
            f"found {', '.join(unknown)}; expected fields of {', '.join(shown)}",
        )
    for name in grouping.by if grouping else ():
        if schema[name].is_nested():
            raise ReaderError("narrow", "grouping_unfit", f"{name} is a list or an object")
    for each in query.order:
        if schema[each.field].is_nested():
            raise ReaderError("narrow", "order_unfit", f"{each.field} is a list or an object")
    if (query.stopping.policy == "find_up_to") != (query.stopping.n is not None):
        raise ReaderError("narrow", "stopping_unfit", "find_up_to needs n, and nothing else has it")
    if (query.stopping.policy == "aggregate") != (grouping is not None):
        raise ReaderError(
            "narrow", "stopping_unfit", "aggregate needs a grouping, and nothing else has one"
        )
    _check_measures(grouping, schema)
    return Query(
        where=where,
        columns=tuple(name for name in shown if name in query.columns),
        order=_once(query.order),
        stopping=query.stopping,
        at_least=query.at_least,
        accept=query.accept,
        grouping=grouping
        and Grouping(
            by=tuple(dict.fromkeys(grouping.by)), measures=tuple(dict.fromkeys(grouping.measures))
        ),
    )


def _once(order: tuple[Order, ...]) -> tuple[Order, ...]:
    """Return an order without a field's second place in it, which decides nothing."""
    first = dict[str, Order]()
    for each in order:
        first.setdefault(each.field, each)
    return tuple(first.values())


def _check_measures(grouping: Grouping | None, schema: pl.Schema) -> None:
    for each in grouping.measures if grouping else ():
        if (each.measure == "count") != (each.field is None):
            raise ReaderError(
                "narrow", "measure_unfit", "count has no field, every other measure has one"
            )
        if each.field is None:
            continue
        dtype = schema[each.field]
        if each.measure == "sum" and not dtype.is_numeric():
            raise ReaderError("narrow", "measure_unfit", f"{each.field} is no number to sum")
        if each.measure in ("min", "max", "distinct") and dtype.is_nested():
            raise ReaderError("narrow", "measure_unfit", f"{each.field} is a list or an object")
