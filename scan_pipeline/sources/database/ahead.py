"""Pages read ahead: disjoint ranges of keys, in parallel, under one snapshot, handed out in order.

Under a snapshot the last key of each page is known beforehand, and so is each page's own range. The
chain of pages stays one sequence: what was read ahead is what the walk would have asked for itself.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeAlias

import psycopg
import sqlalchemy as sa

from scan_pipeline.core.page import Position
from scan_pipeline.sources.database.errors import told

AHEAD: Final = 2
"""Pages of each reader that may wait to be handed out; more cost memory and gain nothing."""

Rows: TypeAlias = Sequence[Sequence[Any]]


class ReadAhead:
    """Reads the pages of a walk before they are asked for.

    Args:
        positions: the position of every page, in order.
        readers: how many connections read at once.
        connect: opens a connection that sees the walk's snapshot.
        query: makes the query of a page.
    """

    def __init__(
        self,
        positions: Sequence[Position],
        *,
        readers: int,
        connect: Callable[[], sa.Connection],
        query: Callable[[Position], sa.Executable],
    ) -> None:
        self._positions, self._window = positions, readers * AHEAD
        self._places = {each.token: place for place, each in enumerate(positions)}
        self._connect, self._query = connect, query
        self._pages: dict[int, Future[Rows]] = {}
        self._begun = 0
        self._own, self._opened = threading.local(), list[sa.Connection]()
        self._pool = ThreadPoolExecutor(max_workers=readers, thread_name_prefix="sql reader")

    def take(self, position: Position) -> Rows | None:
        """Return the rows of a page and let the next ones be read; None where it was not read.

        Raises:
            SnapshotExpiredError, AccessRefusedError, ProtocolError: reading it failed.
        """
        place = self._places.get(position.token)
        if place is None or (place < self._begun and place not in self._pages):
            return None
        end = min(place + 1 + self._window, len(self._positions))
        for number in range(self._begun, end):
            self._pages[number] = self._pool.submit(self._read, self._positions[number])
        self._begun = max(self._begun, end)
        return self._pages.pop(place).result()

    def close(self) -> None:
        """Let go of what was read ahead, and of the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for connection in self._opened:
            _cancel(connection)
        self._pool.shutdown(wait=True)
        for connection in self._opened:
            connection.invalidate()
            connection.close()

    def _read(self, position: Position) -> Rows:
        connection: sa.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect()
            self._opened.append(connection)
        with told(pinned=True):
            return connection.execute(self._query(position)).all()


def _cancel(connection: sa.Connection) -> None:
    """End a query that still runs; a connection that is gone runs none."""
    driver = None if connection.invalidated else connection.connection.driver_connection
    if isinstance(driver, psycopg.Connection):
        with suppress(psycopg.Error):
            driver.cancel()
