"""The `sql` protocol: the rows of a table or view in PostgreSQL or SQLite, page by page.

A page is the rows after the last one, in an order in which every row has a place of its own
(PostgreSQL manual, 7.6 LIMIT and OFFSET and 9.24.5 row-wise comparison; sqlite.org/rowvalue; read
2026-11-30), and an empty page ends the walk. What that proves depends on what holds the rows still:

- `snapshot`: all pages, the count and the counts by partition come from one transaction. In
  PostgreSQL it exports its snapshot, whose name is the pin and which more readers share (manual,
  9.27.5 Snapshot Synchronization Functions and SET TRANSACTION, read 2026-11-30). A snapshot lives
  as long as the transaction: a walk that broke off begins again.
- `snapshot: null`: each page has a transaction of its own. Rows may move behind the position, so
  that such a walk is `live`, or bounded by a `high_water_mark` where rows are only ever added.

Rows travel as canonical JSON, one a line; `sql_types` holds the table of types.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeVar

import sqlalchemy as sa
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from scan_pipeline.core.canonical import leaf_hashes
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContractError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    TransientSourceError,
)
from scan_pipeline.core.page import (
    Continuation,
    End,
    Next,
    Opening,
    Page,
    Position,
    Refusal,
    Reported,
)
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.sources.database.ahead import ReadAhead, Rows
from scan_pipeline.sources.database.checks import check_order
from scan_pipeline.sources.database.facts import SqlSource
from scan_pipeline.sources.database.session import Session
from scan_pipeline.sources.database.statements import Statements
from scan_pipeline.sources.database.tables import described
from scan_pipeline.sources.database.types import json_value, mark_text
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

T = TypeVar("T")

REVISION = "sql/1"


@record
class _Walkable:
    """A table whose order was checked.

    Attributes:
        statements: its queries.
        total: number of rows under the snapshot; None without one.
        ahead: reads pages ahead, None where one connection reads alone.
    """

    statements: Statements
    total: int | None
    ahead: ReadAhead | None


class Sql(Source):
    """Walks a `SqlSource`; a token is the last row's order columns as JSON, or an offset."""

    def __init__(self, facts: SqlSource, surroundings: Surroundings) -> None:
        self._facts = facts
        self.adapter = AdapterRevision(name="sql", revision=REVISION)
        self._clock, self._sleep = surroundings.clock, surroundings.sleep
        self._retries = surroundings.retries
        self._session = Session(
            facts,
            environ=surroundings.environ,
            clock=surroundings.clock,
            timeout=surroundings.retries.timeout,
        )
        self._checked: _Walkable | None = None

    @property
    def facts(self) -> SqlSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return 0: a database asks for no waits."""
        return 0.0

    def opening(self) -> Opening:
        """Check the order, begin the transaction, and return who we are and the bound.

        Raises:
            ContractError: the table or its order is not what a walk needs.
        """
        try:
            return self._tried(self._opening, self._aside)[0]
        except ProtocolError as error:
            raise ContractError(f"{self._facts.name}: {error}. Check the scan file") from error

    def closing(self, position: Position) -> Opening:
        """Return who we are, and the counts by partition under the same snapshot."""
        return self._tried(lambda: self._closing(position), self._aside)[0]

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return the rows after the position; see `Source.fetch`."""

        def tell(reason: str) -> None:
            nothing = sha256().digest()
            refused(
                Refusal(
                    position=position,
                    status=None,
                    reason=reason,
                    body_digest=nothing,
                    at=self._clock(),
                )
            )

        (page, requested_at), attempts = self._tried(lambda: self._read(position), tell)
        rows, reported, statements = page
        records = statements.records(rows)
        return Page(
            position=position,
            fingerprint=statements.fingerprint(position),
            continuation=self._follows(rows, position, statements),
            body=b"\n".join(records),
            records=len(records),
            leaf_hashes=leaf_hashes(records),
            reported=reported,
            attempts=attempts,
            requested_at=requested_at,
            received_at=self._clock(),
        )

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return body.split(b"\n") if body else []

    def close(self) -> None:
        """End the transaction and close the connections."""
        if self._checked is not None and self._checked.ahead is not None:
            self._checked.ahead.close()
        self._session.close()

    def _opening(self) -> Opening:
        statements, mark = self._walkable().statements, self._facts.high_water_mark
        with self._session.reading() as connection:
            greatest = None if mark is None else connection.scalar(statements.greatest(mark.field))
            bound = json_value(greatest, self._facts.dialect)
            return Opening(
                principal=self._principal(connection),
                high_water_mark=None if bound is None else mark_text(bound),
            )

    def _closing(self, position: Position) -> Opening:
        statements, by = self._walkable().statements, self._facts.partition_counts
        with self._session.reading() as connection:
            counts = None
            if by is not None:
                query = statements.by_partition(by, position.high_water_mark)
                counts = {
                    str(json_value(row[0], self._facts.dialect)): row[1]
                    for row in connection.execute(query)
                }
            return Opening(principal=self._principal(connection), partition_counts=counts)

    def _read(self, position: Position) -> tuple[tuple[Rows, Reported, Statements], datetime]:
        walkable, pin = self._walkable(), self._session.pin
        if position.pin not in (None, pin):
            raise SnapshotExpiredError(
                f"snapshot {position.pin} ended with the transaction that exported it; a new "
                "generation must begin"
            )
        requested_at, total = self._clock(), walkable.total
        rows = None if walkable.ahead is None else walkable.ahead.take(position)
        if rows is None:
            with self._session.reading() as connection:
                rows = connection.execute(walkable.statements.page(position)).all()
                if total is None and self._facts.count is not None:
                    total = connection.scalar(walkable.statements.total(position.high_water_mark))
        return (rows, Reported(total=total, pin=pin), walkable.statements), requested_at

    def _follows(self, rows: Rows, position: Position, statements: Statements) -> Continuation:
        if not rows:
            return End(signal="empty_page")
        if self._facts.advance == "offset":
            return Next(token=str(int(position.token or 0) + len(rows)))
        return Next(token=statements.token_after(rows[-1]))

    def _walkable(self) -> _Walkable:
        """Return the table with its order checked, once for each connection to it."""
        if self._checked is None:
            facts = self._facts
            with self._session.reading() as connection:
                table = described(facts, connection)
                statements = Statements(facts, table)
                check_order(facts, table=table, statements=statements, connection=connection)
                total = ends = None
                if self._session.pin is not None and facts.high_water_mark is None:
                    total = facts.count and connection.scalar(statements.total(None))
                if facts.readers > 1:
                    ends = connection.execute(statements.page_ends(Position())).all()
            ahead = None if ends is None else self._read_ahead(statements, ends)
            self._checked = _Walkable(statements=statements, total=total, ahead=ahead)
        return self._checked

    def _read_ahead(self, statements: Statements, ends: Rows) -> ReadAhead:
        tokens = (None, *(statements.token(each) for each in ends))
        return ReadAhead(
            [Position(token=token) for token in tokens],
            readers=self._facts.readers,
            connect=self._session.beside,
            query=statements.page,
        )

    def _principal(self, connection: sa.Connection) -> str | None:
        if self._facts.dialect == "sqlite":
            return None
        return connection.scalar(sa.text("SELECT current_user"))

    def _aside(self, reason: str) -> None:
        self.refused_aside(None, reason, sha256().digest(), self._clock())

    def _tried(self, does: Callable[[], T], tell: Callable[[str], None]) -> tuple[T, int]:
        """Do something until it is answered; return what came of it, and after how many tries."""
        attempts = 0

        def once() -> T:
            nonlocal attempts
            attempts += 1
            try:
                return does()
            except (TransientSourceError, ProtocolError) as error:
                tell(error.code if isinstance(error, ProtocolError) else error.reason)
                raise
            except SnapshotExpiredError:
                tell("expired")
                raise
            except AccessRefusedError:
                tell("access_refused")
                raise

        retrying = Retrying(
            sleep=self._sleep,
            stop=stop_after_attempt(self._retries.attempts),
            wait=wait_random_exponential(multiplier=0.2, max=self._retries.max_wait),
            retry=retry_if_exception_type(TransientSourceError),
            reraise=True,
        )
        try:
            return retrying(once), attempts
        except TransientSourceError as error:
            raise SourceUnavailableError(f"{error}; gave up after {attempts} tries") from error


PROTOCOL: Final = Protocol(facts=SqlSource, open=Sql)
