"""A budget of requests to each host, shared by all that ask it from one process.

Libraries that do this sleep by themselves and read a clock of their own (pyrate-limiter 4.5, limits
5.8, read 2026-11-30). Here a wait must be one that a cancellation ends and that counts as declared,
so that a budget only says how long to wait.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from scan_pipeline.core.operation import Rate


class HostBudgets:
    """When requests went, or will go, to each host; safe to ask from several threads.

    In any span of `per_seconds` at most `requests` requests go to one host, whoever sends them.
    Each asker gets a time of its own, the earliest that its rate allows.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._times: defaultdict[str, list[datetime]] = defaultdict(list)
        self._longest: defaultdict[str, timedelta] = defaultdict(timedelta)

    def pace(self, rate: Rate, *, clock: Callable[[], datetime]) -> Callable[[str], float]:
        """Return what tells the seconds to wait before a request to a host."""
        return lambda host: self._take(host, rate, clock())

    def _take(self, host: str, rate: Rate, now: datetime) -> float:
        span = timedelta(seconds=rate.per_seconds)
        with self._lock:
            times = self._times[host]
            at = now
            if len(times) >= rate.requests:
                at = max(now, times[-rate.requests] + span)
            insort(times, at)
            self._longest[host] = max(self._longest[host], span)
            del times[: bisect_right(times, now - self._longest[host])]
        return (at - now).total_seconds()


PROCESS: HostBudgets = HostBudgets()
"""The budgets of this process: a host does not care which of our scans asks it."""
