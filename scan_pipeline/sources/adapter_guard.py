"""An adapter of the user's own, kept apart: what its code raises by accident fails one walk.

An exception that is none of ours would leave the walk open, and every later run would take it up
and break off at the same place, without a receipt. Its text is not told, since it may hold a
record's values or a secret: its type is, and the line it came from.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath

from scan_pipeline.core.errors import ProtocolError, ScanPipelineError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.page import Opening, Page, Position, Refusal
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.sources.source import Beside, Noticed, RefusedCallback, Source

BROKEN = "adapter_failed"


class GuardedAdapter(Source):
    """A source of the user's own whose mistakes are ours to tell.

    Attributes:
        inner: the source.

    Args:
        inner: the source.
        clock: time in UTC.
    """

    def __init__(self, inner: Source, *, clock: Callable[[], datetime]) -> None:
        self.inner, self._clock = inner, clock
        self.adapter = inner.adapter

    @property
    def facts(self) -> SourceFacts:
        """Return what is declared of the source."""
        return self.inner.facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        with self._guarded():
            return self.inner.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within `limits.seconds`; see `Source.allow`."""
        with self._guarded():
            self.inner.allow(limit, used=used)

    def tell_aside(self, refused: RefusedCallback) -> None:
        """Be told who hears of answers refused beside the pages."""
        with self._guarded():
            self.inner.tell_aside(refused)

    def principal(self) -> bytes | None:
        """Return what tells one principal from another; see `Source.principal`."""
        with self._guarded():
            return self.inner.principal()

    def opening(self) -> Opening:
        """Return what the source says of itself before the first page."""
        with self._guarded():
            return self.inner.opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`."""
        try:
            with self._guarded():
                return self.inner.fetch(position, refused=refused)
        except ProtocolError as error:
            if error.code == BROKEN:
                refused(
                    Refusal(
                        position=position,
                        status=None,
                        reason=BROKEN,
                        body_digest=sha256().digest(),
                        at=self._clock(),
                    )
                )
            raise

    def closing(self, position: Position) -> Opening:
        """Return what the source says of itself after the last page."""
        with self._guarded():
            return self.inner.closing(position)

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body; see `Source.records`."""
        with self._guarded():
            return self.inner.records(body)

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield what can be seen inside records."""
        with self._guarded():
            yield from self.inner.noticed(records)

    def beside(self, body: bytes) -> Iterator[Beside]:
        """Yield what can be seen beside the records."""
        with self._guarded():
            yield from self.inner.beside(body)

    def let_go(self) -> tuple[Finding, ...]:
        """End what the source holds for this walk; what could not be ended is told."""
        try:
            with self._guarded():
                return self.inner.let_go()
        except ProtocolError as error:
            return (finding("held_by_source", found=str(error)),)

    def close(self) -> None:
        """Let go of connections. All that counts is stored by now, so that nothing is lost here."""
        with suppress(ScanPipelineError), self._guarded():
            self.inner.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise what is none of our errors as one.

        Raises:
            ProtocolError: `adapter_failed`.
        """
        try:
            yield
        except ScanPipelineError:
            raise
        except Exception as error:
            raise ProtocolError(BROKEN, self._told(error)) from error

    def _told(self, error: Exception) -> str:
        """Say what was raised, and where: the last line outside this package."""
        ours = PurePath(__file__).parents[1]
        frames = traceback.extract_tb(error.__traceback__)
        outside = [each for each in frames if ours not in PurePath(each.filename).parents]
        at = outside[-1] if outside else frames[-1]
        return (
            f"{self.adapter.name} raised {type(error).__name__} at line {at.lineno} of "
            f"{PurePath(at.filename).name}; expected a page or an error of scan_pipeline.adapters"
        )
