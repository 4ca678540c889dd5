"""Columns that keep a value as its JSON text, filled for many records at once."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from scan_pipeline.core.canonical import MAX_DEPTH, CanonicalFormError, canonical_form

# What is canonical as it stands (core.canonical): a text without escapes, a word, a number of few
# digits that has no zero too many and needs no exponent.
_AS_IT_STANDS: Final = re.compile(
    rb'"[^"\\]*"|true|false'
    rb"|0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,14})\.(?!0{6})[0-9]{0,14}[1-9]"
)
_MANY_DIGITS: Final = re.compile(rb"[0-9]{20}")  # from 10^21 on an integer has an exponent
_NULL: Final = b"null"

_Texts = list[str | msgspec.UnsetType | None]


class JsonColumns:
    """Finds the members of some names in records, each as its canonical JSON text.

    The records were parsed by a strict reader before: an object, and no member stands twice.

    Args:
        names: of the members.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {f"m{number}": name for number, name in enumerate(names)}
        kind: Any = msgspec.Raw | msgspec.UnsetType
        fields = [(each, kind, msgspec.UNSET) for each in self._names]
        self._decoder = msgspec.json.Decoder(
            msgspec.defstruct("Members", fields, rename=self._names)
        )

    def texts(self, lines: bytes) -> Mapping[str, _Texts] | None:
        """Return the texts by name, one a record: None for null, UNSET where there is no member.

        Args:
            lines: records joined by line breaks.

        Returns:
            None where a value has no canonical form.
        """
        try:
            rows = self._decoder.decode_lines(lines)
            return {
                name: [_text(getattr(row, member)) for row in rows]
                for member, name in self._names.items()
            }
        except (msgspec.DecodeError, CanonicalFormError):
            return None

    def complete(self, table: pa.Table, lines: bytes) -> tuple[pa.Table, Mapping[str, int]] | None:
        """Put the texts in the place of the columns that the reader inferred.

        Returns:
            The table, and how many records lack each member; None as `texts`.
        """
        found = self.texts(lines)
        if found is None or any(len(each) != table.num_rows for each in found.values()):
            return None
        inferred = [name for name in table.column_names if name in found]
        table, lacking = table.drop_columns(inferred), dict[str, int]()
        for name, texts in found.items():
            lacking[name] = texts.count(msgspec.UNSET)
            values = [None if each is msgspec.UNSET else each for each in texts]
            table = table.append_column(name, pa.array(values, pa.string()))
        return table, lacking


def _text(raw: msgspec.Raw | msgspec.UnsetType) -> str | msgspec.UnsetType | None:
    if raw is msgspec.UNSET:
        return raw
    text = bytes(raw)
    if _AS_IT_STANDS.fullmatch(text):
        return text.decode()
    return None if text == _NULL else _canonical(text).decode()


def _canonical(text: bytes) -> bytes:
    """Return the canonical form of a text; raises CanonicalFormError.

    A nested value goes through a decoder that keeps each number's text and an encoder that sorts
    members, which is the canonical order as long as their names are ASCII.
    """
    deep = text.count(b"[") + text.count(b"{") > MAX_DEPTH
    if deep or not text.isascii() or b"\\u" in text or _MANY_DIGITS.search(text):
        return canonical_form(text)
    try:
        return _ENCODER.encode(_DECODER.decode(text))
    except (msgspec.DecodeError, OverflowError):
        return canonical_form(text)


def _number(text: str) -> msgspec.Raw:
    """Return the canonical form of a number that has a fraction or an exponent."""
    if "e" not in text and "E" not in text:
        number = text.rstrip("0").rstrip(".").encode()
        if _AS_IT_STANDS.fullmatch(number):
            return msgspec.Raw(number)
    return msgspec.Raw(canonical_form(text.encode()))


_DECODER: Final = msgspec.json.Decoder(float_hook=_number)
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
