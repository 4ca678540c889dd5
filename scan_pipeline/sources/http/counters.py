"""Parameters by which a continuation counts rows or pages, whatever protocol carries it."""

import re
from typing import Final

_LAST_STEP: Final = re.compile(r"[^.\[\]]+")

_COUNTERS: Final = frozenset(
    {
        "currentpage",
        "offset",
        "page",
        "pageindex",
        "pageno",
        "pagenum",
        "pagenumber",
        "pageoffset",
        "skip",
        "startindex",
        "startrow",
    }
)
"""Names in use, lower case, letters alone: `$skip` (OData), `startIndex` (SCIM), `page`."""


def counts_rows(name: str, value: str) -> bool:
    """Say whether a parameter is an offset or a page number: a number under such a name.

    A name alone decides nothing: a token may travel as `page`, and `$skiptoken` is one.

    Args:
        name: of the parameter; of a path or `page[number]` its last step counts, and all of it.
        value: what it says.
    """
    if not (value.isascii() and value.isdigit()):
        return False
    steps = _LAST_STEP.findall(name)
    plain = (re.sub(r"[^a-z]", "", each.lower()) for each in (name, *steps[-1:]))
    return not _COUNTERS.isdisjoint(plain)
