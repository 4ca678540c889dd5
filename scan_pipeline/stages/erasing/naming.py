"""How a record's key is recognized where it is named: in columns, in texts, in bodies."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from scan_pipeline.core.canonical import key_bytes, key_hash
from scan_pipeline.core.value import record

REDACTED: Final = "[redacted]"
"""What stands where the key stood in a text."""


@record
class Named:
    """The key of the record that is erased.

    A key of one text is looked for in every text, as a word of its own: `customer-42` is not named
    by `customer-421`. Of a key of several fields, or of a number, nothing but the whole key as it
    is written in findings can be told from other text.

    Attributes:
        values: of the key fields, in their order.
    """

    values: tuple[str | int, ...]

    @cached_property
    def canonical(self) -> str:
        """The canonical key, as records and findings hold it."""
        return key_bytes(self.values).decode()

    @cached_property
    def hash(self) -> bytes:
        """The key hash."""
        return key_hash(self.canonical.encode())

    @cached_property
    def _word(self) -> "re.Pattern[str]":
        forms = {self.canonical, *_escaped(self.canonical)}
        if len(self.values) == 1 and isinstance(value := self.values[0], str):
            forms |= {value, *_escaped(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        return re.compile(
            "|".join(rf"(?<![\w-]){re.escape(each)}(?![\w-])" for each in longest_first)
        )

    @cached_property
    def _bytes(self) -> "re.Pattern[bytes]":
        """The same over bytes, where a neighbour is part of a word if it is a letter or digit."""
        return re.compile(self._word.pattern.encode())

    def is_in(self, text: str) -> bool:
        """Say whether a text names the key."""
        return self._word.search(text) is not None

    def is_in_bytes(self, data: bytes) -> bool:
        """Say whether bytes name the key."""
        return self._bytes.search(data) is not None

    def without(self, text: str) -> str:
        """Return a text with the key taken out."""
        return self._word.sub(REDACTED, text)

    def without_in(self, value: Any) -> Any:
        """Return a JSON value with the key taken out of every text in it."""
        match value:
            case str():
                return self.without(value)
            case Mapping():
                return {name: self.without_in(each) for name, each in value.items()}
            case Sequence():
                return [self.without_in(each) for each in value]
            case _:
                return value


def _escaped(text: str) -> tuple[str, ...]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
