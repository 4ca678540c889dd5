"""Lists inside records, which a source may cut without a word."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import NestedFacts
from scan_pipeline.sources.source import Noticed


def cut_lists(records: Sequence[bytes], nested: Sequence[NestedFacts]) -> Iterator[Noticed]:
    """Yield each declared list that is as long as its cap, or says that more of it follows.

    The record itself is whole all the same; coverage of such a list is a fact of its own.
    """
    for row, text in enumerate(records if nested else ()):
        try:
            value: Any = json.loads(text)
        except ValueError:
            continue  # told where records are held against their schema
        for each in nested:
            told = _told(value, each)
            if told is not None:
                yield Noticed(row=row, code="nested_list_cut", expected=told[0], found=told[1])


def _told(value: Any, nested: NestedFacts) -> tuple[str, str] | None:
    name = ".".join(nested.at)
    found = value_at(value, nested.at)
    if isinstance(found, list) and nested.cap is not None and len(found) >= nested.cap:
        return f"{name}: fewer than {nested.cap}", f"{len(found)}, as many as are ever sent"
    more = ABSENT if nested.more_at is None else value_at(value, nested.more_at)
    if more not in (ABSENT, None, False, ""):
        return f"{name}: whole", "the record says that more of it follows"
    return None
