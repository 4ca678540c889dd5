"""Azure's tokens, by azure-identity: of the identity that Azure gives this machine.

A client's own secret needs no library of Azure's: see `oauth2_client_credentials`. The library asks
and keeps tokens; its own requests go over its own transport, so that a source's `network` does not
reach them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from scan_pipeline.core.errors import AccessRefusedError, ConfigurationError
from scan_pipeline.sources.auth import Azure
from scan_pipeline.sources.extras import needs_extra

EARLY: Final = 300
"""Seconds before a token's end at which another is asked for."""


class AzureTokens:
    """Makes the bearer header of one Azure identity.

    Args:
        facts: which identity, and for what its tokens are.
        clock: time in UTC.
    """

    def __init__(self, facts: Azure, *, clock: Callable[[], datetime]) -> None:
        self._facts, self._clock = facts, clock
        self._credential: Any = None
        self._token: Any = None

    def headers(self, worn_out: bool) -> Mapping[str, str]:  # the shape is MakeHeaders
        """Return the header, of a new token where there is none, it ends soon or has worn out.

        Raises:
            ConfigurationError: this machine runs as nobody.
            AccessRefusedError: Azure refuses it.
        """
        with needs_extra("azure", "auth.azure"):
            from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415
            from azure.identity import CredentialUnavailableError  # noqa: PLC0415
        if worn_out or self._credential is None:
            self.close()
            self._credential, self._token = self._identity(), None  # its own cache is the old one's
        if self._token is None or self._token.expires_on - EARLY <= self._clock().timestamp():
            try:
                self._token = self._credential.get_token(self._facts.scope)
            except CredentialUnavailableError:
                raise ConfigurationError(
                    "auth.azure: this machine has no managed identity; expected one of Azure's"
                ) from None
            except ClientAuthenticationError:
                raise AccessRefusedError(
                    f"Azure gave no token for {self._facts.scope}; expected an identity that is "
                    "allowed it"
                ) from None
        return {"authorization": f"Bearer {self._token.token}"}

    def close(self) -> None:
        """Let go of the library's connections."""
        if self._credential is not None:
            self._credential.close()

    def _identity(self) -> Any:
        with needs_extra("azure", "auth.azure"):
            from azure.identity import ManagedIdentityCredential  # noqa: PLC0415
        return ManagedIdentityCredential(client_id=self._facts.client_id)
