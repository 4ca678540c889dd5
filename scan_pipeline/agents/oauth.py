"""Where access tokens come from: the facts of an OAuth issuer, as the policy states them.

The server is a resource server and nothing more (MCP specification 2025-11-25, Authorization, read
2026-11-30): it says where tokens are to be had (RFC 9728), and takes those of one issuer that were
issued for it (RFC 8707). They are JWTs (RFC 9068); tokens of which only the issuer knows what they
are, it does not take.
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from scan_pipeline.agents.addressing import check_template, places
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import PositiveInt, record

Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Signatures by a key that this side cannot sign with: not `none`, and none by a shared secret."""

UNJUDGED: Final = "issuer_unreachable"
"""Stands in the claims of a token that nobody could judge; its request goes on as no principal."""


@record
class OAuth:
    """One issuer of access tokens.

    Attributes:
        issuer: its identifier, as its own metadata and the tokens' `iss` spell it.
        audience: what the tokens' `aud` names this server; the server's own address where silent.
        algorithms: signatures that are taken; the key's own must be the token's, too.
        token_types: what a token's `typ` may be. `at+jwt` is RFC 9068's; an issuer that writes
            `JWT` on access tokens writes it on ID tokens as well, and only `aud` keeps them apart.
        scopes: scopes that a token must have, all of them.
        jwks_uri: where its keys are; its metadata says so where this is silent.
        key_seconds: how long keys are kept before they are fetched again.
    """

    issuer: str
    audience: Annotated[str, Field(min_length=1)] | None = None
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256")
    token_types: Annotated[tuple[str, ...], Field(min_length=1)] = ("at+jwt",)
    scopes: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    jwks_uri: str | None = None
    key_seconds: PositiveInt = 300

    def __post_init__(self) -> None:
        check_address(self.issuer, what="oauth.issuer")
        if "?" in self.issuer:
            raise ConfigurationError(
                "oauth.issuer has a query; expected none (RFC 8414, section 2)"
            )
        if self.jwks_uri is not None:
            check_address(self.jwks_uri, what="oauth.jwks_uri")


def check_address(url: str, *, what: str) -> None:
    """Refuse an address that keys must not be fetched from.

    Raises:
        ConfigurationError: it is neither `https://` nor on this machine, or holds a user, a
            fragment or a place for a name.
    """
    check_template(url, what=what)
    if places(url):
        raise ConfigurationError(f"{what} holds a brace; expected an address")
