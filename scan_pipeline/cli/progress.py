"""How far a walk has come, on stderr: a live line for a terminal, plain lines for a log."""

import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.cli.output import console, say

if TYPE_CHECKING:
    from rich.status import Status

EVERY_S: Final = 2.0
"""Time between two plain lines, in seconds."""


class WalkProgress:
    """Shows the running figures of a walk for the length of a `with` block.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._last: str | None = None
        self._said_at: float | None = None
        self._status: Status | None = None

    def __enter__(self) -> "WalkProgress":
        if sys.stderr.isatty():
            self._status = console(sys.stderr).status("asking for the first page")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if self._last is not None:
            say(self._last)

    def __call__(self, facts: Mapping[str, Any]) -> None:
        """Take the running figures after a page."""
        now = self._clock()
        if self._began is None:
            self._began = (now, facts["records"])
        line = self._line(facts, now)
        if self._status is not None:
            self._last = line
            self._status.update(line)
        elif self._said_at is None or now - self._said_at >= EVERY_S:
            self._said_at, self._last = now, None
            say(line)
        else:
            self._last = line

    def _line(self, facts: Mapping[str, Any], now: float) -> str:
        pages, records, total = facts["pages"], facts["records"], facts["total"]
        line = f"{pages:,} {'page' if pages == 1 else 'pages'}, {records:,} records"
        if total:
            line += f", {records / total:.0%} of {total:,}"
        began, before = self._began or (now, records)
        if now > began:
            line += f", {(records - before) / (now - began):,.0f} records/s"
        return line
