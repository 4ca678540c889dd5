"""The `Link` header: which address a relation names.

RFC 8288, section 3 and appendix B.2 (read 2026-11-30): several links in one field or in several, a
link's parameters in any order, quoted or not, several relations in one `rel`, the first `rel` the
one that counts, names without regard to case.
"""

import re
from collections.abc import Iterator
from typing import Final

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.value import record

_TARGET: Final = re.compile(r"\s*<([^>]*)>")
_PARAMETER: Final = re.compile(
    r'\s*;\s*(?P<name>[^\s=;,"<>]+)?\s*(?:=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s;,"]*)))?'
)
_SEPARATOR: Final = re.compile(r"\s*(?:,[\s,]*|$)")


@record
class Link:
    """One link: its target as written, its relations in lower case, and its anchor."""

    target: str
    relations: tuple[str, ...]
    anchor: str | None


def target_of(field: str | None, *, relation: str) -> str | None:
    """Return the target that a `Link` field names for a relation, None where it names none.

    Args:
        field: the field's value, several lines joined by commas; None where there is no field.
        relation: relation type, e.g. `next`.

    Raises:
        ProtocolError: `continuation_invalid`, the field is not one of links, or names several
            targets.
    """
    found = {
        link.target
        for link in links(field or "")
        # A link with an anchor speaks of another resource than the one that was asked for.
        if relation.lower() in link.relations and link.anchor in (None, "")
    }
    if len(found) > 1:
        raise ProtocolError(
            "continuation_invalid",
            f"the Link header names {len(found)} targets for rel={relation}; expected one",
        )
    return next(iter(found), None)


def links(field: str) -> Iterator[Link]:
    """Yield the links of a field in order.

    Raises:
        ProtocolError: `continuation_invalid`, it is not a field of links.
    """
    at = len(field) - len(field.lstrip(" \t,"))
    while at < len(field):
        target = _TARGET.match(field, at)
        if target is None:
            raise _malformed(at)
        parameters: dict[str, str] = {}
        at = target.end()
        while (each := _PARAMETER.match(field, at)) is not None:
            at = each.end()
            name = (each["name"] or "").lower()
            quoted = each["quoted"]
            value = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else each["bare"] or ""
            parameters.setdefault(name, value)  # the first of a name counts
        yield Link(
            target=target[1],
            relations=tuple(parameters.get("rel", "").lower().split()),
            anchor=parameters.get("anchor"),
        )
        separator = _SEPARATOR.match(field, at)
        if separator is None:
            raise _malformed(at)
        at = separator.end()


def _malformed(at: int) -> ProtocolError:
    return ProtocolError(
        "continuation_invalid",
        f"the Link header is none from its character {at + 1} on; expected links as of RFC 8288",
    )
