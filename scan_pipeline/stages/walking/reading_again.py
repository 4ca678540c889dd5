"""Admitted pages are read again: the last one before a walk goes on, some after its end.

A pin that is echoed proves nothing by itself: what proves it is that the same request brings the
same records again.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scan_pipeline.core.errors import ContinuationConsumedError, ProtocolError
from scan_pipeline.core.page import Opening, Position, Refusal
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.walk import Walk
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.stages.walking.stored_pages import StoredPages
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore


class ReadingAgain:
    """Asks for admitted pages of one walk once more, and compares.

    Args:
        scan: what is enumerated.
        source: its open source.
        store: the generation's tables.
        walk: the walk's rules; they know the pin.
        shard: number of the walk in its generation.
        check_cancelled: called before each request.
        refused: told of every answer that was not a page.
        since: checkpoint at which the walk began, None where it asked for everything.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        source: Source,
        store: GenerationStore,
        walk: Walk,
        shard: int,
        check_cancelled: Callable[[], None],
        refused: RefusedCallback,
        since: str | None = None,
    ) -> None:
        self._scan, self._source, self._store, self._walk = scan, source, store, walk
        self._shard, self._check_cancelled = shard, check_cancelled
        self._refused, self._since = refused, since
        self._stored = StoredPages(store, source=source, shard=shard, since=since)

    def going_on_after(self, last: Event, opening: Opening) -> Position | None:
        """Return where to ask next after the last admitted page, None where it was the end.

        Raises:
            ProtocolError: `page_changed_on_resume`, the last page reads differently now.
            ContinuationConsumedError: the walk's continuations cannot be used again; or what
                changes the source tells of has moved on, which is no fault of it.
        """
        if self._scan.source.continuation != "repeatable":
            raise ContinuationConsumedError(
                "the walk broke off and its continuations work only once; a new generation must "
                "begin"
            )
        pin = self._walk.pin  # by the name that the stored pages show
        if not self._reads_equal(last, opening):
            if self._scan.source.checkpoint is not None:
                raise ContinuationConsumedError(
                    f"page {last.page} tells of other changes by now; the round begins again where "
                    "it began"
                )
            raise ProtocolError(
                "page_changed_on_resume",
                f"page {last.page} holds other records than when it was admitted",
            )
        if last.end_signal is not None:
            return None
        return Position(
            token=self._stored.token_after(last),
            pin=pin,
            high_water_mark=opening.high_water_mark,
            since=self._since,
        )

    def recheck(self, opening: Opening) -> list[dict[str, Any]]:
        """Read the first page and seeded random ones again under the pin, and compare.

        Where continuations work only once, the first page alone can be read again.
        """
        pages = [each for each in self._store.events(self._shard) if each.event == "page"]
        chosen = [pages[0]]
        if self._scan.source.continuation != "single_use" and len(pages) > 1:
            seeded = random.Random(f"{self._scan.name}/{self._store.generation}")  # noqa: S311
            wanted = min(self._scan.operation.recheck_pages, len(pages) - 1)
            chosen += seeded.sample(pages[1:], wanted)
        return [
            {"page": event.page, "equal": self._reads_equal(event, opening)} for event in chosen
        ]

    def _reads_equal(self, admitted: Event, opening: Opening) -> bool:
        """Read an admitted page again, under the pin, and say whether it is the same page."""
        self._check_cancelled()
        position = Position(
            token=self._stored.position(admitted).token,
            pin=self._walk.pin,
            high_water_mark=opening.high_water_mark,
            since=self._since,
        )
        page = self._source.fetch(position, refused=self._tell)
        return self._walk.is_same(page, items=admitted.items_digest)

    def _tell(self, refusal: Refusal) -> None:
        self._refused(replace(refusal, asked="again"))
