"""The queries of one walk: all but the position is frozen from the first page to the last."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scan_pipeline.core.canonical import canonical_json, digest_of, parse_exact
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.page import Position
from scan_pipeline.sources.database.facts import SqlSource
from scan_pipeline.sources.database.tables import Column, Table
from scan_pipeline.sources.database.types import bound, json_value, mark_value


class Statements:
    """Makes the queries of a table.

    Attributes:
        columns: names of the columns read, in order.

    Args:
        facts: what is declared of the table.
        table: what the database says of it.

    Raises:
        ContractError: a column that the facts name is not there.
    """

    def __init__(self, facts: SqlSource, table: Table) -> None:
        self._facts, self._table = facts, table
        self.columns = facts.columns or tuple(each.name for each in table.columns)
        mark, counted = facts.high_water_mark, facts.partition_counts
        named = [*self.columns, *facts.where, *facts.order, *([counted] if counted else [])]
        known = {each.name: each for each in table.columns}
        missing = sorted({*named, *([mark.field] if mark else [])} - known.keys())
        if missing:
            raise ContractError(
                f"{facts.name} has no column {', '.join(missing)}; expected columns of "
                f"{', '.join(known)}"
            )
        self._known: Mapping[str, Column] = known
        # Order columns that are not read are asked for all the same: the position needs them.
        self._asked = tuple(dict.fromkeys((*self.columns, *facts.order)))
        self._places = tuple(self._asked.index(name) for name in facts.order)
        self._from = sa.table(
            facts.table[-1],
            *(sa.column(name) for name in known),
            schema=facts.table[0] if len(facts.table) == 2 else None,
        )
        self._order = tuple(self.ordered(name) for name in facts.order)

    def page(self, position: Position) -> sa.Executable:
        """Return the query of a page."""
        query = (
            sa.select(*(self._from.c[name] for name in self._asked))
            .where(*self._within(position.high_water_mark))
            .order_by(*self._order)
            .limit(self._facts.page_size)
        )
        if position.token is None:
            return query
        if self._facts.advance == "offset":
            return query.offset(int(position.token))
        last: Any = parse_exact(position.token.encode())
        after = [
            bound(value, self._known[name].type)
            for name, value in zip(self._facts.order, last, strict=True)
        ]
        if len(after) == 1:
            return query.where(self._order[0] > after[0])
        return query.where(sa.tuple_(*self._order) > sa.tuple_(*after))

    def page_ends(self, position: Position) -> sa.Executable:
        """Return the query of the last row of each full page, in order: its order columns."""
        names = self._facts.order
        numbered = (
            sa.select(
                *(self._from.c[name] for name in names),
                sa.func.row_number().over(order_by=self._order).label("row_number_"),
            )
            .where(*self._within(position.high_water_mark))
            .subquery()
        )
        number = numbered.c["row_number_"]
        full = number % self._facts.page_size == 0
        return sa.select(*(numbered.c[name] for name in names)).where(full).order_by(number)

    def total(self, high_water_mark: str | None) -> sa.Executable:
        """Return the query of the number of rows."""
        counted = sa.select(sa.func.count()).select_from(self._from)
        return counted.where(*self._within(high_water_mark))

    def by_partition(self, name: str, high_water_mark: str | None) -> sa.Executable:
        """Return the query of the number of rows by the values of a column."""
        column = self._from.c[name]
        within = self._within(high_water_mark)
        return sa.select(column, sa.func.count()).where(*within).group_by(column)

    def greatest(self, name: str) -> sa.Executable:
        """Return the query of a column's greatest value."""
        return sa.select(sa.func.max(self.ordered(name))).where(*self._within(None))

    def exists(self, *conditions: sa.ColumnElement[bool]) -> sa.Executable:
        """Return the query whether a row of the walk meets conditions."""
        inner = sa.select(sa.literal_column("1")).select_from(self._from)
        return sa.select(inner.where(*self._within(None), *conditions).exists())

    def ties(self) -> sa.Executable:
        """Return the query whether two rows of the walk have the same place in the order."""
        inner = (
            sa.select(sa.literal_column("1"))
            .select_from(self._from)
            .where(*self._within(None))
            .group_by(*self._order)
            .having(sa.func.count() > 1)
        )
        return sa.select(inner.exists())

    def ordered(self, name: str) -> sa.ColumnElement[Any]:
        """Return a column as it orders.

        In SQLite texts order by their bytes, whatever the column's own collation: NOCASE and
        RTRIM hold different texts for equal (sqlite.org/datatype3, section 7, read 2026-11-30).
        """
        column = self._from.c[name]
        return sa.collate(column, "BINARY") if self._facts.dialect == "sqlite" else column

    def token_after(self, row: Sequence[Any]) -> str:
        """Return the token of the rows after one of a page."""
        return self.token([row[place] for place in self._places])

    def token(self, values: Sequence[Any]) -> str:
        """Return the values of the order columns as a token."""
        dialect = self._facts.dialect
        return canonical_json([json_value(each, dialect) for each in values]).decode()

    def records(self, rows: Sequence[Sequence[Any]]) -> list[bytes]:
        """Return the records of a page's rows."""
        dialect, width = self._facts.dialect, len(self.columns)
        return [
            canonical_json(
                {
                    name: json_value(value, dialect)
                    for name, value in zip(self.columns, row[:width], strict=True)
                }
            )
            for row in rows
        ]

    def fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every request: all but position, pin and page size."""
        facts = self._facts
        return digest_of(
            {
                "database": facts.database,
                "user": facts.user,
                "table": list(facts.table),
                "columns": list(self.columns),
                "where": dict(facts.where),
                "order": list(facts.order),
                "advance": facts.advance,
                "high_water_mark": position.high_water_mark,
            }
        )

    def _within(self, high_water_mark: str | None) -> list[sa.ColumnElement[bool]]:
        """Return the conditions that hold for every row of the walk."""
        conditions: list[sa.ColumnElement[bool]] = []
        for name, value in self._facts.where.items():
            column = self._from.c[name]
            typed = None if value is None else bound(value, self._known[name].type)
            conditions.append(column.is_(None) if typed is None else column == typed)
        mark = self._facts.high_water_mark
        if mark is not None and high_water_mark is not None:
            kind = self._known[mark.field].type
            limit = bound(mark_value(high_water_mark, kind), kind)
            conditions.append(self.ordered(mark.field) <= limit)
        return conditions
