"""Names that a request carries: each stands for one thing, or one of them never arrives.

Of two query parameters of one name, `url` and what the walk adds to it, servers take the first, the
last or both; so that a filter or a page's token would be lost without a word.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import httpx2

from scan_pipeline.core.source_facts import SourceFacts

_SENT: Final = ("page_size", "snapshot", "high_water_mark", "next")
"""Facts that say under which name a value is sent."""


def sent_twice(source: SourceFacts) -> list[str]:
    """Return the names that a source's requests would carry for two things, in order."""
    times = Counter([*_added(source), *getattr(source, "params", {}), *_in_address(source)])
    return sorted(name for name, count in times.items() if count > 1)


def _added(source: SourceFacts) -> Iterator[str]:
    for part in _SENT:
        facts: Any = getattr(source, part, None)
        for each in (facts, *(getattr(facts, "after", None) or ())):
            name = getattr(each, "send_as", None)
            if name is not None:
                yield name


def _in_address(source: SourceFacts) -> set[str]:
    """Return the names in the address's own query; one that stands there twice is one list."""
    try:
        return set(httpx2.URL(str(getattr(source, "url", ""))).params)
    except httpx2.InvalidURL:  # told elsewhere
        return set()
