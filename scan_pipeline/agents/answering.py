"""One call answered: who asks, the work, a line in the log, and failures in their shape."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from mcp_types import CallToolResult, TextContent

from scan_pipeline.agents.audit_log import AuditLog, Entry, with_answer
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.failures import ReaderError, failure_of
from scan_pipeline.core.value import adapter
from scan_pipeline.stages.telemetry.setup import tell_blocked

Caller: TypeAlias = Callable[[], str]
"""Returns the principal of the call that is being answered."""


class Answering:
    """Answers calls.

    Whatever goes wrong comes out as a typed failure: the text of an error that was not meant for a
    reader may hold values, paths or columns that are hidden. And a call that cannot be logged is
    not answered.

    Args:
        desk: what every operation needs.
        caller: who asks, by the connection.
        log: where each call leaves a line.
    """

    def __init__(self, desk: Desk, *, caller: Caller, log: AuditLog) -> None:
        self._desk, self._caller, self._log = desk, caller, log

    def __call__(
        self,
        operation: str,
        work: Callable[[str], Any],
        *,
        scan: str | None = None,
        handle: str | None = None,
        cursor: str | None = None,
    ) -> CallToolResult:
        """Do the work of a call and say what came of it.

        Args:
            operation: the tool's name.
            work: answers a principal.
            scan: of which scan, where the call names it.
            handle: the handle it names.
            cursor: the cursor it names.
        """
        entry = self._entry(operation, scan)
        try:
            principal = self._caller()
            one = self._desk.policy().principals.get(principal)
            entry = replace(entry, principal=principal, tenant=one.tenant if one else None)
            entry = self._with_handle(entry, handle=handle, cursor=cursor)
            answer = work(principal)
            content = adapter(type(answer)).dump_python(answer, mode="json")
            text = adapter(type(answer)).dump_json(answer).decode()
        except Exception as error:  # noqa: BLE001  # whatever it is, its text is not for readers
            return self._failed(entry, failure_of(error))
        told = CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=content
        )
        return self._logged(with_answer(entry, answer, size=len(text.encode())), told)

    def refused(self, operation: str, error: ReaderError) -> CallToolResult:
        """Answer a call whose arguments are none of the tool's, or that the SDK gave up on."""
        entry = self._entry(operation, None)
        try:
            entry = replace(entry, principal=self._caller())
        except Exception as unknown:  # noqa: BLE001  # who is not known is told nothing else
            return self._failed(entry, failure_of(unknown))
        return self._failed(entry, error)

    def _entry(self, operation: str, scan: str | None) -> Entry:
        return Entry(
            at=self._desk.workspace.clock(),
            principal="",
            tenant=None,
            operation=operation,
            scan=scan,
        )

    def _with_handle(self, entry: Entry, *, handle: str | None, cursor: str | None) -> Entry:
        """Return an entry with the handle a call names, whoever's it is, where there is one."""
        ledger = self._desk.ledger
        if cursor is not None:
            place = ledger.cursor(cursor)
            handle = None if place is None else place.handle
        held = None if handle is None else ledger.handle(handle)
        if held is None:
            return entry
        return replace(entry, scan=held.scan, generation=held.generation, handle=held.name)

    def _failed(self, entry: Entry, error: ReaderError) -> CallToolResult:
        environ = self._desk.workspace.environ
        tell_blocked(environ, error, scan=entry.scan, why=error.code)
        return self._logged(replace(entry, state=error.code, detail=error.detail), _failure(error))

    def _logged(self, entry: Entry, told: CallToolResult) -> CallToolResult:
        try:
            self._log.write(entry)
        except Exception:  # noqa: BLE001  # disk, key or folder: without a trace there is no answer
            return _failure(
                ReaderError("stop", "not_logged", "the call cannot be logged and is not answered")
            )
        return told


def _failure(error: ReaderError) -> CallToolResult:
    failure = {"remedy": error.remedy, "code": error.code, "message": str(error)}
    said = f"{error.remedy}: {error} ({error.code})"
    return CallToolResult(
        content=[TextContent(type="text", text=said)],
        structured_content={"failure": failure},
        is_error=True,
    )
