"""What must hold of an order before the first page: no nulls, no ties, texts that compare alike."""

import sqlalchemy as sa

from scan_pipeline.core.errors import ContractError
from scan_pipeline.sources.database.facts import SqlSource
from scan_pipeline.sources.database.statements import Statements
from scan_pipeline.sources.database.tables import Column, Table


def check_order(
    facts: SqlSource, *, table: Table, statements: Statements, connection: sa.Connection
) -> None:
    """Check that every row has a place of its own in the order, which the next page can begin at.

    Raises:
        ContractError: it has not; says what was found and what helps.
    """
    mark = facts.high_water_mark
    bounds = [mark.field] if mark and mark.field not in facts.order else []
    for name in (*facts.order, *bounds):
        column = table.column(name)
        if column is not None:
            _check_column(facts, column)
        # A row with a null is never after another one, and never within a bound.
        if connection.scalar(statements.exists(statements.ordered(name).is_(None))):
            raise ContractError(
                f"found nulls in {name}, by which rows of {facts.name} are ordered or bounded; "
                "expected a value in every row. Order by other columns, or keep such rows out"
            )
    if any(each <= set(facts.order) for each in table.unique):
        return
    if connection.scalar(statements.ties()):
        raise ContractError(
            f"found several rows of {facts.name} with equal {', '.join(facts.order)}; expected an "
            "order in which no two rows are equal. Add a unique column at its end"
        )


def _check_column(facts: SqlSource, column: Column) -> None:
    if not column.orders:
        raise ContractError(
            f"found {column.name} of type {column.type.base or 'unknown'}; expected integers, "
            f"texts or moments to order {facts.name} by"
            + (", of one storage class in all rows" if facts.dialect == "sqlite" else "")
        )
    if column.collation is not None:
        raise ContractError(
            f"{column.name} cannot order {facts.name}: {column.collation}. Expected one order of "
            'texts, e.g. of a view that selects the column with COLLATE "C"'
        )
