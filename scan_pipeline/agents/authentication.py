"""Who calls, taken from the connection and never from an argument.

Over stdio it is the user who launched the server; over HTTP whoever the bearer token stands for, by
the policy's SHA-256 of it, or by the subject of an OAuth issuer's access token. Both are asked
again for every call.
"""

import getpass
import hashlib
import os
import sys
from collections.abc import Callable

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier

from scan_pipeline.agents.failures import PolicyError, ReaderError
from scan_pipeline.agents.oauth import UNJUDGED
from scan_pipeline.agents.policy import Policy


class PolicyTokens(TokenVerifier):
    """Verifies bearer tokens against the policy as it is now."""

    def __init__(self, policy: Callable[[], Policy], *, resource: str) -> None:
        self._policy, self._resource = policy, resource

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, or None.

        Where the policy cannot be read it is nobody's: the request goes on as no principal, so that
        its tool call fails with the policy's own failure and not as a bad token.
        """
        digest = hashlib.sha256(token.encode()).hexdigest()
        try:
            principals = self._policy().principals
        except PolicyError:
            return AccessToken(token=token, client_id="", scopes=[], resource=self._resource)
        for name, one in principals.items():
            if digest in one.token_sha256 and not one.revoked:
                return AccessToken(
                    token=token, client_id=name, subject=name, scopes=[], resource=self._resource
                )
        return None


def caller_by_token(policy: Policy, *, verified_by_policy: bool) -> str:
    """Return the principal of the request that is being answered.

    Args:
        policy: the policy as it is now.
        verified_by_policy: whether the token's subject is a principal's name; otherwise it is what
            an OAuth verifier reported, and the policy says whose subject it is.

    Raises:
        ReaderError: nobody was authenticated, or the policy does not know them.
    """
    token = get_access_token()
    if token is not None and (token.claims or {}).get(UNJUDGED):
        raise ReaderError(
            "retry", UNJUDGED, "the issuer of tokens does not answer, and nobody is known till then"
        )
    subject = None if token is None else token.subject
    for name, one in policy.principals.items():
        known = name if verified_by_policy else one.subject
        if subject and known == subject and not one.revoked:
            return name
    raise _unknown()


def caller_by_user(policy: Policy, user: str) -> str:
    """Return the principal that a user of this machine is.

    Raises:
        ReaderError: the policy does not know them.
    """
    for name, one in policy.principals.items():
        if user in one.local_users and not one.revoked:
            return name
    raise _unknown()


def launching_user() -> str:
    """Return the name of the user whose process this is.

    By the process's own user id: `getpass` believes LOGNAME and USER first, and whoever launches
    the server sets those.
    """
    if sys.platform == "win32":
        return getpass.getuser()
    import pwd  # noqa: PLC0415  # there is none on Windows

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _unknown() -> ReaderError:
    return ReaderError(
        "ask_for_access", "not_authenticated", "the policy knows no such reader; ask for access"
    )
