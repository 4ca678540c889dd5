"""One byte form for a JSON value, and the digests that rest on it.

The form is RFC 8785 (JSON Canonicalization Scheme, June 2020) with one
difference: a number keeps its exact decimal value instead of passing through a
64-bit float. For every float both give the same bytes.

- Members are sorted by the UTF-16 code units of their names; no white space.
- Strings are UTF-8, never normalized; escaped are only `"`, the backslash and
  U+0000 to U+001F (short forms where JSON has one, else lower-case hex).
- A number is written by its value alone, so that `1.50`, `1.5` and `15e-1` are
  `1.5`. With the significant digits d1..dk (no zero first or last) and the value
  0.d1..dk x 10^n it is, as in ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20):
  plain digits for k <= n <= 21, a point inside for 0 < n <= 21, `0.` and zeros for
  -6 < n <= 0, else `d1.d2..dk` and `e`, a sign and n - 1. Every zero is `0`.

What has no such form is refused: a number that is not finite, a lone surrogate, a
name that is no string, the same member twice, nesting deeper than `MAX_DEPTH`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from hashlib import sha256
from typing import Any, Final, NoReturn, TypeAlias, cast

import msgspec

from scan_pipeline.core.errors import EvidenceError

JsonValue: TypeAlias = (
    bool | int | float | Decimal | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
)
"""What JSON can say. Parsing gives lists, dicts, ints and Decimals, never a float."""

MAX_DEPTH: Final = 128
"""Lists and objects inside one another, at most; fixed, so that no stack decides it."""

_PLAIN: Final = 10**21  # from here on a whole number is written with an exponent
_SHORT: Final = 640  # digits; below it int() is never refused, whatever the interpreter's limit
_EXACT: Final = Context(traps=[InvalidOperation])  # nobody else's context may turn an error to NaN

_text = msgspec.json.encode  # its escaping of strings is RFC 8785's; a test walks all of Unicode


class CanonicalFormError(EvidenceError):
    """A value or text has no canonical form."""


def canonical_json(value: JsonValue) -> bytes:
    """Return the canonical bytes of a value.

    Raises:
        CanonicalFormError: the value holds something that JSON cannot say exactly.
    """
    try:
        return _encode(value, 1)
    except UnicodeEncodeError as error:
        raise _lone_surrogate(error) from None


def parse_exact(text: bytes) -> JsonValue:
    """Parse JSON strictly and without loss: numbers become int or Decimal.

    A whole number of more than 640 digits is a Decimal too; its value decides, not its type.

    Raises:
        CanonicalFormError: the text is not UTF-8, not exactly one JSON value, or has no
            canonical form.
    """
    try:
        value: JsonValue = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_members,
            parse_int=_whole,
            parse_float=_decimal,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise CanonicalFormError(
            f"found bytes that are not UTF-8 at offset {error.start}; expected JSON in UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise CanonicalFormError(
            f"found no JSON value at character {error.pos} ({error.msg}); expected exactly one"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if b"\\u" in text or text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        canonical_json(value)  # only such a text can hold a lone surrogate or be too deep
    return value


def canonical_form(record: bytes) -> bytes:
    """Return the canonical form of a JSON text; equal forms mean an equal value."""
    return canonical_json(parse_exact(record))


def digest_of(value: JsonValue) -> bytes:
    """Return SHA-256 of the canonical bytes of a value (32 bytes)."""
    return sha256(canonical_json(value)).digest()


def key_bytes(values: Sequence[str | int]) -> bytes:
    """Return the key of a record: the canonical bytes of the array of its key fields.

    No case folding and no normalization: `["1"]` differs from `[1]`, a composed letter from
    the same letter with a combining accent.

    Raises:
        CanonicalFormError: no field, or one that is neither exactly a str nor exactly an int.
    """
    if not values or isinstance(values, str):
        raise CanonicalFormError("found no array of key fields; expected at least one field")
    try:
        if len(values) == 1 and type(values[0]) is str:  # nearly every key of nearly every scan
            return b"[%b]" % _text(values[0])
        return b"[%b]" % b",".join([_KEY_FIELD[type(value)](value) for value in values])
    except KeyError as error:
        kind: type = error.args[0]
        raise CanonicalFormError(
            f"found a {kind.__name__} as a key field; expected a string or an integer"
        ) from None
    except UnicodeEncodeError as error:
        raise _lone_surrogate(error) from None


def key_hash(key: bytes) -> bytes:
    """Return SHA-256(0x02 || key bytes), which orders the leaves (32 bytes)."""
    return sha256(b"\x02" + key).digest()


def key_hashes(keys: Iterable[bytes]) -> list[bytes]:
    """Return `key_hash` of each key."""
    digest = sha256
    return [digest(b"\x02" + key).digest() for key in keys]


def leaf_hash(record: bytes | memoryview) -> bytes:
    """Return SHA-256(0x00 || record bytes), RFC 9162's leaf (section 2.1.1; 32 bytes)."""
    return sha256(b"\x00" + record).digest()


def leaf_hashes(records: Iterable[bytes]) -> list[bytes]:
    """Return `leaf_hash` of each record."""
    digest = sha256
    return [digest(b"\x00" + record).digest() for record in records]


def items_digest(leaves: Iterable[bytes]) -> bytes:
    """Return SHA-256 over the leaf hashes of a page, joined in page order (32 bytes).

    Over leaf hashes rather than the body, so that the staged records still give it when the
    bodies are gone. A page without records: SHA-256 of nothing.
    """
    return sha256(b"".join(leaves)).digest()


def _encode(value: object, depth: int) -> bytes:
    match value:
        case str():
            return _text(value[:])  # the slice of a subclass is a plain str
        case bool():
            return b"true" if value else b"false"
        case int():
            return _encode_int(value)
        case None:
            return b"null"
        case Decimal():
            return _encode_decimal(value)
        case float():
            return _encode_decimal(Decimal(float.__repr__(value)))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            below = _below(depth)
            return b"[%b]" % b",".join([_encode(item, below) for item in items])
        case Mapping():
            return _encode_object(cast("Mapping[str, object]", value), depth)
        case _:
            raise CanonicalFormError(
                f"found a {type(value).__name__}; expected what JSON can say: "
                "null, a boolean, number, string, list or object"
            )


def _encode_int(value: int) -> bytes:
    if -_PLAIN < value < _PLAIN:
        return b"%d" % value
    return _encode_decimal(Decimal(value))


def _encode_decimal(value: Decimal) -> bytes:
    sign, figures, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise CanonicalFormError("found NaN or an infinity; expected a finite number")
    text = "".join(map(str, figures))
    point = len(text) + exponent  # the n of the module's rule
    digits = text.rstrip("0")
    k = len(digits)
    if k == 0:
        return b"0"
    if k <= point <= 21:
        plain = digits + "0" * (point - k)
    elif 0 < point <= 21:
        plain = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        plain = f"0.{'0' * -point}{digits}"
    else:
        fraction = f".{digits[1:]}" if k > 1 else ""
        plain = f"{digits[0]}{fraction}e{point - 1:+d}"
    return f"{'-' * sign}{plain}".encode()


def _encode_object(members: Mapping[str, object], depth: int) -> bytes:
    below = _below(depth)
    names = _in_order(members)
    return b"{%b}" % b",".join(
        [b"%b:%b" % (_text(name[:]), _encode(members[name], below)) for name in names]
    )


def _in_order(names: Iterable[str]) -> list[str]:
    try:
        plain = all(map(str.isascii, names))
    except TypeError:
        raise CanonicalFormError(
            "found a member's name that is no string; expected only strings"
        ) from None
    return sorted(names) if plain else sorted(names, key=lambda name: name.encode("utf-16-be"))


def _below(depth: int) -> int:
    if depth > MAX_DEPTH:
        raise _too_deep()
    return depth + 1


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise CanonicalFormError("found the same member twice in one object; expected it once")
    return members


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _SHORT else _decimal(digits)


def _decimal(number: str) -> Decimal:
    try:
        return Decimal(number, _EXACT)
    except InvalidOperation:
        raise CanonicalFormError(
            "found a number whose exponent is beyond 10^18; expected one that can be held exactly"
        ) from None


def _refuse_constant(word: str) -> NoReturn:
    raise CanonicalFormError(f"found {word}, which is not JSON; expected a finite number")


def _lone_surrogate(error: UnicodeEncodeError) -> CanonicalFormError:
    return CanonicalFormError(
        f"found a lone surrogate at position {error.start} of a string; expected Unicode text"
    )


def _too_deep() -> CanonicalFormError:
    return CanonicalFormError(
        f"found lists and objects nested more than {MAX_DEPTH} deep; expected at most that"
    )


_KEY_FIELD: Final[dict[type, Callable[[Any], bytes]]] = {str: _text, int: _encode_int}
