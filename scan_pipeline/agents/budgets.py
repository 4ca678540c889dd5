"""What a call may cost, asked before the work is done."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import Ledger, Spent
from scan_pipeline.agents.policy import Limits
from scan_pipeline.core.canonical import digest_of


class Budget:
    """One principal's budget within its run.

    Args:
        ledger: where it is kept.
        limits: how much is allowed.
        principal: whose it is.
        now: seconds since the epoch.
    """

    def __init__(self, ledger: Ledger, limits: Limits, *, principal: str, now: float) -> None:
        self._ledger, self._limits, self._principal, self._now = ledger, limits, principal, now

    @property
    def pages_left(self) -> int:
        """Return the pages left in this run."""
        return max(0, self._limits.run_pages - self._spent().pages)

    @property
    def bytes_left(self) -> int:
        """Return the bytes left in this run, by both bounds."""
        most = min(self._limits.run_bytes, 4 * self._limits.run_tokens)
        return max(0, most - self._spent().bytes)

    @property
    def is_left(self) -> bool:
        """Say whether another page could be read."""
        return self.pages_left > 0 and self.bytes_left >= self._limits.answer_bytes

    def reserve(self, *, size: int, pages: int = 0) -> None:
        """Make sure that an answer of a size fits before it is made.

        Args:
            size: most bytes the answer may have.
            pages: pages it counts as.

        Raises:
            ReaderError: it does not fit into what is left of the run.
        """
        if pages > self.pages_left:
            raise ReaderError(
                "stop",
                "run_budget_exhausted",
                f"{self._limits.run_pages} pages of this run are read; conclude says what may be "
                f"said so far. The next run begins {self._next_run()}",
            )
        if size > self.bytes_left:
            raise ReaderError(
                "narrow",
                "run_budget_exhausted",
                f"an answer may have {size:,} bytes and {self.bytes_left:,} are left in this run; "
                f"ask for fewer rows or columns, or an aggregate. The next run begins "
                f"{self._next_run()}",
            )

    def spend(self, *, size: int, pages: int = 0) -> None:
        """Count an answer that was made."""
        self._spent()  # begins the run, where this is its first call
        self._ledger.spend(self._principal, pages=pages, size=size)

    def refuse_again(self, call: Mapping[str, Any]) -> None:
        """Answer a call that was too large in this run as it was answered then, without the work.

        Raises:
            ReaderError: an equal call was too large.
        """
        told = self._ledger.refused(self._principal, call=_name(call))
        if told is not None:
            raise ReaderError(
                "narrow", "same_call_again", f"the same call was too large before: {told}"
            )

    def too_large(self, call: Mapping[str, Any], told: str) -> ReaderError:
        """Remember a call that is too large, and return what its caller is told."""
        self._ledger.refuse(self._principal, call=_name(call), told=told)
        return ReaderError("narrow", "too_large", told)

    def _spent(self) -> Spent:
        return self._ledger.spent(
            self._principal, now=self._now, run_seconds=self._limits.run_seconds
        )

    def _next_run(self) -> str:
        left = self._spent().begun_at + self._limits.run_seconds - self._now
        return f"in {max(0, round(left)):,} seconds"


def _name(call: Mapping[str, Any]) -> str:
    return digest_of(dict(call)).hex()
