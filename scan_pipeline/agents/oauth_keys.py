"""An issuer's keys: found by its metadata, fetched when they are needed, kept for a while.

A token names its key by `kid`. One that is not known has the keys fetched again, at most once in
half a minute (`cooldown_duration` of PyJWT's client, 2.15): whoever makes up names must not make
this server ask for each.
"""

from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from jwt import PyJWK, PyJWKClient
from jwt.exceptions import PyJWKClientConnectionError, PyJWKSetError

from scan_pipeline.agents.oauth import OAuth, check_address
from scan_pipeline.core.errors import ConfigurationError, ScanPipelineError

_WAIT_S: Final = 10.0
"""How long an answer of the issuer's is waited for."""


class IssuerError(ScanPipelineError):
    """The issuer's keys cannot be had now, so that no token of it can be judged."""


class IssuerKeys:
    """The keys of the issuer that the policy names; another one begins anew."""

    def __init__(self) -> None:
        self._facts: OAuth | None = None
        self._client: PyJWKClient | None = None
        self._lock = Lock()

    def find(self, facts: OAuth, *, kid: str) -> PyJWK:
        """Return a key.

        Args:
            facts: the issuer, as the policy is now.
            kid: the key's name in a token.

        Raises:
            IssuerError: the issuer does not answer, or its answer holds no keys.
            PyJWTError: it has no such key.
        """
        client = self._of(facts)
        try:
            return client.get_signing_key(kid)
        except (PyJWKClientConnectionError, PyJWKSetError, ValueError) as error:
            raise IssuerError(f"the keys of {facts.issuer}: {type(error).__name__}") from error

    def _of(self, facts: OAuth) -> PyJWKClient:
        with self._lock:
            if self._client is None or self._facts != facts:
                uri = facts.jwks_uri or _jwks_uri(facts.issuer)
                self._client = PyJWKClient(uri, lifespan=facts.key_seconds, timeout=_WAIT_S)
                self._facts = facts
            return self._client


def metadata_addresses(issuer: str) -> tuple[str, ...]:
    """Return where an issuer's metadata may lie.

    The order is that of the MCP specification 2025-11-25, Authorization Server Metadata Discovery:
    RFC 8414, section 3.1, then OpenID Connect Discovery 1.0 with the path after and before.
    """
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    found = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    return tuple(dict.fromkeys(found))


def _jwks_uri(issuer: str) -> str:
    """Return where an issuer says that its keys are.

    Raises:
        IssuerError: nothing answers, or what does is another issuer (RFC 8414, section 3.3).
    """
    for url in metadata_addresses(issuer):
        facts = _metadata(url)
        if facts is None:
            continue
        if facts.get("issuer") != issuer:
            raise IssuerError(f"the metadata at {url} is another issuer's; expected {issuer}")
        uri = facts.get("jwks_uri")
        if not isinstance(uri, str):
            raise IssuerError(f"the metadata at {url} names no jwks_uri")
        try:
            check_address(uri, what="jwks_uri")
        except ConfigurationError as error:
            raise IssuerError(f"the metadata at {url}: {error}") from error
        return uri
    raise IssuerError(f"found no metadata of {issuer}; expected it at its .well-known addresses")


def _metadata(url: str) -> dict[str, Any] | None:
    """Return an issuer's metadata, None where there is none; redirects are not followed."""
    try:
        answer = httpx2.get(url, timeout=_WAIT_S, headers={"accept": "application/json"})
        found = answer.json() if answer.status_code == httpx2.codes.OK else None
    except httpx2.HTTPError as error:
        raise IssuerError(f"{url}: {type(error).__name__}") from error
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
