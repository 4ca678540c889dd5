"""SIGINT and SIGTERM as a wish to end: no further request, and a receipt all the same."""

import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final

from scan_pipeline.core.errors import CancelledError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Cancellation:
    """Notices a signal for the length of a `with` block; the second one ends the process at once.

    A handler that raised could strike in the middle of a commit; this one only wakes whoever
    sleeps. A request that is under way is answered first.

    Args:
        told: is given the words for whoever sent the signal.
    """

    def __init__(self, *, told: Callable[[str], None]) -> None:
        self._told = told
        self._asked = self._answered = False
        self._before: dict[signal.Signals, Any] = {}
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def __enter__(self) -> "Cancellation":
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._ask) for each in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()
        os.close(self._wakes)
        os.close(self._wake)

    def check(self) -> None:
        """Let a walk go on, or raise CancelledError where someone asked it to end."""
        if not self._asked:
            return
        if not self._answered:
            self._answered = True
            self._told("asked to end: no further request is sent, what was read is certified")
        raise CancelledError("someone asked the walk to end; nothing further was asked for")

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds; raises CancelledError as soon as someone asks to end."""
        select.select([self._wakes], [], [], max(0.0, seconds))
        self.check()

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        self._restore()  # asked again, the process ends as it would without us
        os.write(self._wake, b"!")

    def _restore(self) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._before = {}
