"""The walks of one generation: one, or two in succession where the contract wants them equal."""

from collections.abc import Iterator, Sequence

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.vocabulary import Consistency
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore

SECOND_WALK = 1
"""Shard of the walk that is held against the first."""

_TWO: Consistency = "two_equal_walks"


def is_closed(events: Sequence[Event]) -> bool:
    """Say whether a walk has its close event."""
    return bool(events) and events[-1].event == "close"


def second_is_wanted(scan: Scan, first: Sequence[Event]) -> bool:
    """Say whether a second walk follows: only a first that finished can be equalled."""
    finished = is_closed(first) and first[-1].facts["traversal"] == "finished"
    return two_are_declared(scan) and finished


def two_are_declared(scan: Scan) -> bool:
    """Say whether a contract asks for two walks, should the first finish."""
    return scan.contract.consistency == _TWO


def is_over(scan: Scan, store: GenerationStore) -> bool:
    """Say whether nothing is left to be asked of the source for a generation."""
    first = store.events()
    if second_is_wanted(scan, first):
        return is_closed(store.events(SECOND_WALK))
    return is_closed(first)


def walks_due(scan: Scan, store: GenerationStore) -> Iterator[tuple[int, list[Event]]]:
    """Yield each walk that is not over, with the events of the one before it, one after another."""
    if not is_closed(store.events()):
        yield FIRST_WALK, []
    if not two_are_declared(scan):
        return
    first = store.events()
    if second_is_wanted(scan, first) and not is_closed(store.events(SECOND_WALK)):
        yield SECOND_WALK, first


def follows(before: Sequence[Event]) -> dict[str, str]:
    """Return what an open event says of the walk before: where its chain ended; nothing of none."""
    return {"follows": before[-1].chain.hex()} if before else {}


def last_walk(store: GenerationStore) -> list[Event]:
    """Return the events of the walk that was begun last, none where none was."""
    return store.events(SECOND_WALK) or store.events()


def open_walks(store: GenerationStore) -> Iterator[tuple[int, list[Event]]]:
    """Yield each walk that was begun and not closed."""
    for shard in (FIRST_WALK, SECOND_WALK):
        events = store.events(shard)
        if events and not is_closed(events):
            yield shard, events
