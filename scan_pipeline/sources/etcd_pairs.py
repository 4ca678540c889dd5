"""A key-value pair of etcd: from its JSON to a record, exactly.

A record is the canonical JSON of `key`, `value`, `create_revision`, `mod_revision`, `version` and
`lease`, the numbers exact. Where bytes are not what `keys` or `values` of the scan says, the member
is `key_base64` or `value_base64` instead, so that such a record is seen and never changed.

In JSON, bytes travel as base64, 64-bit numbers as texts, and members that hold their type's default
are left out (protobuf.dev/programming-guides/json, read 2026-11-30).
"""

from base64 import b64decode, b64encode
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.errors import ProtocolError

MEMBERS: Final = frozenset({"key", "value", "create_revision", "mod_revision", "version", "lease"})
"""Members of a key-value pair (api/mvccpb/kv.proto of etcd, read 2026-11-30)."""

NUMBERS: Final = ("create_revision", "mod_revision", "version", "lease")

Encoding: TypeAlias = Literal["text", "json", "base64"]
"""What bytes are: UTF-8 text, a JSON value in UTF-8, or anything at all."""


def pair_record(pair: Any, *, keys: Encoding, values: Encoding) -> bytes:
    """Return a pair as the bytes of its record.

    Raises:
        ProtocolError: `reported_invalid`, it is no pair.
    """
    if not isinstance(pair, dict) or not MEMBERS.issuperset(pair) or not pair.get("key"):
        raise ProtocolError(
            "reported_invalid",
            f"kvs holds something else than a key with {', '.join(sorted(MEMBERS))}",
        )
    return canonical_json(
        {
            **_told("key", bytes_at(pair, "key"), keys),
            **_told("value", bytes_at(pair, "value"), values),
            **{name: whole_at(pair, name) for name in NUMBERS},
        }
    )


def whole_at(around: Any, name: str) -> int:
    """Return a whole number that is a text or a number; one left out is 0.

    Raises:
        ProtocolError: `reported_invalid`, it is neither.
    """
    value = around.get(name, 0) if isinstance(around, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ProtocolError("reported_invalid", f"{name} is not a whole number")
    return value


def bytes_at(pair: Any, name: str) -> bytes:
    """Return bytes that are base64; those left out are empty.

    Raises:
        ProtocolError: `reported_invalid`, they are not base64.
    """
    try:
        return b64decode(pair.get(name, ""), validate=True)
    except (ValueError, TypeError) as error:
        raise ProtocolError("reported_invalid", f"{name} of a pair is not base64") from error


def in_base64(raw: bytes) -> str:
    """Return bytes as JSON carries them."""
    return b64encode(raw).decode("ascii")


def _told(name: str, raw: bytes, encoding: Encoding) -> dict[str, Any]:
    """Return a member that holds bytes as they are declared, or beside its name as base64."""
    try:
        match encoding:
            case "text":
                return {name: raw.decode()}
            case "json":
                return {name: parse_exact(raw)}
            case "base64":
                return {name: in_base64(raw)}
    except (UnicodeDecodeError, CanonicalFormError):
        return {f"{name}_base64": in_base64(raw)}
