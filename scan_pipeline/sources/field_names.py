"""Which fields there are at a place of a scan file, and where a refusal without a place belongs."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.value import adapter

Path = tuple[str | int, ...]

MOST_LISTED: Final = 16
"""Names that a message lists; of more, only a likely one is told."""


def unknown_field(kind: Any, at: Path) -> str:
    """Return what is said of a field that a record does not have: a likely one, else all."""
    *around, name = at
    return unlisted(str(name), _names_at(kind, tuple(around)))


def unlisted(name: str, known: Sequence[str]) -> str:
    """Return what is said of a name that is none of those that are known."""
    likely = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if likely:
        return f"unknown field; did you mean {likely[0]}?"
    if 0 < len(known) <= MOST_LISTED:
        return f"unknown field; expected one of: {', '.join(known)}"
    return "unknown field; remove it or correct its name"


def place_of(kind: Any, raw: Any, refusal: str) -> Path:
    """Return the innermost member without which a refusal is no longer this one.

    A rule over several fields is raised without a place by the record that has it. What it is
    about is found by leaving out one member after another: where exactly one settles it, the rule
    is about that one.

    Args:
        kind: what the value was parsed as.
        raw: the value.
        refusal: the message.
    """
    at: Path = ()
    inner = raw
    while True:
        steps = [s for s in _steps(inner) if _refusal(kind, _without(raw, (*at, s))) != refusal]
        if len(steps) != 1:
            return at
        at, inner = (*at, steps[0]), inner[steps[0]]


def _names_at(kind: Any, at: Path) -> list[str]:
    kinds = [kind]
    for step in at:
        kinds = [inner for each in kinds for inner in _inside(each, step)]
    records = [each for each in _plain(kinds) if is_dataclass(each)]
    return list(dict.fromkeys(name for each in records for name in _fields(each)))


def _fields(kind: Any) -> dict[str, Any]:
    """Return a record's fields and their types, by the names that a file gives them."""
    hints = get_type_hints(kind, include_extras=True)
    return {_written(each.name, hints[each.name]): hints[each.name] for each in fields(kind)}


def _written(name: str, hint: Any) -> str:
    aliases = (getattr(each, "alias", None) for each in getattr(hint, "__metadata__", ()))
    return next((each for each in aliases if each), name)


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    for each in _plain([kind]):
        if is_dataclass(each):
            yield from (hint for name, hint in _fields(each).items() if name == step)
        elif get_origin(each) is tuple and isinstance(step, int):
            yield from (inner for inner in get_args(each) if inner is not Ellipsis)


def _plain(kinds: list[Any]) -> Iterator[Any]:
    """Yield the kinds behind annotations and unions."""
    for each in kinds:
        if get_origin(each) is Annotated:
            yield from _plain([get_args(each)[0]])
        elif get_origin(each) in (Union, UnionType):
            yield from _plain(list(get_args(each)))
        else:
            yield each


def _steps(value: Any) -> list[str | int]:
    if isinstance(value, Mapping):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _without(raw: Any, at: Path) -> Any:
    changed = deepcopy(raw)
    inner = changed
    for step in at[:-1]:
        inner = inner[step]
    del inner[at[-1]]
    return changed


def _refusal(kind: Any, raw: Any) -> str | None:
    try:
        adapter(kind).validate_json(json.dumps(raw))
    except ScanPipelineError as error:
        return str(error)
    except ValidationError:
        return ""
    return None
