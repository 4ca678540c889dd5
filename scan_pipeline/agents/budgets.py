"""What a call may cost, asked before the work is done."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import Limits
from scan_pipeline.agents.runs import Runs, Spent
from scan_pipeline.core.canonical import digest_of


@dataclass(kw_only=True)
class Taken:
    """What was taken out of a run for one answer.

    Attributes:
        begun_at: when that run began, in seconds since the epoch.
        size: bytes taken.
        pages: pages taken.
        used: bytes the answer has; said once it is made.
    """

    begun_at: float
    size: int
    pages: int
    used: int = 0


class Budget:
    """One principal's budget within its run.

    Args:
        runs: where it is kept.
        limits: how much is allowed.
        principal: whose it is.
        now: seconds since the epoch.
    """

    def __init__(self, runs: Runs, limits: Limits, *, principal: str, now: float) -> None:
        self._runs, self._limits, self._principal, self._now = runs, limits, principal, now

    @property
    def pages_left(self) -> int:
        """Return the pages left in this run."""
        return max(0, self._limits.run_pages - self._spent().pages)

    @property
    def bytes_left(self) -> int:
        """Return the bytes left in this run, by both bounds."""
        return max(0, self._most_bytes - self._spent().bytes)

    @property
    def is_left(self) -> bool:
        """Say whether another page could be read."""
        return self.pages_left > 0 and self.bytes_left >= self._limits.answer_bytes

    @contextmanager
    def taking(self, *, size: int, pages: int = 0) -> Iterator["Taken"]:
        """Take what an answer may cost before the work, and give back what it did not.

        A call that fails gives all of it back; one that is killed in between, nothing.

        Args:
            size: most bytes the answer may have.
            pages: pages it counts as.

        Raises:
            ReaderError: it does not fit into what is left of the run.
        """
        taken = Taken(begun_at=self._take(size=size, pages=pages), size=size, pages=pages)
        try:
            yield taken
        except BaseException:
            self._give_back(taken, pages=pages, size=taken.size)
            raise
        self._give_back(taken, pages=0, size=taken.size - taken.used)

    def widen(self, taken: "Taken", size: int) -> None:
        """Take more, for an answer that is larger than was thought.

        Raises:
            ReaderError: it does not fit into what is left of the run.
        """
        if size > taken.size:
            self._take(size=size - taken.size, pages=0)
            taken.size = size

    def spend(self, *, size: int) -> None:
        """Count a small answer that is given whatever is left, as a conclusion is."""
        self._runs.take(
            self._principal,
            pages=0,
            size=size,
            most_pages=None,
            most_bytes=None,
            now=self._now,
            run_seconds=self._limits.run_seconds,
        )

    def _take(self, *, size: int, pages: int) -> float:
        """Take out of the run and return when it began, in seconds since the epoch."""
        spent, fits = self._runs.take(
            self._principal,
            pages=pages,
            size=size,
            most_pages=self._limits.run_pages if pages else None,
            most_bytes=self._most_bytes,
            now=self._now,
            run_seconds=self._limits.run_seconds,
        )
        if fits:
            return spent.begun_at
        next_run = max(0, round(spent.begun_at + self._limits.run_seconds - self._now))
        if spent.pages + pages > self._limits.run_pages and pages:
            raise ReaderError(
                "stop",
                "run_budget_exhausted",
                f"{self._limits.run_pages} pages of this run are read; conclude says what may be "
                f"said so far. The next run begins in {next_run:,} seconds",
            )
        raise ReaderError(
            "narrow",
            "run_budget_exhausted",
            f"an answer may have {size:,} bytes and {max(0, self._most_bytes - spent.bytes):,} are "
            "left in this run; ask for fewer rows or columns, or an aggregate. The next run "
            f"begins in {next_run:,} seconds",
        )

    def _give_back(self, taken: "Taken", *, pages: int, size: int) -> None:
        self._runs.give_back(self._principal, begun_at=taken.begun_at, pages=pages, size=size)

    @property
    def _most_bytes(self) -> int:
        return min(self._limits.run_bytes, 4 * self._limits.run_tokens)

    def refuse_again(self, call: Mapping[str, Any]) -> None:
        """Answer a call that was too large in this run as it was answered then, without the work.

        Raises:
            ReaderError: an equal call was too large.
        """
        told = self._runs.refused(self._principal, call=_name(call))
        if told is not None:
            raise ReaderError(
                "narrow", "same_call_again", f"the same call was too large before: {told}"
            )

    def too_large(self, call: Mapping[str, Any], told: str) -> ReaderError:
        """Remember a call that is too large, and return what its caller is told."""
        self._runs.refuse(self._principal, call=_name(call), told=told)
        return ReaderError("narrow", "too_large", told)

    def _spent(self) -> Spent:
        return self._runs.spent(
            self._principal, now=self._now, run_seconds=self._limits.run_seconds
        )


def _name(call: Mapping[str, Any]) -> str:
    return digest_of(dict(call)).hex()
