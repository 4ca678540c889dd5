"""A bench: a source that can be broken on purpose, over a population that is known."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TypeAlias

import httpx2

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.testing.faults import Fault

Key: TypeAlias = str | int | tuple[str | int, ...]
"""A record's key: its one field, or all of them."""


def nothing(page: int) -> None:
    """Do nothing after a page."""
    del page


@record
class Opened:
    """A source made ready for one walk.

    Attributes:
        keys: keys of the records that the walk must bring, in the order of the source.
        inner: HTTP transport that answers; None where the source is reached otherwise.
        environ: secrets.
        after_page: called when a page was admitted, with its ordinal from 1; for sources whose
            faults are no matter of answers (a database that another connection writes).
        struck: says whether the fault happened.
    """

    keys: Sequence[Key]
    inner: httpx2.BaseTransport | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    after_page: Callable[[int], None] = nothing
    struck: Callable[[], bool] = lambda: True


class Bench(ABC):
    """What the kit drives; one is made for each source, and opened anew for each walk."""

    ordered: bool = True
    """Whether records arrive in the order of `Opened.keys`."""

    @property
    @abstractmethod
    def scan(self) -> Scan:
        """The scan of the source; its key and consistency count, all else of it is the kit's."""

    @abstractmethod
    def open(self, scan: Scan, fault: Fault) -> AbstractContextManager[Opened]:
        """Make the source ready, with a fault that will befall it.

        A population of at least three pages lets every fault strike.

        Args:
            scan: what is walked: the bench's own, maybe with another kind of continuation.
            fault: what befalls it.

        Raises:
            NotExercisedError: this fault cannot be played here, and why.
        """
