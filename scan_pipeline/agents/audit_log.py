"""Who asked what, kept apart from the lake: one line a call, no values, no names of handles.

Handles stand there by keyed digests, so that the log cannot be used to read with; and so do
queries, whose few possible values could be guessed from a plain digest.
"""

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from scan_pipeline.core.value import record


@record
class Entry:
    """One call.

    Attributes:
        at: when, UTC.
        principal: who.
        tenant: of which tenant.
        operation: the tool.
        scan: of which scan.
        generation: on which generation.
        query: the query digest, keyed.
        handle: the handle, keyed.
        page: number of the page that was given.
        matching: rows that match.
        returned: rows given.
        bytes: bytes given.
        action: the action that a step is about.
        proposal: the proposal, keyed.
        state: `answered`, or the code of the failure; `taken` for a step of a proposal.
        detail: of a failure, what its reader was not told; no values of records.
    """

    at: datetime
    principal: str
    tenant: str | None
    operation: str
    scan: str | None = None
    generation: str | None = None
    query: str | None = None
    handle: str | None = None
    page: int | None = None
    matching: int | None = None
    returned: int | None = None
    bytes: int | None = None
    action: str | None = None
    proposal: str | None = None
    state: str = "answered"
    detail: str | None = None


class AuditLog:
    """A file of JSON lines, 0600, appended to by one write a line.

    Args:
        path: the file.
        keyed: makes a keyed digest of a text that belongs to a scan.
    """

    def __init__(self, path: Path, *, keyed: Callable[[str, str], str]) -> None:
        self._path, self._keyed = path, keyed

    def write(self, entry: Entry) -> None:
        """Append one entry.

        Raises:
            OSError: it cannot be written; a call that leaves no trace is not answered.
        """
        facts = {name: value for name, value in entry.__dict__.items() if value is not None}
        facts["at"] = entry.at.isoformat(timespec="milliseconds")
        for name in ("query", "handle", "proposal"):
            if name in facts:
                facts[name] = self._keyed(str(entry.scan), facts[name])
        line = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(f"the log {self._path} took a part of a line; is the disk full?")
        finally:
            os.close(descriptor)
