"""An issuer's keys: found by its metadata, fetched when they are needed, kept for a while.

A token names its key by `kid`. One that is not known has the keys fetched again, at most once in
half a minute (`cooldown_duration` of PyJWT's client, 2.15): whoever makes up names must not make
this server ask for each. That counts from an answer, so that of an issuer which does not answer
every made-up name would be waited for anew, and all tokens behind it: after a failure that was
waited for the issuer is let alone for as long again, and a key that is known is looked up beside
whoever waits.
"""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from jwt import PyJWK, PyJWKClient
from jwt.exceptions import PyJWKClientConnectionError, PyJWKSetError

from scan_pipeline.agents.oauth import OAuth, check_address
from scan_pipeline.core.errors import ConfigurationError, ScanPipelineError

_WAIT_S: Final = 10.0
"""How long an answer of the issuer's is waited for."""

_QUICK_S: Final = 1.0
"""A failure that came sooner costs nobody anything: the issuer may be asked again at once."""


class IssuerError(ScanPipelineError):
    """The issuer's keys cannot be had now, so that no token of it can be judged."""


class IssuerKeys:
    """The keys of the issuer that the policy names; another one begins anew.

    Args:
        clock: gives seconds that never go back.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._alone_until = clock, 0.0
        self._held: tuple[OAuth, PyJWKClient] | None = None
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
        known = self._known(facts, kid=kid)
        if known is not None:
            return known
        begun = self._clock()
        if begun < self._alone_until:
            raise IssuerError(f"the keys of {facts.issuer}: it did not answer just now")
        try:
            return self._of(facts).get_signing_key(kid)
        except (IssuerError, PyJWKClientConnectionError, PyJWKSetError, ValueError) as error:
            waited = self._clock() - begun
            if waited > _QUICK_S:
                self._alone_until = begun + 2 * waited
            if isinstance(error, IssuerError):
                raise
            raise IssuerError(f"the keys of {facts.issuer}: {type(error).__name__}") from error

    def _known(self, facts: OAuth, *, kid: str) -> PyJWK | None:
        """Return a key that was fetched and is kept still, without waiting for anybody."""
        held = self._held
        if held is None or held[0] != facts or held[1].jwk_set_cache is None:
            return None
        kept = held[1].jwk_set_cache.get()
        signing = (
            [each for each in kept.keys if each.public_key_use in ("sig", None)] if kept else []
        )
        return held[1].match_kid(signing, kid)

    def _of(self, facts: OAuth) -> PyJWKClient:
        with self._lock:
            if self._held is None or self._held[0] != facts:
                uri = facts.jwks_uri or _jwks_uri(facts.issuer)
                client = PyJWKClient(uri, lifespan=facts.key_seconds, timeout=_WAIT_S)
                self._held = (facts, client)
            return self._held[1]


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
