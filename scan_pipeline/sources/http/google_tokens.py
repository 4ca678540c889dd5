"""Google's tokens, by google-auth: a service account's key, or what the machine runs as.

The library signs, asks and renews; its own requests go over its own transport, so that a source's
`network` does not reach them. Service account flow: RFC 7523; google-auth 2.
"""

import json
from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    SourceUnavailableError,
)
from scan_pipeline.sources.auth import Google
from scan_pipeline.sources.extras import needs_extra


class GoogleTokens:
    """Makes the bearer header of one Google identity.

    Args:
        facts: which identity, and what its tokens are to allow.
        environ: where the key is looked up.
    """

    def __init__(self, facts: Google, environ: Mapping[str, str]) -> None:
        self._facts, self._environ = facts, environ
        self._credentials: Any = None

    def headers(self, worn_out: bool) -> Mapping[str, str]:  # the shape is MakeHeaders
        """Return the header, of a new token where there is none, it has ended or worn out.

        Raises:
            ConfigurationError: the key is none, or this machine runs as nobody.
            AccessRefusedError: Google refuses it.
            SourceUnavailableError: Google does not answer.
        """
        with needs_extra("google", "auth.google"):
            from google.auth.exceptions import RefreshError, TransportError  # noqa: PLC0415
            from google.auth.transport.requests import Request  # noqa: PLC0415
        if self._credentials is None:
            self._credentials = self._identity()
        if worn_out or not self._credentials.valid:
            try:
                self._credentials.refresh(Request())
            except RefreshError:
                raise AccessRefusedError(
                    f"Google gave no token for {self._facts.who}; expected an identity that is "
                    f"allowed {', '.join(self._facts.scopes)}"
                ) from None
            except TransportError as error:
                raise SourceUnavailableError(
                    f"Google's token endpoint does not answer: {type(error).__name__}"
                ) from None
        return {"authorization": f"Bearer {self._credentials.token}"}

    def _identity(self) -> Any:
        """Return the identity's credentials; nothing is sent but what the machine is asked."""
        with needs_extra("google", "auth.google"):
            import google.auth  # noqa: PLC0415
            from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
            from google.oauth2 import service_account  # noqa: PLC0415
        scopes = list(self._facts.scopes)
        try:
            if self._facts.service_account is None:
                found, _ = google.auth.default(scopes=scopes)
            else:
                info = json.loads(self._facts.service_account.resolve(self._environ))
                found = service_account.Credentials.from_service_account_info(info, scopes=scopes)
        except (ValueError, GoogleAuthError) as error:
            raise ConfigurationError(
                f"auth.google: {self._facts.who} is no identity ({type(error).__name__}); expected "
                "a service account's key as JSON, or a machine with default credentials"
            ) from None
        return found if self._facts.subject is None else found.with_subject(self._facts.subject)
