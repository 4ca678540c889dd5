"""What errors of a database mean for a walk.

PostgreSQL manual, appendix A, error codes; sqlite.org/rescode; both read 2026-11-30.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    TransientSourceError,
)

REFUSED: Final = ("28", "42501")
"""Invalid authorization, insufficient privilege."""

REJECTED: Final = ("0A", "22", "42", "3D", "3F", "54")
"""Not supported, data exception, wrong query, no such database or schema, too complex."""


@contextmanager
def told(*, pinned: bool) -> Iterator[None]:
    """Raise an error of the database as what it means; see `understood`."""
    try:
        yield
    except DBAPIError as error:
        raise understood(error, pinned=pinned) from error
    except UnicodeDecodeError as error:
        raise ProtocolError(
            "body_unparsable", "the database sent a text that is not UTF-8; expected UTF-8"
        ) from error


def understood(error: DBAPIError, *, pinned: bool) -> ScanPipelineError:
    """Say what an error comes to; values of the query are never told.

    Args:
        error: as the driver raised it.
        pinned: whether it struck the walk's own transaction, which no error leaves of use.
    """
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorname", "")
        told = f"SQLite refused: {code or type(cause).__name__}"
        if code.startswith(("SQLITE_AUTH", "SQLITE_PERM")):
            return AccessRefusedError(f"{told}; expected rights to read the file")
        rejected = code == "SQLITE_ERROR" or code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT"))
    else:
        code = getattr(cause, "sqlstate", None) or ""
        told = f"PostgreSQL refused: {type(cause).__name__} {code or 'without an answer'}"
        if code.startswith(REFUSED) or "authentication failed" in str(cause):
            return AccessRefusedError(
                f"{told}; expected rights to read. Check user and password, and ask for SELECT"
            )
        rejected = code.startswith(REJECTED)
    if rejected:
        return ProtocolError("request_rejected", f"{told}; expected rows")
    if pinned:
        return SnapshotExpiredError(
            f"{told}; the transaction that held the snapshot is gone, and a new generation must "
            "begin"
        )
    return TransientSourceError("connection_lost", told)
