"""How a cluster is reached: its server, its certificates, and who we are to it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.network import Network


class ClusterAccess(ABC):
    """One way to reach a cluster; nothing is read before it is asked for."""

    @property
    @abstractmethod
    def server(self) -> str:
        """Return the address of the API server, without a slash at its end.

        Raises:
            ConfigurationError: there is none to be had.
        """

    @abstractmethod
    def headers(self, worn_out: bool) -> Mapping[str, str]:
        """Return the headers that carry the secret; call it when sending and not before.

        Args:
            worn_out: whether the server no longer takes those returned before.
        """

    @abstractmethod
    def principal(self) -> bytes | None:
        """Return what tells one asker from another; see `Source.principal`."""

    @abstractmethod
    def network(self) -> Network | None:
        """Return the ways to the server, None for the common ones."""


class DirectAccess(ClusterAccess):
    """A server by its address, with credentials that the scan file names.

    Args:
        url: the server.
        auth: how to prove who we are; None for not at all.
        environ: where secrets are looked up.
    """

    def __init__(self, url: str, *, auth: Auth | None, environ: Mapping[str, str]) -> None:
        self._url, self._auth, self._environ = url, auth, environ

    @property
    def server(self) -> str:
        """Return the address as given."""
        return self._url.rstrip("/")

    def headers(self, worn_out: bool) -> Mapping[str, str]:
        """Return the headers that carry the secret, which is read each time."""
        del worn_out
        return self._auth.headers(self._environ) if self._auth else {}

    def principal(self) -> bytes | None:
        """Return what the credential says of who asks."""
        return None if self._auth is None else self._auth.principal_bytes(self._environ)

    def network(self) -> Network | None:
        """Return nothing of its own."""
        return None
