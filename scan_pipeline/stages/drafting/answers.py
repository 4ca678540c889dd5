"""The first answer taken apart: where its records may lie, and what stands around them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from scan_pipeline.core.canonical import CanonicalFormError, parse_exact
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.value import record

Path = tuple[str, ...]

DEPTH: Final = 4
"""How deep in an answer a list of records, a count or a continuation is looked for."""

USUAL: Final = ("items", "data", "results", "value", "records", "rows", "entries", "values")
"""Names under which an empty first page may hold its list."""

_BESIDE: Final = frozenset(
    {"errors", "error", "links", "_links", "warnings", "included", "facets", "meta", "columns"}
)
"""Names of lists that stand beside the records."""


@record
class FirstAnswer:
    """The first answer of a source.

    Attributes:
        body: it as parsed JSON, numbers exact.
        size: bytes of its body.
        headers: its headers, names in lower case.
        records_at: where the records seem to lie; None where no list is to be found.
        bare: whether the records are single values and not objects.
        others: where other lists of objects lie.
    """

    body: Any
    size: int
    headers: Mapping[str, str]
    records_at: Path | None
    bare: bool = False
    others: tuple[Path, ...] = ()

    @property
    def records(self) -> Sequence[Any]:
        """Return the records, as parsed."""
        return [] if self.records_at is None else at(self.body, self.records_at)


def first_answer(body: bytes, headers: Mapping[str, str]) -> FirstAnswer:
    """Take the first answer apart.

    Raises:
        ProtocolError: `body_unparsable`, it is not JSON.
    """
    try:
        parsed = parse_exact(body)
    except CanonicalFormError as error:
        start = body[:64].lstrip()[:1]
        kind = "a page of HTML or XML" if start == b"<" else "no JSON"
        raise ProtocolError(
            "body_unparsable",
            f"found {kind}; expected the JSON that the API answers to programs. Add the header or "
            "parameter that asks for it, e.g. --header accept=application/json",
        ) from error
    lists = list(_lists(parsed, ()))
    objects = [each for each in lists if at(parsed, each) and _all_of(at(parsed, each), dict)]
    chosen = _chosen(parsed, [each for each in objects if each[-1:] and each[-1] not in _BESIDE])
    chosen = chosen if chosen is not None else _chosen(parsed, objects)
    bare = False
    if chosen is None:
        singles = [e for e in lists if at(parsed, e) and _all_of(at(parsed, e), (str, int))]
        chosen, bare = _chosen(parsed, singles), True
    if chosen is None:
        empty = [each for each in lists if at(parsed, each) == []]
        usual = [each for each in empty if not each or each[-1] in USUAL]
        chosen, bare = next(iter(usual), None), False
    return FirstAnswer(
        body=parsed,
        size=len(body),
        headers={name.lower(): value for name, value in headers.items()},
        records_at=chosen,
        bare=bare and chosen is not None,
        others=tuple(each for each in objects if each != chosen),
    )


def at(body: Any, path: Path) -> Any:
    """Return the value at a path, None where it leads nowhere."""
    for step in path:
        if not isinstance(body, Mapping):
            return None
        body = body.get(step)
    return body


def around(body: Any, records_at: Path | None) -> Iterator[tuple[Path, Any]]:
    """Yield every single value outside of lists, with its path; nulls too."""
    yield from _singles(body, (), records_at)


def written(path: Path) -> str | list[str]:
    """Return a path as a scan file writes it."""
    if not path:
        return "$"
    joined = ".".join(path)
    plain = joined != "$" and not any("." in step or "@" in step or not step for step in path)
    return joined if plain else list(path)


def told(path: Path) -> str:
    """Return a path as people read it."""
    return ".".join(path) or "the body itself"


def plain(name: str) -> str:
    """Return a name without case and separators: `nextPageToken` and `next_page_token` alike."""
    return "".join(each for each in name.lower() if each.isalnum())


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes as JSON."""
    return len(json.dumps(value, default=_number, ensure_ascii=False))


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def _lists(body: Any, path: Path) -> Iterator[Path]:
    if isinstance(body, list):
        yield path
    elif isinstance(body, Mapping) and len(path) < DEPTH:
        for name, value in body.items():
            yield from _lists(value, (*path, name))


def _singles(body: Any, path: Path, records_at: Path | None) -> Iterator[tuple[Path, Any]]:
    if path == records_at and path:
        return
    if isinstance(body, Mapping):
        if len(path) < DEPTH:
            for name, value in body.items():
                yield from _singles(value, (*path, name), records_at)
    elif not isinstance(body, list):
        yield path, body


def _chosen(body: Any, paths: Sequence[Path]) -> Path | None:
    """Return the longest list; of two equally long the one that takes more bytes."""
    ranked = [(len(at(body, each)), size_of(at(body, each)), -len(each), each) for each in paths]
    return max(ranked)[-1] if ranked else None


def _all_of(values: Any, kind: type | tuple[type, ...]) -> bool:
    return all(isinstance(each, kind) and not isinstance(each, bool) for each in values)
