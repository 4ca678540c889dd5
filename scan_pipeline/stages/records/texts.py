"""Single records of the evidence, looked up by page and position."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.sources.source import Source
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore

KEPT_BYTES: Final = 128 * 2**20


class RecordTexts:
    """Looks up record bytes; reads the evidence once and keeps what fits.

    Args:
        store: the generation's tables.
        source: knows how to take a body apart.
        kept_bytes: bytes of bodies that are kept.
        shard: the walk whose records they are.
    """

    def __init__(
        self,
        store: GenerationStore,
        source: Source,
        *,
        kept_bytes: int = KEPT_BYTES,
        shard: int = FIRST_WALK,
    ) -> None:
        self._store, self._source, self._budget = store, source, kept_bytes
        self._shard = shard
        self._pages: OrderedDict[int, Sequence[bytes]] = OrderedDict()
        self._size = 0

    def text(self, page: int, position: int) -> bytes:
        """Return one record's bytes.

        Args:
            page: ordinal from 1.
            position: place on the page, from 0.

        Raises:
            TamperedError: the page or the record is not in the evidence.
            ErasedError: the page's body was taken out, by policy or on request.
        """
        if page not in self._pages:
            self._load(page)
        if page not in self._pages:
            for _ in self._store.bodies(self._shard):
                pass  # says so where a body was taken out
        records = self._pages.get(page, ())
        if not 0 <= position < len(records):
            raise TamperedError("pages", f"page {page} has no record at {position}; expected one")
        return records[position]

    def _load(self, wanted: int) -> None:
        """Keep the wanted page and, from there on, as many as fit."""
        found = False
        for page, body in self._store.bodies(self._shard, past_erased=True):
            found = found or page == wanted
            if not found or page in self._pages:
                continue
            self._pages[page] = self._source.records(body)
            self._size += len(body)
            while self._size > self._budget and len(self._pages) > 1:
                oldest, records = self._pages.popitem(last=False)
                self._size -= sum(map(len, records))
                if oldest == wanted:
                    self._pages[oldest] = records
                    return
