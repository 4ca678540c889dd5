"""Who asked what, kept apart from the lake: one line a call, no values, no names of handles.

Handles stand there by keyed digests, so that the log cannot be used to read with; and so do
queries, whose few possible values could be guessed from a plain digest.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from scan_pipeline.core.value import record
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import data_key, keyed_digest


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


def audit_log(workspace: Workspace) -> AuditLog:
    """Return the project's log of readers' calls."""
    return AuditLog(workspace.project.agents / "audit.jsonl", keyed=keyed_in(workspace))


def keyed_in(workspace: Workspace) -> Callable[[str, str], str]:
    """Return what makes a keyed digest of a text that belongs to a scan."""

    def keyed(scan: str, text: str) -> str:
        key = data_key(workspace.project, scan=scan, now=workspace.clock(), create="never")
        return keyed_digest(text, key=key)

    return keyed


def with_answer(entry: Entry, answer: Any, *, size: int) -> Entry:
    """Return an entry with what an answer tells of itself: counts, never values.

    Args:
        entry: who asked for what.
        answer: what was answered.
        size: its bytes.
    """
    ground = getattr(answer, "ground", None)
    summary = getattr(answer, "summary", None)
    page = getattr(answer, "page", None)
    return replace(
        entry,
        scan=ground.scan if ground else entry.scan,
        generation=ground.scan_generation if ground else entry.generation,
        query=str(getattr(answer, "query", "")) or None,
        handle=getattr(answer, "result_handle", entry.handle),
        page=page.number if page else None,
        matching=summary.matching_count if summary else None,
        returned=summary.returned_count if summary else None,
        bytes=size,
    )
