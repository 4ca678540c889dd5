"""Whose signature on a receipt is believed.

A receipt is an in-toto Statement in a DSSE envelope (https://github.com/secure-systems-lab/dsse,
protocol.md version 1.0.0 and envelope.md, read 2026-11-30) with exactly one Ed25519 signature. Its
id is the SHA-256 of the payload, so that signing again does not change it.

The public keys that count stand in a trust file outside the lake, committed or mounted: whoever
can write the lake must not be able to vouch for what it holds. On a local lake with its own key
this guards against accident and against other users, not against the owner of the folder.
"""

import base64
import binascii
import hashlib
import json
import os
import stat
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import AwareDatetime, Field, ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import (  # re-exported there without `__all__`
    Key,  # pyright: ignore[reportPrivateImportUsage]
    Signature,  # pyright: ignore[reportPrivateImportUsage]
    Signer,  # pyright: ignore[reportPrivateImportUsage]
    SSlibKey,  # pyright: ignore[reportPrivateImportUsage]
)

from scan_pipeline.core.canonical import CanonicalFormError, parse_exact
from scan_pipeline.core.errors import ConfigurationError, TamperedError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.store.project import create_once, lies_in_lake, refusals, replace_file

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@record
class TrustedKey:
    """A public key that is believed.

    Attributes:
        keyid: the key's id in envelopes, as securesystemslib computes it (64 hex digits).
        keytype: always `ed25519`.
        scheme: always `ed25519`.
        public: the raw public key, 64 hex digits.
        added_at: when it was added to the file.
        note: why, or by whom, for people.
    """

    keyid: _Hex32
    keytype: Literal["ed25519"]
    scheme: Literal["ed25519"]
    public: _Hex32
    added_at: AwareDatetime
    note: str

    @classmethod
    def of(cls, key: Key, *, added_at: datetime, note: str) -> "TrustedKey":
        """The entry for a public key; only Ed25519 has one."""
        if (key.keytype, key.scheme) != ("ed25519", "ed25519"):
            raise ConfigurationError(
                f"found a key of type {key.keytype}, scheme {key.scheme}; expected ed25519, the "
                "only one that signs receipts"
            )
        return cls(
            keyid=key.keyid,
            keytype="ed25519",
            scheme="ed25519",
            public=key.keyval["public"],
            added_at=added_at,
            note=note,
        )

    @property
    def fingerprint(self) -> str:
        """`sha256:` and the SHA-256 of the 32 raw bytes, what people compare by eye."""
        return f"sha256:{hashlib.sha256(bytes.fromhex(self.public)).hexdigest()}"

    def to_key(self) -> SSlibKey:
        """The key as securesystemslib verifies with it."""
        return SSlibKey(self.keyid, self.keytype, self.scheme, {"public": self.public})


@record
class Verified:
    """A payload whose signature was checked against the trust file.

    Attributes:
        payload: the bytes that were signed.
        receipt_id: `sha256:` and the SHA-256 of the payload.
        key_id: the trusted key that signed.
    """

    payload: bytes
    receipt_id: str
    key_id: str


@record
class Trust:
    """The keys that are believed, and where they were read."""

    path: Path
    keys: tuple[TrustedKey, ...]

    @classmethod
    def load(cls, path: Path, *, lake: str | None) -> "Trust":
        """Read a trust file strictly.

        Args:
            path: the trust file.
            lake: the lake it vouches for; None where there is none, as for a bundle.

        Raises:
            ConfigurationError: the file is missing, lies inside the lake, may be written by
                everyone, or is not a trust file.
        """
        _refuse_inside(path, lake=lake)
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                raw = file.read()
        except OSError as error:
            raise ConfigurationError(
                f"no trust file at {path}: {error.strerror}; expected the public keys whose "
                "receipts are believed. The first run into an empty local lake writes it; else "
                "restore or mount it, or name it with SCAN_PIPELINE_TRUST"
            ) from error
        if mode & 0o002:
            raise ConfigurationError(
                f"trust file {path} has mode {mode:04o}: everyone may add a key; expected 0644: "
                f"chmod 644 {path}"
            )
        try:
            parse_exact(raw)  # a member named twice is refused: parsers differ on which one counts
            parsed = adapter(_TrustFile).validate_json(raw)
        except ValidationError as error:
            raise ConfigurationError(f"trust file {path}: {refusals(error)}") from error
        except CanonicalFormError as error:
            raise ConfigurationError(f"trust file {path} is not plain JSON: {error}") from error
        for key in parsed.keys:
            _refuse_misnamed(key, path=path)
        if len({key.keyid for key in parsed.keys}) != len(parsed.keys):
            raise ConfigurationError(f"trust file {path} lists a key twice; expected each once")
        return cls(path=path, keys=parsed.keys)

    def holds(self, key_id: str) -> bool:
        """Whether a key is believed."""
        return any(key.keyid == key_id for key in self.keys)

    def verify(self, envelope: bytes, *, payload_type: str = PAYLOAD_TYPE) -> Verified:
        """Check an envelope and give out what was signed; needs no private key.

        Args:
            envelope: as it was written.
            payload_type: what it must hold; a receipt where nothing is said.

        Raises:
            TamperedError: malformed, another payload type, not exactly one signature, a key
                that is not trusted, or a signature that does not fit.
        """
        parsed = _parse_envelope(envelope, payload_type=payload_type)
        signature = parsed.signatures[0]
        trusted = next((key for key in self.keys if key.keyid == signature.keyid), None)
        if trusted is None:
            known = ", ".join(f"{key.keyid} ({key.fingerprint})" for key in self.keys) or "none"
            raise _tampered(
                f"found a signature by key {signature.keyid}",
                expected=f"a key of {self.path} ({known})",
                remedy="add that key if you know whose it is, else treat the receipt as forged",
            )
        payload = _base64(parsed.payload, member="payload")
        signed = Signature(signature.keyid, _base64(signature.sig, member="sig").hex())
        try:
            Envelope(payload, parsed.payload_type, {signed.keyid: signed}).verify(
                [trusted.to_key()], threshold=1
            )
        except UnverifiedSignatureError as error:
            raise _tampered(
                f"found a signature that does not fit the payload {receipt_id(payload)}",
                expected=f"one made by key {trusted.keyid} ({trusted.fingerprint})",
                remedy="the receipt was edited after signing; restore it, or certify again",
            ) from error
        return Verified(payload=payload, receipt_id=receipt_id(payload), key_id=trusted.keyid)


def receipt_id(payload: bytes) -> str:
    """The id of the receipt with this payload: `sha256:` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(payload).hexdigest()}"


def sign(payload: bytes, *, signer: Signer, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Wrap a payload in a signed DSSE envelope: compact JSON, members in order of name."""
    envelope = Envelope(payload, payload_type, {})
    envelope.sign(signer)
    return json.dumps(envelope.to_dict(), sort_keys=True, separators=(",", ":")).encode()


def begin_trust(path: Path, *, key: TrustedKey, lake: str | None) -> None:
    """Write the first key of a trust file that is absent or empty; leave any other as it is."""
    _refuse_inside(path, lake=lake)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not create_once(path, data=_to_bytes((key,)), mode=0o644) and not (
        Trust.load(path, lake=lake).keys
    ):
        replace_file(path, data=_to_bytes((key,)), mode=0o644)


def add_key(path: Path, *, key: TrustedKey, lake: str | None) -> Trust:
    """Believe one more key; the old ones stay, since they vouch for the old receipts.

    The file is replaced whole. Two hands adding at the same moment are not kept apart.

    Raises:
        ConfigurationError: as `Trust.load`; the key's id does not fit the key.
    """
    _refuse_misnamed(key, path=path)
    begin_trust(path, key=key, lake=lake)
    trust = Trust.load(path, lake=lake)
    if trust.holds(key.keyid):
        return trust
    replace_file(path, data=_to_bytes((*trust.keys, key)), mode=0o644)
    return Trust.load(path, lake=lake)


@record
class _TrustFile:
    version: Literal[1]
    keys: tuple[TrustedKey, ...]


@record
class _Signature:
    keyid: str
    sig: str


@record
class _Envelope:
    payload: str
    payload_type: Annotated[str, Field(alias="payloadType")]
    # DSSE allows several signatures; a receipt has one, so that nothing can be appended to it.
    signatures: Annotated[tuple[_Signature, ...], Field(min_length=1, max_length=1)]


def _to_bytes(keys: tuple[TrustedKey, ...]) -> bytes:
    return adapter(_TrustFile).dump_json(_TrustFile(version=1, keys=keys), indent=2) + b"\n"


def _parse_envelope(envelope: bytes, *, payload_type: str) -> _Envelope:
    try:
        parse_exact(envelope)  # refuses a member named twice, as above
        parsed = adapter(_Envelope).validate_json(envelope)
    except (ValidationError, CanonicalFormError) as error:
        why = refusals(error) if isinstance(error, ValidationError) else str(error)
        raise _tampered(
            f"found no DSSE envelope ({why})",
            expected="one JSON object of payload, payloadType and one signature",
            remedy="restore the receipt, or certify again",
        ) from error
    if parsed.payload_type != payload_type:
        raise _tampered(
            f"found the payload type {parsed.payload_type!r}",
            expected=repr(payload_type),
            remedy="this envelope holds something else than a receipt",
        )
    return parsed


def _base64(text: str, *, member: str) -> bytes:
    """Decode base64; DSSE has verifiers take the URL-safe alphabet too, and nothing looser."""
    standard = text.replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(standard, validate=True)
    except (binascii.Error, ValueError):
        decoded = None
    if decoded is None or base64.b64encode(decoded).decode() != standard:
        raise _tampered(
            f"found `{member}` that is not base64",
            expected="the standard or URL-safe alphabet, padded",
            remedy="restore the receipt, or certify again",
        )
    return decoded


def _refuse_misnamed(key: TrustedKey, *, path: Path) -> None:
    """Refuse an entry whose id is not that of its key: an id must not be able to change hands."""
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public))
    if (expected := SSlibKey.from_crypto(public).keyid) != key.keyid:
        raise ConfigurationError(
            f"trust file {path}: found keyid {key.keyid} for the key {key.fingerprint}; expected "
            f"{expected}: correct the entry"
        )


def _refuse_inside(path: Path, *, lake: str | None) -> None:
    if lake is not None and lies_in_lake(path, lake=lake):
        raise ConfigurationError(
            f"the trust file {path} lies inside the lake {lake}; expected it outside: whoever can "
            "write the lake could vouch for it. Move it and set SCAN_PIPELINE_TRUST"
        )


def _tampered(found: str, *, expected: str, remedy: str) -> TamperedError:
    return TamperedError("signature", f"{found}; expected {expected}; {remedy}")
