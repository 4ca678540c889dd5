"""Paths of records that are dropped or masked before anything is stored."""

from collections.abc import Sequence
from typing import Final

from scan_pipeline.core.canonical import JsonValue
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record

MASKED: Final = "[masked]"
"""What stands in the place of a masked text; of any other masked value there stands null."""


@record
class RedactFacts:
    """What of each record is never stored: it is taken out of a page before the page is recorded.

    Attributes:
        drop: paths of members that are left out, e.g. `contact.phone`; through lists, of each item.
        mask: paths of members whose value is replaced: a text by `[masked]`, another value by null.
    """

    drop: tuple[FieldPath, ...] = ()
    mask: tuple[FieldPath, ...] = ()

    def __post_init__(self) -> None:
        paths = (*self.drop, *self.mask)
        if not paths or not all(paths) or len(set(paths)) != len(paths):
            raise ContractError(
                "found no path, the record itself, or a path twice; expected members to drop or to "
                "mask, each once"
            )

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """All paths."""
        return (*self.drop, *self.mask)

    def touches(self, field: str) -> bool:
        """Say whether a member of records, or something in it, is dropped or masked."""
        return any(path[0] == field for path in self.paths)


@record
class RedactedPaths:
    """Which paths of records were dropped or masked before storing, as a receipt says it."""

    dropped: tuple[str, ...]
    masked: tuple[str, ...]

    @classmethod
    def of(cls, facts: RedactFacts | None) -> "RedactedPaths | None":
        """Return what a receipt says of a source's facts."""
        if facts is None:
            return None
        return cls(
            dropped=tuple(".".join(path) for path in facts.drop),
            masked=tuple(".".join(path) for path in facts.mask),
        )


def redacted(value: JsonValue, facts: RedactFacts) -> JsonValue:
    """Return a record without what is to be dropped, and with masks in it; a new value."""
    for path in facts.drop:
        value = _changed(value, path, drop=True)
    for path in facts.mask:
        value = _changed(value, path, drop=False)
    return value


def _changed(value: JsonValue, path: Sequence[str], *, drop: bool) -> JsonValue:
    if isinstance(value, list):
        return [_changed(each, path, drop=drop) for each in value]
    first, inner = path[0], path[1:]
    if not isinstance(value, dict) or first not in value:
        return value
    if inner:
        return {**value, first: _changed(value[first], inner, drop=drop)}
    if drop:
        return {name: each for name, each in value.items() if name != first}
    return {**value, first: MASKED if isinstance(value[first], str) else None}
