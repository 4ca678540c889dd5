"""What a first answer lets one expect of the second: candidates, most telling first.

Nothing here is believed: each candidate is asked, through the adapter that a scan would use, and
only one whose second page holds other records is drafted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.value import record
from scan_pipeline.sources.http.link_header import target_of
from scan_pipeline.stages.drafting.answers import FirstAnswer, Path, around, plain, told, written
from scan_pipeline.stages.drafting.figures import version_of

_LINK_STEPS: Final = ("href", "link", "url", "uri")
"""Last steps of a path that say what a value is, not what it is for."""

_LINK: Final = re.compile(r"^(?:https?://|simulator://|/|\?)")

_SENT_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "next": ("cursor", "next", "after", "page"),
    "nextcursor": ("cursor", "after", "next_cursor"),
    "nextpagecursor": ("cursor", "page_cursor", "after"),
    "nexttoken": ("nextToken", "next_token", "pagination_token"),
    "continuationtoken": ("continuationToken", "continuation_token"),
    "nextcontinuationtoken": ("continuation-token", "continuationToken"),
    "continue": ("continue",),
    "after": ("after",),
    "cursor": ("cursor",),
    "endcursor": ("after", "cursor"),
    "marker": ("marker",),
    "nextmarker": ("marker",),
    "bookmark": ("bookmark",),
    "scrolltoken": ("scroll_token",),
    "offset": ("offset",),
    "nextoffset": ("offset",),
    "nextpage": ("page", "next_page"),
    "paginationtoken": ("pagination_token",),
}
"""By the name of a token in an answer, the names under which requests send it back."""

_FLAGS: Final = ("hasmore", "more", "hasnext", "hasnextpage", "morerecordsinresultset", "ismore")
_LAST: Final = ("islast", "lastpage", "last", "iscomplete", "done", "isdone")
_AFTER_KEY: Final = ("starting_after", "after", "after_id", "since_id")
_OFFSETS: Final = ("offset", "start", "skip", "$skip", "startAt", "startIndex", "from")
_PAGES: Final = ("page", "page_number", "pageNumber", "p")
_SIZES: Final = (
    *("page_size", "pageSize", "per_page", "perPage", "limit", "size", "$top", "_size"),
    *("maxResults", "max_results", "first", "n"),
)
_TOTAL_PAGES: Final = ("totalpages", "pagecount", "lastpage", "numpages", "pages")


@record
class Candidate:
    """One way in which the source may go on.

    Attributes:
        why: what it was seen by, in words.
        sources: facts to be merged under a source, one after another until one brings other
            records; they differ in a name alone.
        ends: how sure the declared end is, in words.
        whole: whether the first page already shows the end, so that no second one can be had.
        provider: provider whose documented facts these are.
        blind: whether nothing in the answer speaks for it; it is tried all the same.
    """

    why: str
    sources: tuple[Mapping[str, Any], ...]
    ends: str
    whole: bool = False
    provider: str | None = None
    blind: bool = False


def candidates(
    first: FirstAnswer, params: Mapping[str, str], key: str | None
) -> Iterator[Candidate]:
    """Yield what may follow, most telling first.

    Args:
        first: the first answer.
        params: parameters of the first request.
        key: field that seems to be the key, None where there is none.
    """
    singles = [(path, value) for path, value in around(first.body, first.records_at) if path]
    version = version_of([first])
    flag = next((each for each in singles if _is_flag(*each)), None)
    yield from _link_header(first)
    yield from _links(singles)
    yield from _tokens(singles, params, flag, version and version[0])
    if flag is not None and key is not None:
        yield from _last_key(flag, key)
    yield from _offsets(singles, params, flag)


def pin_at(version: Path) -> dict[str, Any]:
    """Return the pin that a version would be, sent back under its own name."""
    return {"at": written(version), "send_as": version[-1], "basis": "user_declared"}


def page_size(params: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the page size that a person asked for in the address, as a scan's fact."""
    for name in _SIZES:
        value = params.get(name, "")
        if value.isascii() and value.isdigit() and int(value) > 0:
            return {"send_as": name, "value": int(value)}
    return None


def _link_header(first: FirstAnswer) -> Iterator[Candidate]:
    field = first.headers.get("link")
    if field and target_of(field, relation="next"):
        yield Candidate(
            why="the Link header names a next page (RFC 8288)",
            sources=(
                {
                    "protocol": "next_link",
                    "next": {"relation": "next", "ends_when": [{"is": "no_next_link"}]},
                },
            ),
            ends="that the header names none on the last page is usual, and was not seen",
        )


def _links(singles: Sequence[tuple[Path, Any]]) -> Iterator[Candidate]:
    for path, value in singles:
        named = _for_what(path)
        annotation = path[-1].endswith("@odata.nextLink") or path[-1] == "odata.nextLink"
        if not (annotation or named.startswith("next") or named == "more"):
            continue
        if not isinstance(value, str) or not (annotation or _LINK.match(value)):
            continue
        left_out = annotation or path[-1] in _LINK_STEPS or path[0] == "paging"
        shape = "no_next_link" if left_out else "null"
        yield Candidate(
            why=f"{told(path)} holds the address of a next page",
            sources=(
                {
                    "protocol": "next_link",
                    "next": {"at": written(path), "ends_when": [{"is": shape}]},
                },
            ),
            ends="the last page was not seen; it may say the end in another way: null, an empty "
            "text, or by leaving the field out",
        )


def _tokens(
    singles: Sequence[tuple[Path, Any]],
    params: Mapping[str, str],
    flag: tuple[Path, Any] | None,
    version: Path | None,
) -> Iterator[Candidate]:
    """Yield tokens; where a version stands beside them, some sources want it back as well."""
    pins: list[dict[str, Any]] = [{}]
    pins += [{"snapshot": pin_at(version)}] if version is not None else []
    for path, value in singles:
        names = _SENT_AS.get(plain(path[-1])) or _derived(path)
        if names is None or isinstance(value, bool) or not isinstance(value, str | int | None):
            continue
        if isinstance(value, str) and _LINK.match(value) and not value.startswith("/"):
            continue
        sent = tuple(dict.fromkeys([*(n for n in names if n in params), *names]))
        shapes = _token_ends(path, value)
        ends: list[dict[str, Any]] = [{"is": each} for each in shapes]
        if flag is not None:
            ends.append(_flag_end(*flag))
        yield Candidate(
            why=f"{told(path)} looks like a continuation token",
            sources=tuple(
                {
                    "protocol": "page_token",
                    "next": {"at": written(path), "send_as": name, "ends_when": ends},
                    **pin,
                }
                for name in sent
                for pin in pins
            ),
            ends="the first page shows it already"
            if not value
            else "the last page was not seen; it may say the end in another way: null, an empty "
            "text, or by leaving the field out",
            whole=not value,
        )


def _last_key(flag: tuple[Path, Any], key: str) -> Iterator[Candidate]:
    path, value = flag
    yield Candidate(
        why=f"{told(path)} says whether more follows, and no token does: the next page would begin "
        f"after the last {key}",
        sources=tuple(
            {
                "protocol": "last_key",
                "next": {
                    "after": [{"field": key, "send_as": name}],
                    "ends_when": [_flag_end(path, value)],
                },
            }
            for name in _AFTER_KEY
        ),
        ends=f"{told(path)} was seen on both pages, its other value was not",
        whole=value is _end_value(path),
    )


def _offsets(
    singles: Sequence[tuple[Path, Any]],
    params: Mapping[str, str],
    flag: tuple[Path, Any] | None,
) -> Iterator[Candidate]:
    shown = {path[-1]: value for path, value in singles if type(value) is int}
    pages = next((p for p, v in singles if plain(p[-1]) in _TOTAL_PAGES and type(v) is int), None)
    by_page, by_row = _named(_PAGES, params, shown), _named(_OFFSETS, params, shown)
    kinds: list[tuple[str | None, str, tuple[str, ...]]] = [
        (by_row, "rows", ("offset",)),
        (by_page, "pages", ("page",)),
    ]
    for named, counts, blind in sorted(kinds, key=lambda each: each[0] is None):
        names = blind if named is None else (named,)
        ends: list[dict[str, Any]] = [{"is": "empty_page"}]
        sure = "an empty page after the last one is usual, and was not seen"
        if flag is not None:
            ends, sure = [_flag_end(*flag)], f"{told(flag[0])} says so"
        elif pages is not None and counts == "pages":
            ends, sure = [{"is": "total_pages", "at": written(pages)}], f"{told(pages)} says so"
        starts = _starts(names[0], counts, params, shown)
        yield Candidate(
            why=f"{names[0]} is a parameter or figure of the first page"
            if named
            else f"nothing in the answer says how to go on; {names[0]} was tried",
            sources=tuple(
                {
                    "protocol": "offset",
                    "next": {
                        "send_as": name,
                        "counts": counts,
                        "first": start,
                        "ends_when": ends,
                    },
                }
                for name in names
                for start in starts
            ),
            ends=sure,
            blind=named is None,
        )


def _named(names: Sequence[str], params: Mapping[str, str], shown: Mapping[str, int]) -> str | None:
    return next((n for n in names if n in params), next((n for n in names if n in shown), None))


def _starts(
    name: str, counts: str, params: Mapping[str, str], shown: Mapping[str, int]
) -> tuple[int, ...]:
    """Return what the first page may be asked by: what was typed or shown, else the usual."""
    typed = params.get(name, "")
    if typed.isascii() and typed.isdigit():
        return (int(typed),)
    if name in shown:
        return (max(shown[name], 0),)
    return (1, 0) if counts == "pages" else (0,)


def _for_what(path: Path) -> str:
    steps = [each for each in path if each.lower() not in _LINK_STEPS]
    return plain(steps[-1]) if steps else ""


def _derived(path: Path) -> tuple[str, ...] | None:
    """Return how a token would be sent whose name says that it is the next of something."""
    name = path[-1]
    found = re.match(r"^next[_-]?(?P<rest>.*(?:token|cursor|marker|key|id))$", name, re.IGNORECASE)
    if found is None:
        return None
    rest = found["rest"]
    return rest[0].lower() + rest[1:], name


def _token_ends(path: Path, value: Any) -> tuple[str, ...]:
    """Return the shapes of a token's end that its name or its value speaks for."""
    if value == "":
        return ("empty_string",)
    if value is None:
        return ("null",)
    if plain(path[-1]) == "nextpagetoken":
        return ("empty_string", "absent")  # AIP-158, and the JSON mapping of protocol buffers
    if path[0] == "response_metadata":
        return ("empty_string",)
    return ("absent",) if path[0] == "paging" else ("null",)


def _is_flag(path: Path, value: Any) -> bool:
    return isinstance(value, bool) and plain(path[-1]) in (*_FLAGS, *_LAST)


def _end_value(path: Path) -> bool:
    return plain(path[-1]) in _LAST


def _flag_end(path: Path, value: Any) -> dict[str, Any]:
    del value
    if _end_value(path):
        return {"at": written(path), "is": "equals", "value": True}
    return {"at": written(path), "is": "false"}
