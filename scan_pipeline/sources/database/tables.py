"""What a database says of a table: its columns, their types, and what is unique in it."""

from typing import Any, Final

import sqlalchemy as sa

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.database.facts import SqlSource
from scan_pipeline.sources.database.types import ORDERED, ColumnType

OLDEST: Final = 120_000
"""PostgreSQL 12: the first whose floats are exact texts and that tells deterministic collations."""

# A type by its own name, not as format_type writes it: `character` would cast to one character.
_COLUMNS: Final = sa.text(
    """
    SELECT a.attname,
           (SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace n
            WHERE n.oid = t.typnamespace) || '.' || pg_catalog.quote_ident(t.typname) AS declared,
           coalesce(b.typname, t.typname) AS base, coalesce(b.typtype, t.typtype) = 'e' AS listed,
           c.collname, c.collisdeterministic, c.collprovider, c.collversion,
           pg_catalog.pg_collation_actual_version(c.oid) AS actual
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = pg_catalog.to_regclass(:name) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
    """
)

# The index of a table that others inherit from says nothing of their rows.
_UNIQUE: Final = sa.text(
    """
    SELECT (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = i.indrelid
              AND a.attnum = ANY ((i.indkey::int2[])[0 : i.indnkeyatts - 1])) AS columns
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    WHERE i.indrelid = pg_catalog.to_regclass(:name) AND i.indisunique AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL
      AND (t.relkind = 'p' OR NOT t.relhassubclass)
    """
)

_DEFAULT_COLLATION: Final = sa.text(
    """
    SELECT datcollversion, pg_catalog.pg_database_collation_actual_version(oid)
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
    """
)

_SQLITE_COLUMNS: Final = sa.text(
    "SELECT name, type, pk FROM pragma_table_xinfo(:name, :schema) WHERE hidden <> 1 ORDER BY cid"
)

_SQLITE_UNIQUE: Final = sa.text(
    """
    SELECT l.name, x.name FROM pragma_index_list(:name, :schema) l
    JOIN pragma_index_xinfo(l.name, :schema) x
    WHERE l."unique" = 1 AND l.partial = 0 AND x.key = 1
    """
)


@record
class Column:
    """One column.

    Attributes:
        name: its name.
        type: its type.
        orders: whether values of its type have one order and go back exactly.
        collation: what is wrong with its order of texts, None where nothing is.
    """

    name: str
    type: ColumnType
    orders: bool = True
    collation: str | None = None


@record
class Table:
    """A table or view as the database describes it.

    Attributes:
        columns: its columns, in its own order.
        unique: sets of columns that no two rows share, by an index without conditions.
    """

    columns: tuple[Column, ...]
    unique: tuple[frozenset[str], ...]

    def column(self, name: str) -> Column | None:
        """Return a column by its name, None where there is none."""
        return next((each for each in self.columns if each.name == name), None)


def described(facts: SqlSource, connection: sa.Connection) -> Table:
    """Ask a database for its description of a table.

    Raises:
        ContractError: there is no such table for us, or the database is too old.
    """
    ask = _of_sqlite if facts.dialect == "sqlite" else _of_postgresql
    table = ask(facts, connection)
    if not table.columns:
        raise ContractError(
            f"found no table {facts.name} with columns that we may see; expected one. Write the "
            "schema before its name, or ask for the right to read it"
        )
    return table


def _of_postgresql(facts: SqlSource, connection: sa.Connection) -> Table:
    version = int(connection.scalar(sa.text("SHOW server_version_num")))
    if version < OLDEST:
        raise ContractError(f"found PostgreSQL {version // 10_000}; expected 12 or newer")
    name = {"name": ".".join('"' + each.replace('"', '""') + '"' for each in facts.table)}
    moved = version >= 150_000 and _differ(*connection.execute(_DEFAULT_COLLATION).one())
    columns = tuple(
        Column(
            name=row.attname,
            type=ColumnType(base=row.base, cast=row.declared),
            orders=row.listed or row.base in ORDERED,
            collation=_wrong_collation(row, default_moved=moved),
        )
        for row in connection.execute(_COLUMNS, name)
    )
    unique = (frozenset(row.columns or ()) for row in connection.execute(_UNIQUE, name))
    return Table(columns=columns, unique=tuple(each for each in unique if each))


def _wrong_collation(row: Any, *, default_moved: bool) -> str | None:
    """Say why an index of texts may not be in the order in which texts compare now.

    PostgreSQL manual, ALTER COLLATION, Notes: after the library's version moved, indexes are to be
    rebuilt (read 2026-11-30).
    """
    if row.collname is None:
        return None
    if not row.collisdeterministic:
        return f"its collation {row.collname} holds different texts for equal"
    is_default = row.collprovider == "d"
    if default_moved if is_default else _differ(row.collversion, row.actual):
        return (
            f"its collation {row.collname} was of another version when indexes were built; rebuild "
            "them and refresh the version"
        )
    return None


def _differ(recorded: str | None, actual: str | None) -> bool:
    return recorded is not None and actual is not None and recorded != actual


def _of_sqlite(facts: SqlSource, connection: sa.Connection) -> Table:
    *schema, name = facts.table
    asked = {"name": name, "schema": schema[0] if schema else "main"}
    rows = connection.execute(_SQLITE_COLUMNS, asked).all()
    mark = facts.high_water_mark
    ordering = {*facts.order, *([mark.field] if mark else [])}
    stored = {
        row.name: _stored(facts, row.name, connection) for row in rows if row.name in ordering
    }
    columns = tuple(
        Column(
            name=row.name,
            type=ColumnType(base="/".join(stored.get(row.name, ()))),
            orders=stored.get(row.name, []) in ([], ["integer"], ["text"]),
        )
        for row in rows
    )
    keys: dict[str, list[str | None]] = {}
    for index, column in connection.execute(_SQLITE_UNIQUE, asked):
        keys.setdefault(index, []).append(column)
    # An index over an expression has a column without a name, and speaks of no column alone.
    unique = [frozenset(filter(None, each)) for each in keys.values() if None not in each]
    primary = [row for row in rows if row.pk]
    if len(primary) == 1 and str(primary[0].type).upper() == "INTEGER":
        unique.append(frozenset({primary[0].name}))  # the rowid itself, which has no index
    return Table(columns=columns, unique=tuple(unique))


def _stored(facts: SqlSource, name: str, connection: sa.Connection) -> list[str]:
    """Return the storage classes of a column's values: SQLite does not keep to one."""
    *schema, table = facts.table
    values = sa.table(table, column := sa.column(name), schema=schema[0] if schema else None)
    query = sa.select(sa.func.typeof(column)).select_from(values).distinct()
    return sorted({each for (each,) in connection.execute(query)} - {"null"})
