"""How a source is told who we are: facts, with every secret a reference."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields
from ipaddress import ip_address
from typing import Annotated, Any, Literal

import httpx2
from pydantic import Field

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.secrets import SecretRef


@record
class ApiKey:
    """A key in a header of its own.

    Attributes:
        header: its name.
        value: the key, and what the source wants before it.
    """

    header: str
    value: SecretRef


@record
class Basic:
    """A name and a password (RFC 7617, read 2026-11-30).

    Attributes:
        user: the name; some providers take a key here and no password.
        password: None for an empty one.
    """

    user: SecretRef
    password: SecretRef | None = None

    def header(self, environ: Mapping[str, str]) -> str:
        """Return the header's value; raises ConfigurationError where a secret is missing."""
        user = self.user.resolve(environ)
        if ":" in user:
            raise ConfigurationError(
                f"the secret {self.user.told} holds a colon; expected a user's name, which has none"
            )
        password = "" if self.password is None else self.password.resolve(environ)
        return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


@record
class OAuth2ClientCredentials:
    """A token that we fetch in our own name (RFC 6749, section 4.4, read 2026-11-30).

    Attributes:
        token_url: where tokens are had; nothing but the request for one ever goes there.
        client_id: who we are.
        client_secret: what proves it.
        scope: what the token is to allow; one that allows less is refused.
        audience: for whom it is to be, where the server wants to be told.
        send_as: whether the secret travels in a header or in the form (section 2.3.1).
    """

    token_url: str
    client_id: Annotated[str, Field(min_length=1)]
    client_secret: SecretRef
    scope: str | None = None
    audience: str | None = None
    send_as: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"

    def __post_init__(self) -> None:
        check_token_url(self.token_url)


@record
class Google:
    """An identity of Google's; needs the extra `google`.

    Attributes:
        scopes: what its tokens are to allow.
        service_account: the account's key, JSON as Google gives it; None for what this machine
            runs as (application default credentials).
        subject: the user in whose name a service account acts (domain-wide delegation).
    """

    scopes: Annotated[tuple[str, ...], Field(min_length=1)]
    service_account: SecretRef | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        if self.subject is not None and self.service_account is None:
            raise ContractError("auth.google.subject needs service_account: it acts for the user")

    @property
    def who(self) -> str:
        """Return the identity in words, without its key."""
        account = "this machine" if self.service_account is None else repr(self.service_account)
        return account if self.subject is None else f"{account} as {self.subject}"


@record
class Azure:
    """The managed identity that Azure gives this machine; needs the extra `azure`.

    Attributes:
        scope: for what its tokens are, e.g. `https://graph.microsoft.com/.default`.
        client_id: which one, where the machine has several.
    """

    scope: Annotated[str, Field(min_length=1)]
    client_id: str | None = None


@record
class Auth:
    """Exactly one way to prove who we are; secrets stay references until a request is sent.

    Attributes:
        bearer: a token, sent as it is.
        api_key: a key in a header of its own.
        basic: a user and a password.
        oauth2_client_credentials: a token that a client fetches in its own name.
        google: a token of Google's, by google-auth.
        azure: a token of this machine's managed identity, by azure-identity.
    """

    bearer: SecretRef | None = None
    api_key: ApiKey | None = None
    basic: Basic | None = None
    oauth2_client_credentials: OAuth2ClientCredentials | None = None
    google: Google | None = None
    azure: Azure | None = None

    def __post_init__(self) -> None:
        ways = [each.name for each in fields(self)]
        if sum(getattr(self, way) is not None for way in ways) != 1:
            raise ConfigurationError(f"auth needs exactly one of: {', '.join(ways)}")

    @property
    def scheme(self) -> str:
        """Return the name of the way, without any secret."""
        ways = (each.name for each in fields(self))
        return next(way for way in ways if getattr(self, way) is not None)

    @property
    def is_fetched(self) -> bool:
        """Whether the headers need a token that is fetched; see `sources.http.signing_in`."""
        fetched = (self.oauth2_client_credentials, self.google, self.azure)
        return any(each is not None for each in fetched)

    def principal_bytes(self, environ: Mapping[str, str]) -> bytes:
        """Return what identifies the principal: a name, or the secret where nothing steadier does.

        Passwords and tokens change and their owner stays; a user's and a client's name say who.

        Raises:
            ConfigurationError: the secret is missing or empty.
        """
        if self.oauth2_client_credentials is not None:
            client = self.oauth2_client_credentials
            who: list[Any] = [client.token_url, client.client_id, client.scope, client.audience]
        elif self.google is not None:
            key = self.google.service_account
            who = [
                None if key is None else _service_account(key.resolve(environ)),
                self.google.subject,
                list(self.google.scopes),
            ]
        elif self.azure is not None:
            who = [self.azure.client_id, self.azure.scope]
        elif self.basic is not None:
            who = [self.basic.user.resolve(environ)]
        else:
            who = [[name, value] for name, value in sorted(self.headers(environ).items())]
        return canonical_json([self.scheme, *who])

    def headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that carry the secret; call it when sending and not before.

        Raises:
            ConfigurationError: the secret is missing or empty, or a token must be fetched.
        """
        if self.bearer is not None:
            return {"authorization": f"Bearer {self.bearer.resolve(environ)}"}
        if self.api_key is not None:
            return {self.api_key.header: self.api_key.value.resolve(environ)}
        if self.basic is not None:
            return {"authorization": self.basic.header(environ)}
        raise ConfigurationError(
            f"auth.{self.scheme} fetches a token, which this protocol does not; expected bearer, "
            "api_key or basic"
        )


def check_token_url(url: str) -> None:
    """Refuse an address that a secret must not be sent to.

    RFC 6749, section 3.2: the token endpoint is reached over TLS; this machine itself is excepted.

    Raises:
        ContractError: it is no such address.
    """
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise ContractError("token_url is no address; expected https://host/path") from None
    if parsed.userinfo or parsed.fragment:
        raise ContractError("token_url holds a user or a fragment; expected an address alone")
    if not parsed.host or parsed.scheme not in ("http", "https"):
        raise ContractError("token_url is not absolute; expected https://host/path")
    if parsed.scheme == "http" and not _is_this_machine(parsed.host):
        raise ContractError("token_url begins with http://; expected https://, secrets go there")


def _service_account(key: str) -> str:
    """Return the account a key is of; its keys are changed, the account stays."""
    try:
        return str(json.loads(key)["client_email"])
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            "auth.google.service_account is no service account's key; expected its JSON"
        ) from None


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
