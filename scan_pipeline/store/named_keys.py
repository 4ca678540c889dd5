"""Public keys as they travel beside what they signed, and the ones that somebody names.

A key that comes with what it signed vouches for nothing: whoever forges the one forges the other.
It is believed where its fingerprint was learned another way, or a trust file lists it.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import Field, ValidationError
from securesystemslib.signer import SSlibKey  # pyright: ignore[reportPrivateImportUsage]

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json, parse_exact
from scan_pipeline.core.errors import ContractError, TamperedError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.store.trust import Trust, TrustedKey

_FINGERPRINT: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII)
_SAID_BY: Final = Path("--fingerprint")
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@record
class ShownKey:
    """A public key as a file shows it; the fingerprint is for people and is computed again."""

    public: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    fingerprint: str


def shown_keys(keys: Iterable[TrustedKey]) -> bytes:
    """Return public keys with their fingerprints, as JSON."""
    told = [{"public": each.public, "fingerprint": each.fingerprint} for each in keys]
    return canonical_json(told) + b"\n"


def pem_of(key: TrustedKey) -> bytes:
    """Return a public key in the form that openssl reads (SubjectPublicKeyInfo, RFC 8410)."""
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public))
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def parse_fingerprint(text: str) -> str:
    """Return a fingerprint as `sha256:` and 64 hex digits, however it was typed.

    Raises:
        ContractError: it is none.
    """
    plain = re.sub(r"[\s:]", "", text.lower().removeprefix("sha256:"))
    found = _FINGERPRINT.fullmatch(plain)
    if found is None:
        raise ContractError(
            f"found the fingerprint {text!r}; expected SHA256: and the 64 hex digits that its "
            "owner gives out"
        )
    return f"sha256:{found[1]}"


def trust_named(shown: bytes, fingerprints: Iterable[str]) -> Trust:
    """Return trust in those of the shown keys whose fingerprints were named, and in no other.

    Raises:
        ContractError: a fingerprint is none.
        TamperedError: the keys cannot be read, or none of them was named.
    """
    wanted = {parse_fingerprint(each) for each in fingerprints}
    try:
        parse_exact(shown)  # a member named twice is refused
        told: tuple[ShownKey, ...] = adapter(tuple[ShownKey, ...]).validate_json(shown)
        held = [_key(each.public) for each in told]
    except (ValidationError, CanonicalFormError, ValueError) as error:
        raise TamperedError("keys", "the keys that were sent along are none") from error
    believed = tuple(each for each in held if each.fingerprint in wanted)
    if not believed:
        found = ", ".join(each.fingerprint for each in held) or "none"
        raise TamperedError(
            "keys",
            f"found the keys {found}; expected one of {', '.join(sorted(wanted))}: this was signed "
            "by somebody else",
        )
    return Trust(path=_SAID_BY, keys=believed)


def _key(public: str) -> TrustedKey:
    """Return a key under the id that is its own."""
    key = SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    return TrustedKey.of(key, added_at=_LONG_AGO, note="named by its fingerprint")
