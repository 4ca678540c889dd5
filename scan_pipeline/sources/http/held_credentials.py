"""Credentials as they are held while a walk lasts: read when sending, and known to have changed."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TypeAlias

from scan_pipeline.core.canonical import canonical_json

MakeHeaders: TypeAlias = Callable[[bool], Mapping[str, str]]
"""Makes the headers that carry secrets; told whether those made before have worn out."""


class HeldCredentials:
    """Makes the secret headers of each request, and notices when they are others than before.

    Of what was sent only a digest is kept here.

    Attributes:
        changes: how often what is sent has changed since the first request.

    Args:
        make: makes the headers.
        close: lets go of what they are made with.
    """

    def __init__(self, make: MakeHeaders, *, close: Callable[[], None] = lambda: None) -> None:
        self._make, self.close = make, close
        self._last: bytes | None = None
        self.changes = 0

    def headers(self) -> Mapping[str, str]:
        """Return the headers for the next request."""
        return self._noted(self._make(False))

    def renew(self) -> bool:
        """Make them anew, and say whether they are others than those the source refused."""
        before = self.changes
        self._noted(self._make(True))
        return self.changes != before

    def _noted(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        digest = sha256(canonical_json(dict(headers))).digest()
        if self._last not in (None, digest):
            self.changes += 1
        self._last = digest
        return headers
