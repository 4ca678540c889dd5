"""How long one walk may still ask: what is left of its `limits.seconds`, and each answer's bound.

Waits that the source itself asks for do not use the limit up: they are its word, not our slowness.
One of them alone must still be no longer than the whole limit. A longer one fails at once and is
never shortened, since asking before its time would only be refused again. Waits that we choose
before a retry are ours and count, so that one which would outlast what is left fails as well.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from scan_pipeline.core.errors import TimeLimitError

USED_UP: Final = 0.02
"""What is left of a limit when nothing is, in seconds: two readings of a clock differ."""


class Deadline:
    """A moment by which one answer must be whole."""

    def __init__(self, seconds: float, *, clock: Callable[[], datetime]) -> None:
        self._seconds, self._clock, self._since = seconds, clock, clock()

    @property
    def left(self) -> float:
        """Return the seconds until then; negative once it has passed."""
        return self._seconds - (self._clock() - self._since).total_seconds()


class Allowance:
    """What the requests of one walk may still use; one for all that it asks, side questions too.

    Attributes:
        waited: seconds spent in waits that the source itself asked for.

    Args:
        clock: time in UTC.
    """

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._limit: float | None = None
        self._used, self._since, self._waited_before = 0.0, clock(), 0.0
        self.waited = 0.0

    @classmethod
    def unbounded(cls) -> "Allowance":
        """Return one that is never granted a limit, and so needs no clock."""
        return cls(clock=lambda: datetime.min.replace(tzinfo=UTC))

    def grant(self, limit: float | None, *, used: float) -> None:
        """Say what may be used from now on.

        Args:
            limit: the limit, which no single declared wait may outlast; None where there is none.
            used: seconds used of it so far.
        """
        self._limit, self._used = limit, used
        self._since, self._waited_before = self._clock(), self.waited

    @property
    def left(self) -> float | None:
        """Return the seconds that are left, None where the walk has no such limit."""
        if self._limit is None:
            return None
        passed = (self._clock() - self._since).total_seconds()
        return self._limit - self._used - passed + (self.waited - self._waited_before)

    def check(self) -> None:
        """Refuse to go on where nothing is left.

        Raises:
            TimeLimitError: the limit is used up.
        """
        left = self.left
        if self._limit is not None and left is not None and left <= USED_UP:
            raise TimeLimitError(
                f"limits.seconds ({self._limit:g} s) was used up in the middle of a request; "
                "raise the limit, or ask for less",
                allowed=self._limit,
                reached=self._limit - left,
            )

    def deadline(self, whole: float) -> Deadline:
        """Return by when an answer that is asked for now must be whole, at most `whole` seconds."""
        left = self.left
        return Deadline(whole if left is None else min(whole, left), clock=self._clock)

    def declared_wait(self, seconds: float, *, told: str) -> None:
        """Count a wait that the source asks for.

        Args:
            seconds: how long.
            told: who asks, for the message.

        Raises:
            TimeLimitError: it alone is longer than the whole limit.
        """
        if self._limit is not None and seconds > self._limit:
            raise TimeLimitError(
                f"{told} asks for a wait of {seconds:.0f} s; expected at most limits.seconds "
                f"({self._limit:g} s). Begin a new generation after that time",
                allowed=self._limit,
                reached=seconds,
            )
        self.waited += seconds

    def own_wait(self, seconds: float, *, told: str) -> None:
        """Allow a wait that we chose ourselves.

        Args:
            seconds: how long.
            told: what it follows, for the message.

        Raises:
            TimeLimitError: it would outlast what is left.
        """
        left = self.left
        if self._limit is not None and left is not None and seconds >= left:
            raise TimeLimitError(
                f"{told}; the wait before another attempt ({seconds:.1f} s) would outlast what is "
                f"left of limits.seconds ({self._limit:g} s)",
                allowed=self._limit,
                reached=self._limit - left,
            )
