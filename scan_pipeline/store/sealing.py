"""Sealed cells of the evidence: bodies and continuations, readable only with the scan's data key.

Format `scan-pipeline/sealed/v1`, integers big-endian:

| bytes | what |
|---|---|
| 1 | version, 0x01 |
| 8 | id of the data key |
| 12 | nonce, random |
| n | AES-256-GCM of the content |
| 16 | tag |

The content is one byte (0x00 stored, 0x01 one zstd frame), the length of the plain bytes (8
bytes), then those bytes or the frame. The associated data is `version || key id || context`; the
context names the cell (`scan/generation/shard/seq/column`), so that a cell moved elsewhere does
not open.

With random nonces one key may seal 2^32 cells (NIST SP 800-38D, November 2007, section 8.3): two
billion pages; rotation adds a key long before.
"""

import hmac
import os
from typing import Final

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from scan_pipeline.core.errors import (
    ConfigurationError,
    KeyDestroyedError,
    NarrowError,
    TamperedError,
)
from scan_pipeline.store.keys import DataKey, RandomBytes

VERSION: Final = b"\x01"
STORED: Final = 0
ZSTD: Final = 1
NONCE_BYTES: Final = 12
HEADER_BYTES: Final = 1 + 8
LEAST_BYTES: Final = HEADER_BYTES + NONCE_BYTES + 9 + 16
MAX_PLAIN_BYTES: Final = 256 * 1024 * 1024

# A table of matches that stays in the first-level cache: on pages of JSON a fifth faster than
# level 1 as it comes, and not larger (zstandard 0.25, 2026-11).
_FAST: Final = zstandard.ZstdCompressionParameters.from_level(1, hash_log=11)


class Sealer:
    """Seals with the newest data key and opens with every key on its ring.

    It reuses its compressor, which is not safe across threads: one sealer a thread.
    """

    def __init__(
        self,
        data_key: DataKey,
        *,
        random: RandomBytes = os.urandom,
        max_plain_bytes: int = MAX_PLAIN_BYTES,
    ) -> None:
        self._header = VERSION + bytes.fromhex(data_key.key_id)
        self._ring = {
            bytes.fromhex(key.key_id): AESGCM(key.key) for key in (data_key, *data_key.older)
        }
        self._sealing = AESGCM(data_key.key)
        self._naming = [_naming_key(key.key) for key in (data_key, *data_key.older)]
        self._destroyed = data_key.destroyed
        self._random = random
        self._max_plain_bytes = max_plain_bytes
        self._compressor = zstandard.ZstdCompressor(compression_params=_FAST)
        self._decompressor = zstandard.ZstdDecompressor()

    @property
    def has_destroyed(self) -> bool:
        """Whether a key of this scan was destroyed, so that some content may be erased."""
        return bool(self._destroyed)

    def seal(self, plain: bytes, *, context: bytes, compress: bool) -> bytes:
        """Seal one cell.

        Args:
            plain: what to seal.
            context: names the cell; `open` needs the same.
            compress: yes for bodies; no for tokens, whose length would tell of their content.

        Returns:
            46 bytes and the plain ones, fewer where they compress.

        Raises:
            NarrowError: more plain bytes than a cell may have.
        """
        if len(plain) > self._max_plain_bytes:
            raise NarrowError(
                f"a cell of {len(plain)} bytes; expected at most {self._max_plain_bytes}: ask the "
                "source for smaller pages"
            )
        encoding, kept = STORED, plain
        if compress and len(frame := self._compressor.compress(plain)) < len(plain):
            encoding, kept = ZSTD, frame
        content = b"%c%b%b" % (encoding, len(plain).to_bytes(8), kept)
        nonce = self._random(NONCE_BYTES)
        sealed = self._sealing.encrypt(nonce, content, self._header + context)
        return b"%b%b%b" % (self._header, nonce, sealed)

    def names(self, plain: bytes, *, context: bytes) -> tuple[str, ...]:
        """Name bytes without telling them, under each key on the ring, the newest first.

        HMAC-SHA256 under a subkey (HKDF, RFC 5869), in hex: whoever lacks the key can neither
        confirm a guess nor compare across contexts.
        """
        named = b"%b\x00%b" % (context, plain)
        return tuple(hmac.digest(key, named, "sha256").hex() for key in self._naming)

    def open(self, sealed: bytes, *, context: bytes) -> bytes:
        """Open one cell.

        Raises:
            TamperedError: damaged, edited, cut, or not the cell that the context names.
            KeyDestroyedError: sealed with a key that was destroyed.
            ConfigurationError: sealed with a key that is not on the ring.
        """
        where = context.decode(errors="replace")
        if len(sealed) < LEAST_BYTES or sealed[:1] != VERSION:
            raise _tampered(where, f"{len(sealed)} bytes of version {sealed[:1].hex() or 'none'}")
        header, nonce = sealed[:HEADER_BYTES], sealed[HEADER_BYTES : HEADER_BYTES + NONCE_BYTES]
        if (key := self._ring.get(header[1:])) is None:
            if header[1:].hex() in self._destroyed:
                raise KeyDestroyedError(
                    f"{where} is sealed with data key {header[1:].hex()}, which was destroyed: "
                    "this content is erased; expected a key on the ring: begin a new generation"
                )
            ring = ", ".join(key_id.hex() for key_id in self._ring)
            raise ConfigurationError(
                f"{where} is sealed with data key {header[1:].hex()}; expected one of {ring}: "
                "bring that key back; where it is gone for good, set its `key` to null and its "
                "`destroyed_at` in the key file, and this content counts as erased"
            )
        try:
            content = key.decrypt(nonce, sealed[HEADER_BYTES + NONCE_BYTES :], header + context)
        except InvalidTag:
            raise _tampered(where, "bytes that the key does not confirm") from None
        return self._plain(content, where=where)

    def _plain(self, content: bytes, *, where: str) -> bytes:
        encoding, length = content[0], int.from_bytes(content[1:9])
        if length > self._max_plain_bytes:
            raise _tampered(where, f"a declared length of {length} bytes")
        kept = content[9:]
        if encoding == ZSTD:
            # The frame's own size decides what is allocated: it must be the declared one.
            try:
                if zstandard.frame_content_size(kept) != length:
                    raise _tampered(where, f"a frame that does not hold {length} bytes")
                kept = self._decompressor.decompress(kept, allow_extra_data=False)
            except zstandard.ZstdError:
                raise _tampered(where, "a frame that does not unpack") from None
        elif encoding != STORED:
            raise _tampered(where, f"the encoding {encoding}")
        if len(kept) != length:
            raise _tampered(where, f"{len(kept)} bytes for {length}")
        return kept


def _naming_key(key: bytes) -> bytes:
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"scan-pipeline/names/v1")
    return hkdf.derive(key)


def _tampered(where: str, found: str) -> TamperedError:
    return TamperedError(
        "body",
        f"{where}: found {found}; expected the cell as it was sealed; nothing may be concluded "
        "from this page: restore the evidence, or scan again",
    )
