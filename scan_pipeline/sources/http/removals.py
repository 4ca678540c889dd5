"""Records that are none: they say that one was removed.

OData JSON Format 4.01, section 15 (docs.oasis-open.org, excerpts read 2026-11-30): a deleted entity
holds `@removed` with a reason, and either its key fields or its entity-id, whose last segment ends
with the key: `Customers('ALFKI')`, `Items(OrderID=1,Line=2)`, quotes doubled inside text.
Microsoft Graph (learn.microsoft.com/graph/delta-query-overview, read 2026-11-30) sends `id` and
`@removed`; its drive items have the facet `deleted`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.source import Removal

_TEXT: Final = r"'(?:[^']|'')*'"
_KEYS: Final = re.compile(rf"\((?P<inner>(?:{_TEXT}|[^()'])*)\)$")
_KEY: Final = re.compile(rf"(?:(?P<name>[^\W\d]\w*)=)?(?P<value>{_TEXT}|[^,']+)(?:,|$)")
_WHOLE: Final = re.compile(r"-?\d{1,19}")


@record
class RemovedFacts:
    """What tells a removal from a record.

    Attributes:
        at: where in it that stands, e.g. `["@removed"]`; its presence says it (null and false do
            not), or a value.
        equals: the value that says it, e.g. `cancelled`; None for any.
        reason_at: where it says why; None for a member `reason` of what stands at `at`.
        entity_id_at: where the entity-id stands whose key parts name what was removed; None where
            the key fields do.
    """

    at: FieldPath
    equals: str | int | bool | None = None
    reason_at: FieldPath | None = None
    entity_id_at: FieldPath | None = None


def removals(records: Sequence[bytes], facts: RemovedFacts) -> dict[int, Removal]:
    """Return which records say that one was removed, by row from 0."""
    found = dict[int, Removal]()
    name = json.dumps(facts.at[-1]).encode()
    for row, text in enumerate(records):
        if name not in text and b"\\u" not in text:  # a name may be written in escapes
            continue
        try:
            value: Any = json.loads(text)
        except ValueError:
            continue  # told where records are held against their schema
        if _says_so(value_at(value, facts.at), facts):
            found[row] = Removal(reason=_reason(value, facts), key=_key(value, facts))
    return found


def key_of_entity(entity_id: str) -> Mapping[str, str | int] | None:
    """Return the key that an entity-id ends with, by name; a single one has the empty name.

    None where it ends with none, or with something else.
    """
    found = _KEYS.search(unquote(entity_id.partition("?")[0]))
    if found is None or not found["inner"]:
        return None
    key, end = dict[str, str | int](), 0
    for each in _KEY.finditer(found["inner"]):
        name = each["name"] or ""
        if each.start() != end or name in key:
            return None
        end = each.end()
        key[name] = _literal(each["value"].strip())
    return key if end == len(found["inner"]) and (len(key) == 1 or "" not in key) else None


def _literal(text: str) -> str | int:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return int(text) if _WHOLE.fullmatch(text) else text


def _says_so(value: Any, facts: RemovedFacts) -> bool:
    if facts.equals is not None:
        return type(value) is type(facts.equals) and value == facts.equals
    return value is not ABSENT and value is not None and value is not False


def _reason(value: Any, facts: RemovedFacts) -> str:
    at = (*facts.at, "reason") if facts.reason_at is None else facts.reason_at
    reason = value_at(value, at)
    return reason if isinstance(reason, str) and reason else "removed"


def _key(value: Any, facts: RemovedFacts) -> Mapping[str, str | int] | None:
    if facts.entity_id_at is None:
        return None
    entity_id = value_at(value, facts.entity_id_at)
    return key_of_entity(entity_id) if isinstance(entity_id, str) else None
