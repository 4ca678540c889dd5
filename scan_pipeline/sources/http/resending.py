"""Sending one request again: bounded, jittered, and a wait that the source asks for is kept.

Retries belong to one request, whatever the protocol.
"""

from collections.abc import Callable
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from scan_pipeline.core.errors import SourceUnavailableError, TransientSourceError
from scan_pipeline.core.operation import Retries
from scan_pipeline.sources.http.allowance import Allowance

T = TypeVar("T")


class Resending:
    """Sends requests until they are answered or the bounds are reached.

    Args:
        retries: bounds of sending one request again.
        sleep: waits so many seconds; may raise to end the walk.
        allowance: how long the walk may still ask, waits included; None where nothing bounds it.
    """

    def __init__(
        self,
        retries: Retries,
        *,
        sleep: Callable[[float], None],
        allowance: Allowance | None = None,
    ) -> None:
        self._retries, self._sleep = retries, sleep
        self._allowance = allowance or Allowance.unbounded()

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._allowance.waited

    def send(self, once: Callable[[int], T]) -> T:
        """Send a request again for as long as it fails in passing.

        Args:
            once: sends it once, given the ordinal of the attempt, from 1; raises
                TransientSourceError where another may help.

        Raises:
            SourceUnavailableError: the bounds are reached.
            TimeLimitError: a wait before another attempt would outlast what is left.
        """
        attempts = 0

        def attempt() -> T:
            nonlocal attempts
            attempts += 1
            return once(attempts)

        retrying = Retrying(
            sleep=self._sleep,
            stop=stop_after_attempt(self._retries.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(TransientSourceError),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except TransientSourceError as error:
            raise SourceUnavailableError(
                f"{error}; gave up after {attempts} sends of one request"
            ) from error

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientSourceError) and error.wait is not None:
            self._allowance.declared_wait(error.wait, told=str(error))
            return error.wait
        own = wait_random_exponential(multiplier=0.2, max=self._retries.max_wait)(state)
        self._allowance.own_wait(own, told=str(error))
        return own
