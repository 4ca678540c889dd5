"""Links as servers write them: resolved against the address they came from, escapes untouched.

RFC 3986, sections 5.2 and 5.3 and appendix B (read 2026-11-30).
"""

import re
from typing import Final

from scan_pipeline.core.value import record

_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[^:/?#]+):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.DOTALL,
)


@record
class _Parts:
    """A reference taken apart, its fragment left out; None is a part that is not there."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None


def resolved(reference: str, *, base: str) -> str:
    """Return the absolute address that a reference means, without its fragment.

    Nothing is decoded or encoded on the way: an escape may be part of a signature.

    Args:
        reference: absolute or relative, as the server wrote it.
        base: the absolute address that was asked for.
    """
    given, origin = _parts(reference), _parts(base)
    if given.scheme is not None:
        return _joined(given, path=_without_dots(given.path))
    if given.authority is not None:
        return _joined(given, scheme=origin.scheme, path=_without_dots(given.path))
    if not given.path:
        query = given.query if given.query is not None else origin.query
        return _joined(origin, path=origin.path, query=query)
    path = given.path
    if not path.startswith("/"):
        folder = origin.path.rpartition("/")[0]
        path = f"{folder}/{path}" if folder or origin.authority is not None else path
    return _joined(origin, path=_without_dots(path), query=given.query)


def _parts(reference: str) -> _Parts:
    found = _PARTS.fullmatch(reference)
    if found is None:
        raise ValueError("every text is a reference by the grammar of appendix B")
    return _Parts(**found.groupdict())


_KEEP: Final = object()


def _joined(
    parts: _Parts,
    *,
    path: str,
    scheme: str | None = None,
    query: object = _KEEP,
) -> str:
    scheme = scheme or parts.scheme
    query = parts.query if query is _KEEP else query
    text = f"{scheme}:" if scheme is not None else ""
    text += f"//{parts.authority}" if parts.authority is not None else ""
    return text + path + (f"?{query}" if query is not None else "")


def _without_dots(path: str) -> str:
    """Return a path without its `.` and `..` steps; RFC 3986, section 5.2.4."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if len(steps) > 1 or (steps and steps[0]):
                steps.pop()
        elif step != ".":
            steps.append(step)
    if path.endswith(("/.", "/..")) or path in (".", ".."):
        steps.append("")
    joined = "/".join(steps)
    return joined if not path.startswith("/") or joined.startswith("/") else f"/{joined}"
