"""The private keys: one that signs receipts, and one a scan that seals bodies and tokens.

They lie in one folder outside the lake (0700, files 0600): `signing_key.pem` (PKCS #8) and
`<scan>.data_key.json`. A key is created only by a first run into a local lake, or by `init`;
everywhere else a missing key is an error, since a fresh one would hide that the old one is lost.

A data key file holds a list, oldest first: the last one that is not destroyed seals, every one
left opens. Destroying a key sets `key` to null and `destroyed_at`; its id stays, so that what it
sealed can be named as erased rather than taken for damaged.
"""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import AwareDatetime, Field, ValidationError
from securesystemslib.signer import (  # re-exported there without `__all__`
    CryptoSigner,  # pyright: ignore[reportPrivateImportUsage]
)

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.store.project import Project, create_once, refusals
from scan_pipeline.store.secret_files import create_secret, read_secret
from scan_pipeline.store.trust import Trust, TrustedKey, begin_trust

SIGNING_KEY_FILE: Final = "signing_key.pem"
DATA_KEY_BYTES: Final = 32

Creation: TypeAlias = Literal["first_run", "init", "never"]
"""Who asks for a key: a run, which creates it for a fresh local lake; `init`, for a remote one
too; or a reader, who creates nothing."""

_BEGUN_BY: Final[Mapping[Creation, str]] = {
    "first_run": "begun by the first run",
    "init": "begun by init",
    "never": "",
}
"""What a trust file notes of a key."""

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Gives that many unpredictable bytes; `os.urandom` outside tests."""


@record
class DataKey:
    """The key that seals a scan's bodies and tokens.

    Attributes:
        key_id: 16 hex digits, derived from the key.
        key: 32 bytes for AES-256-GCM; never shown.
        older: the keys it replaced, newest first; they open what they sealed, and seal nothing.
        destroyed: ids of keys that were destroyed; what they sealed is erased.
    """

    key_id: str
    key: bytes
    older: tuple["DataKey", ...] = ()
    destroyed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"DataKey(key_id={self.key_id!r}, older={self.older!r})"


def signing_signer(
    project: Project,
    *,
    now: datetime,
    create: Creation = "first_run",
    random: RandomBytes = os.urandom,
) -> CryptoSigner:
    """Load the key that signs receipts, or begin with one.

    A key and its trust file are begun only where there is nothing yet to vouch for: no receipts
    in the local lake (a remote one cannot be looked into from here: `init` answers for it) and no
    key in the trust file. Call it at the start of a run, before anything is written.

    Args:
        project: where lake, keys and trust file are.
        now: the moment noted in a trust file that is begun; with a time zone.
        create: who asks.
        random: source of a new key.

    Raises:
        ConfigurationError: the key or its trust file is missing and may not be begun here, or
            the key is not in the trust file, or its file is open to others or no Ed25519 key.
    """
    # Looked up before the key: whoever came first wrote the key before trust file and receipts,
    # so that a run that sees either of them here is sure to find the key below.
    hindrance = _why_not_first(project, create=create)
    path = project.keys / SIGNING_KEY_FILE
    if hindrance is None and not path.exists():
        private = Ed25519PrivateKey.from_private_bytes(random(32))
        create_secret(path, data=CryptoSigner(private).private_bytes)
    pem = read_secret(path)
    if pem is None:
        raise ConfigurationError(
            f"no signing key at {path}; expected the Ed25519 key of {project.trust}, since "
            f"{hindrance}: restore it there, or name its folder with SCAN_PIPELINE_KEYS. A new key "
            "is only begun where there is nothing yet to vouch for, by a first run into a local "
            "lake or by `scan-pipeline init`"
        )
    signer = _signer(pem, path=path)
    public = TrustedKey.of(signer.public_key, added_at=now, note=_BEGUN_BY[create])
    if hindrance is None:
        begin_trust(project.trust, key=public, lake=project.lake)
    if not Trust.load(project.trust, lake=project.lake).holds(public.keyid):
        raise ConfigurationError(
            f"the signing key at {path} is {public.fingerprint}, and {project.trust} does not list "
            "it; expected it there, or its receipts would be refused: add it to the trust file, or "
            "put the listed key in its place"
        )
    return signer


def data_key(
    project: Project,
    *,
    scan: str,
    now: datetime,
    create: Creation = "first_run",
    random: RandomBytes = os.urandom,
) -> DataKey:
    """Load the key that seals a scan's bodies and tokens, or begin with one.

    It is begun only for a scan without evidence in a local lake, or by `init`. Where every key was
    destroyed, a run into a local lake begins another beside them: their ids stay and say what is
    erased, so that the new one hides nothing.

    Args:
        project: where lake and keys are.
        scan: name of the scan, `[a-z][a-z0-9_]*`.
        now: the moment noted with a new key; with a time zone.
        create: who asks.
        random: source of a new key.

    Raises:
        ContractError: the name is none.
        ConfigurationError: the key is missing or destroyed and none may be begun here, or the
            file is open to others, malformed or of another scan.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", scan):
        raise ContractError(f"found the scan name {scan!r}; expected [a-z][a-z0-9_]*")
    path = project.keys / f"{scan}.data_key.json"
    hindrance = _why_no_key(project, create=create, within=Path("evidence") / scan)  # before it
    if hindrance is None and not path.exists():
        create_secret(path, data=_new_key_file(random(DATA_KEY_BYTES), scan=scan, now=now))
    raw = read_secret(path)
    if raw is None:
        raise ConfigurationError(
            f"no data key at {path}; expected the key that seals {scan}, since {hindrance}: "
            "restore it there, name its folder with SCAN_PIPELINE_KEYS, or begin one: "
            f"scan-pipeline init --scan {scan}"
        )
    file = _read_file(raw, scan=scan, path=path)
    may_begin = create == "init" or (create == "first_run" and project.local_lake is not None)
    if may_begin and all(each.key is None for each in file.keys):
        file = _begin_another(file, path=path, key=random(DATA_KEY_BYTES), now=now)
    return _data_key(file, path=path)


def keyed_digest(data: str, *, key: DataKey) -> str:
    """Name a token or key in a log without telling it: 16 hex digits, equal for equal data.

    HMAC-SHA256 under a subkey of the data key (HKDF, RFC 5869), so that a guess cannot be
    confirmed from the log alone.
    """
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"scan-pipeline/log-digest/v1")
    # JSON may carry lone surrogates; an encoding error would print the token it could not encode.
    encoded = data.encode(errors="surrogatepass")
    return hmac.digest(hkdf.derive(key.key), encoded, "sha256").hex()[:16]


@record
class _StoredKey:
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    algorithm: Literal["AES-256-GCM"]
    created_at: AwareDatetime
    destroyed_at: AwareDatetime | None
    key: str | None  # base64


@record
class _KeyFile:
    version: Literal[1]
    scan: str
    keys: Annotated[tuple[_StoredKey, ...], Field(min_length=1)]


def _why_no_key(project: Project, *, create: Creation, within: Path) -> str | None:
    """Say what speaks against a new key, given the part of the lake it would answer for."""
    if create == "never":
        return "reading creates no key"
    local = project.local_lake
    if local is None:
        return None if create == "init" else f"the lake {project.lake} is remote"
    written = any(file.is_file() for file in (local / within).rglob("*"))
    return f"{local / within} already holds files" if written else None


def _why_not_first(project: Project, *, create: Creation) -> str | None:
    if hindrance := _why_no_key(project, create=create, within=Path("receipts")):
        return hindrance
    if not project.trust.exists():
        return None
    listed = len(Trust.load(project.trust, lake=project.lake).keys)
    return f"the trust file lists {listed} key(s) already" if listed else None


def _signer(pem: bytes, *, path: Path) -> CryptoSigner:
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigurationError(
            f"{path} is no signing key; expected an unencrypted Ed25519 key as PKCS #8 PEM: "
            "restore it"
        )
    return CryptoSigner(private)


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"scan-pipeline/data-key-id/v1\x00" + key).hexdigest()[:16]


def _new_key(key: bytes, *, now: datetime) -> _StoredKey:
    return _StoredKey(
        key_id=_key_id(key),
        algorithm="AES-256-GCM",
        created_at=now,
        destroyed_at=None,
        key=base64.b64encode(key).decode(),
    )


def _new_key_file(key: bytes, *, scan: str, now: datetime) -> bytes:
    return _as_bytes(_KeyFile(version=1, scan=scan, keys=(_new_key(key, now=now),)))


def _as_bytes(file: _KeyFile) -> bytes:
    return adapter(_KeyFile).dump_json(file, indent=2) + b"\n"


def _begin_another(file: _KeyFile, *, path: Path, key: bytes, now: datetime) -> _KeyFile:
    """Put a key beside those that were destroyed; of two runs at once one does it."""
    following = path.with_suffix(".next")
    if not create_once(following, data=b"", mode=0o600):
        raise ConfigurationError(
            f"{following} is there: found another run that begins a key, or one that broke off; "
            "expected none: run again, and remove that file where no run is working"
        )
    try:
        held = _read_file(read_secret(path) or b"", scan=file.scan, path=path)
        if held != file:
            return held
        grown = replace(file, keys=(*file.keys, _new_key(key, now=now)))
        following.write_bytes(_as_bytes(grown))
        following.replace(path)
        return grown
    finally:
        following.unlink(missing_ok=True)


def _read_file(raw: bytes, *, scan: str, path: Path) -> _KeyFile:
    try:
        file = adapter(_KeyFile).validate_json(raw)
    except ValidationError as error:
        file, wrong = None, refusals(error)
    else:
        wrong = None if file.scan == scan else f"it is the file of scan {file.scan!r}"
    # Raised out of the parser's reach, whose error would carry the keys as its input.
    if wrong is not None or file is None:
        raise ConfigurationError(f"{path}: {wrong}; expected a data key file: restore it")
    return file


def _data_key(file: _KeyFile, *, path: Path) -> DataKey:
    newest, wrong = None, None
    for stored in file.keys:
        if (stored.key is None) == (stored.destroyed_at is None):
            wrong = f"key {stored.key_id} is neither kept nor destroyed"
        elif stored.key is not None:
            key = _decoded(stored.key)
            if _key_id(key) != stored.key_id:
                wrong = f"key {stored.key_id} is not the key of that id"
            older = (replace(newest, older=()), *newest.older) if newest else ()
            newest = DataKey(key_id=stored.key_id, key=key, older=older)
    if wrong is not None:
        raise ConfigurationError(f"{path}: {wrong}; expected a data key file: restore it")
    if newest is None:
        raise ConfigurationError(
            f"every data key of {file.scan} was destroyed ({path}), and what they sealed is "
            "erased; expected one that seals. A run into a local lake begins another; for a remote "
            f"one, put a key behind them by `scan-pipeline init --scan {file.scan}`, and share it"
        )
    gone = tuple(each.key_id for each in file.keys if each.key is None)
    return replace(newest, destroyed=gone)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
