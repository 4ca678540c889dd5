"""Cursors: opaque, authenticated, and bound to what they were given out for."""

import base64
import binascii
import json
from hashlib import blake2b, sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.collection import Place

_PREFIX: Final = "cur_"


@record
class Cursor:
    """Where a walk goes on.

    Attributes:
        page: number of the page it leads to, from 1. It travels in the cursor, so a retry is the
            same page and a new process knows where an older walk stood.
        after: the place behind which that page begins; None is the beginning.
        principal: name of the principal it was given to.
        scope: fingerprint of collection, filter, order, bound and page size.
        snapshot_id: the pin it belongs to; empty for the live state.
        nonce: text that tells walks apart; empty where equal walks get equal cursors.
    """

    page: int
    after: Place | None
    principal: str
    scope: str
    snapshot_id: str
    nonce: str = ""


class CursorCodec:
    """Seals cursors and opens them.

    AES-SIV (RFC 5297, as `cryptography` implements it) is deterministic: equal cursors have equal
    text in every process, and whatever was not sealed here does not open. A test holds both.
    """

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESSIV(sha256(b"registry cursor/v1" + secret).digest())

    def seal(self, cursor: Cursor) -> str:
        """Return the text that a client is given."""
        fields = [
            cursor.page,
            cursor.after,
            cursor.principal,
            cursor.scope,
            cursor.snapshot_id,
            cursor.nonce,
        ]
        sealed = self._cipher.encrypt(json.dumps(fields, separators=(",", ":")).encode(), None)
        return _PREFIX + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, text: str) -> Cursor:
        """Return the cursor behind a text.

        Raises:
            RequestRefusedError: 400 `cursor_invalid`; this registry did not give it out, or not
                in exactly these characters.
        """
        body = text.removeprefix(_PREFIX)
        try:
            sealed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            plain = self._cipher.decrypt(sealed, None)
        except (binascii.Error, ValueError, InvalidTag) as error:
            raise _invalid() from error
        page, after, principal, scope, snapshot_id, nonce = json.loads(plain)
        cursor = Cursor(
            page=page,
            after=None if after is None else tuple(after),
            principal=principal,
            scope=scope,
            snapshot_id=snapshot_id,
            nonce=nonce,
        )
        # Base64 decoders pass over foreign letters and spare bits: only the exact text counts.
        if self.seal(cursor) != text:
            raise _invalid()
        return cursor


def fingerprint(*parts: object) -> str:
    """Return a short digest of the parts of a query; equal only for equal parts."""
    return blake2b(json.dumps(parts).encode(), digest_size=9).hexdigest()


def _invalid() -> RequestRefusedError:
    return RequestRefusedError(400, "cursor_invalid", "this cursor was not given out here")
