"""Access tokens of an OAuth issuer, verified for each request.

What is checked is RFC 9068, section 4, and RFC 8725 (JSON Web Token Best Current Practices), both
read 2026-11-30: the type; an algorithm that the policy names and that is the key's own; the
signature by a key of the issuer's; issuer, audience, times and subject, all of which must be there.
Who the subject is here, the policy says, at the call.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio.to_thread
import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier

from scan_pipeline.agents.failures import PolicyError
from scan_pipeline.agents.oauth import UNJUDGED, OAuth
from scan_pipeline.agents.oauth_keys import IssuerError, IssuerKeys
from scan_pipeline.agents.policy import Policy

_LARGEST: Final = 16 * 1024
"""Most characters of a token that is looked at."""

_SKEW_S: Final = 30
"""By how much the issuer's clock may be ahead; a token that expired is over all the same, for the
SDK allows nothing (mcp 2.3, `BearerAuthBackend`)."""

_REQUIRED: Final = ["iss", "aud", "exp", "sub"]


class OAuthTokens(TokenVerifier):
    """Verifies access tokens by the policy as it is now.

    Args:
        policy: reads the policy.
        resource: the server's own address.
        keys: the issuer's keys.
    """

    def __init__(
        self, policy: Callable[[], Policy], *, resource: str, keys: IssuerKeys | None = None
    ) -> None:
        self._policy, self._resource, self._keys = policy, resource, keys or IssuerKeys()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, by the issuer's subject, or None.

        Where the policy or the issuer's keys cannot be had it is nobody's: the request goes on as
        no principal, so that its tool call fails by what is the matter and not as a bad token.
        """
        return await anyio.to_thread.run_sync(self._verified, token)

    def _verified(self, token: str) -> AccessToken | None:
        try:
            facts = self._policy().oauth
            claims = None if facts is None else self._claims(token, facts)
        except PolicyError:
            return self._nobody(token, {})
        except IssuerError:
            return self._nobody(token, {UNJUDGED: True})
        if facts is None or claims is None:
            return None
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or claims["sub"]),
            subject=claims["sub"],
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._resource,  # its audience was found to be ours, whatever it is called
            claims={"iss": facts.issuer},
        )

    def _claims(self, token: str, facts: OAuth) -> dict[str, Any] | None:
        if len(token) > _LARGEST:
            return None
        try:
            header = jwt.get_unverified_header(token)
            kid, algorithm = header.get("kid"), header.get("alg")
            if algorithm not in facts.algorithms or not isinstance(kid, str):
                return None
            if _type(header.get("typ")) not in {_type(each) for each in facts.token_types}:
                return None
            claims = jwt.decode(
                token,
                self._keys.find(facts, kid=kid),
                algorithms=[*facts.algorithms],
                audience=facts.audience or self._resource,
                issuer=facts.issuer,
                leeway=_SKEW_S,
                options={"require": _REQUIRED},
            )
        except jwt.PyJWTError:
            return None
        return claims if claims["sub"] else None

    def _nobody(self, token: str, claims: dict[str, Any]) -> AccessToken:
        return AccessToken(
            token=token, client_id="", scopes=[], resource=self._resource, claims=claims
        )


def _type(name: object) -> str:
    """Return a media type as RFC 9068 compares it: `application/` may be left out."""
    return str(name).lower().removeprefix("application/")


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return a token's scopes: `scope` in one text (RFC 9068), or `scp`, as Entra and Okta say."""
    found = claims.get("scope", claims.get("scp", ""))
    if isinstance(found, str):
        return found.split()
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
