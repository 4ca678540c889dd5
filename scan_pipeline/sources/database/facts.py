"""What a scan file declares of a table in PostgreSQL or SQLite."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePath
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.exc import ArgumentError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.source_facts import (
    CountFacts,
    HighWaterMarkFacts,
    SnapshotFacts,
    SourceFacts,
)
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import ContinuationKind, LeafEncoding
from scan_pipeline.sources.secrets import SecretRef

Dialect: TypeAlias = Literal["postgresql", "sqlite"]

TOTAL: Final = CountFacts(
    at=("count(*)",), means="total", exactness="exact", basis="provider_documented"
)

ONE_TRANSACTION: Final = SnapshotFacts(
    at=("transaction",), send_as="transaction", basis="provider_documented"
)
"""All pages from one transaction, which sees one state of the database from its first query on.

PostgreSQL: REPEATABLE READ, 13.2.2 of the manual. SQLite: a read transaction, sqlite.org/isolation
and /wal. Both read 2026-11-30.
"""


@record
class ColumnBound(HighWaterMarkFacts):
    """The greatest value of a column before the first page; rows above it are not asked for.

    Attributes:
        field: the column.
        url: never given.
        at: never given.
        send_as: never given.
        basis: why it is believed that rows appear in its order and never change.
    """

    url: str = ""
    at: FieldPath = ("max",)
    send_as: str = "<="
    field: str = ""

    def __post_init__(self) -> None:
        if not self.field or (self.url, self.at, self.send_as) != ("", ("max",), "<="):
            raise ContractError("a high-water mark of protocol sql needs field, and basis at most")


@record
class SqlSource(SourceFacts):
    """The facts of one table or view.

    Attributes:
        database: `postgresql://host:port/name` or `sqlite:////absolute/path`, without user and
            password.
        user: who we are, for PostgreSQL.
        password: that user's password, where the server wants one.
        table: the table or view, `schema.name` or `name`.
        columns: the columns read; empty for all.
        where: columns that must have these values.
        order: columns that together order every row in a way of its own.
        advance: `keyset` asks for rows after the last one; `offset` skips as many as were read,
            which only holds where nothing moves.
        page_size: rows of one page.
        readers: connections that read pages ahead under the same snapshot; PostgreSQL's alone.
        partition_counts: the column by whose values the rows are counted after the last page.
        count: how many rows there are, asked beside the pages; `null` does not ask.
        snapshot: all pages from one transaction; `null` reads each in a transaction of its own.
        high_water_mark: the column whose greatest value bounds the walk.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "readers", "password")
    QUERY: ClassVar[tuple[str, ...]] = ("database", "table", "columns", "where", "order")
    leaf_encoding: ClassVar[LeafEncoding] = "canonical-json/v1"
    positions_are_ours: ClassVar[bool] = True

    protocol: Literal["sql"]
    database: str
    user: str | None = None
    password: SecretRef | None = None
    table: Annotated[FieldPath, Field(min_length=1, max_length=2)]
    columns: tuple[str, ...] = ()
    where: Mapping[str, str | int | bool | None] = field(
        default_factory=dict[str, str | int | bool | None]
    )
    order: Annotated[tuple[str, ...], Field(min_length=1)]
    advance: Literal["keyset", "offset"] = "keyset"
    page_size: PositiveInt = 1_000
    readers: PositiveInt = 1
    partition_counts: str | None = None
    count: CountFacts | None = TOTAL
    snapshot: SnapshotFacts | None = ONE_TRANSACTION
    high_water_mark: ColumnBound | None = None
    continuation: ContinuationKind = "connection_bound"

    def __post_init__(self) -> None:
        if self.snapshot is None and self.continuation == "connection_bound":
            object.__setattr__(self, "continuation", "repeatable")
        for wrong in self._contradictions():
            raise ContractError(wrong)

    @property
    def dialect(self) -> Dialect:
        """Return which database it is."""
        return "sqlite" if self.database.startswith("sqlite:") else "postgresql"

    @property
    def position_fields(self) -> tuple[str, ...]:
        """Return the columns of the last row that the next page starts after."""
        return self.order if self.advance == "keyset" else ()

    @property
    def name(self) -> str:
        """Return the table's name, for messages."""
        return ".".join(self.table)

    @property
    def tool(self) -> str:
        """Return what is called."""
        return f"SELECT FROM {self.name}"

    def _contradictions(self) -> list[str]:
        """Return what is wrong, in sentences without any value that may be a secret."""
        found = _wrong_database(self.database)
        if found:
            return found
        if self.count not in (None, TOTAL):
            found.append("found a count of another kind; expected none, or null to count nothing")
        if self.snapshot not in (None, ONE_TRANSACTION):
            found.append(
                "found a snapshot of another kind; expected none, or null to read each page in a "
                "transaction of its own"
            )
        expected = "repeatable" if self.snapshot is None else "connection_bound"
        if self.continuation != expected:
            found.append(
                f"found continuation {self.continuation}; expected {expected}, since a snapshot "
                "lives as long as the transaction that holds it"
            )
        if len(set(self.order)) < len(self.order) or len(set(self.columns)) < len(self.columns):
            found.append("found a column twice in order or columns; expected each once")
        if self.dialect == "sqlite" and (self.user, self.password) != (None, None):
            found.append("found user or password beside SQLite; expected neither")
        alone = self.dialect == "sqlite" or self.advance != "keyset" or self.snapshot is None
        if self.readers > 1 and (alone or self.high_water_mark is not None):
            found.append(
                "found several readers; expected one, or PostgreSQL with advance: keyset, its "
                "snapshot, which readers can share, and no high_water_mark"
            )
        return found


def _wrong_database(address: str) -> list[str]:
    expected = "expected postgresql://host:port/name or sqlite:////absolute/path"
    try:
        url = sa.make_url(address)
    except (ArgumentError, ValueError):
        return [f"found a database that is no address; {expected}"]
    if url.username or url.password or {"user", "password", "passfile"} & url.query.keys():
        told = "found a user or password in the address of the database, which receipts would show"
        return [f"{told}; expected user: NAME and password: {{env: NAME}} beside it"]
    if url.drivername == "postgresql" and url.database:
        return []
    if url.drivername == "sqlite" and not url.query and not url.host:
        if PurePath(url.database or "").is_absolute():
            return []
        return [f"found a SQLite file by a relative path or in memory; {expected}"]
    return [f"found a database of driver {url.drivername!r}; {expected}"]
