"""Counts and versions beside the records: figures that two pages must agree on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.value import record
from scan_pipeline.stages.drafting.answers import (
    FirstAnswer,
    Path,
    around,
    at,
    plain,
    told,
    written,
)

_TOTALS: Final = (
    *("total", "totalcount", "totalresults", "totalitems", "totalrecords", "expectedcount"),
    *("count", "odatacount", "filteredtablerowscount", "recordcount", "numfound", "hits"),
    *("totalhits", "totalelements", "recordstotal", "resultcount", "totalsize"),
)
_REMAINING: Final = ("remaining", "remainingitemcount", "remainingcount", "left")
_VERSIONS: Final = (
    *("snapshotid", "snapshot", "snapshottoken", "version", "versionid", "revision"),
    *("resourceversion", "asof", "pitid", "readtime", "etag"),
)
_HEADERS: Final = ("x-total-count", "total-count", "x-total", "x-wp-total")


@record
class Figure:
    """A figure that was seen.

    Attributes:
        fact: as a scan file declares it.
        why: what it was seen by, in words.
        value: the figure on the first page.
    """

    fact: dict[str, Any]
    why: str
    value: Any


def count_of(pages: Sequence[FirstAnswer]) -> Figure | None:
    """Return the count that all pages agree on; its exactness is nothing that pages can show."""
    first = pages[0]
    sizes = [len(each.records) for each in pages]
    for name in _HEADERS:
        text = first.headers.get(name, "")
        if text.isascii() and text.isdigit() and int(text) >= sum(sizes):
            return _counted({"header": name}, f"the header {name}", int(text), 1)
    for path, value in around(first.body, first.records_at):
        seen = [at(each.body, path) for each in pages]
        if not path or any(type(each) is not int or each < 0 for each in seen):
            continue
        short = plain(path[-1])
        if short in _TOTALS and len(set(seen)) == 1 and value >= sum(sizes) and value != sizes[0]:
            return _counted({"at": written(path)}, told(path), value, len(pages))
        if len(pages) == 1 and short in _TOTALS and value == sizes[0]:
            return _counted({"at": written(path)}, told(path), value, 1)
        gone = len(pages) > 1 and seen[0] - seen[1] == sizes[1]
        if short in _REMAINING and gone:
            fact = {"at": written(path), "means": "remaining", "exactness": "estimate"}
            return Figure(
                fact=fact,
                why=f"{told(path)} falls by the records of a page",
                value=value + sizes[0],
            )
    return None


def version_of(pages: Sequence[FirstAnswer]) -> tuple[Path, str] | None:
    """Return where a version of the collection seems to stand, equal on all pages."""
    first = pages[0]
    for path, value in around(first.body, first.records_at):
        if not path or plain(path[-1]) not in _VERSIONS or isinstance(value, bool):
            continue
        seen = {str(at(each.body, path)) for each in pages}
        if isinstance(value, str | int) and value != "" and len(seen) == 1:
            return path, str(value)
    return None


def _counted(where: Mapping[str, Any], named: str, value: int, pages: int) -> Figure:
    seen = "the same on both pages" if pages > 1 else "seen on one page"
    return Figure(
        fact={**where, "means": "total", "exactness": "estimate"},
        why=f"{named} says {value:,}, {seen}",
        value=value,
    )
