"""One walk, one identity: new credentials must be those of the same principal as the old ones."""

from collections.abc import Callable
from hashlib import sha256

from scan_pipeline.core.errors import ProtocolError

Identity = tuple[str | None, str | None]
"""Principal and tenant as the source reports them, None where it was not asked."""


class SameIdentity:
    """Asks who we are again after each change of the credentials, before a page counts.

    Where no identity is declared nothing can be asked; a fetched token is then of the same client,
    and a secret that stands for nobody by name is noted as another one.

    Attributes:
        lost: whether the principal can no longer be known to be the one that the walk began as.

    Args:
        ask: asks the source who we are.
        changes: how often the credentials have changed.
        credential: what the credential says of who asks; of it only a digest is kept.
    """

    def __init__(
        self,
        ask: Callable[[], Identity],
        *,
        changes: Callable[[], int],
        credential: Callable[[], bytes | None],
    ) -> None:
        self._ask, self._changes, self._credential = ask, changes, credential
        self._before: Identity | None = None
        self._named: bytes | None = None
        self._known = 0
        self.lost = False

    def opened(self) -> Identity:
        """Return who we are as the walk begins."""
        self._before = self._ask()
        self._named, self._known = self._digest(), self._changes()
        return self._before

    def check(self) -> None:
        """Ask again where the credentials have changed.

        Raises:
            ProtocolError: `principal_changed`, it is another.
        """
        while self._known != (now := self._changes()):
            found = self._ask()
            if self._before is not None and found != self._before:
                raise ProtocolError(
                    "principal_changed",
                    f"with new credentials the source sees {_shown(found)}; expected "
                    f"{_shown(self._before)}, as the walk began. Another principal sees another "
                    "population",
                )
            if self._named is not None and found == (None, None):
                self.lost = self.lost or self._digest() != self._named
            self._known = now

    def _digest(self) -> bytes:
        return sha256(self._credential() or b"").digest()


def _shown(identity: Identity) -> str:
    principal, tenant = identity
    return f"{principal} of {tenant}" if tenant is not None else str(principal)
