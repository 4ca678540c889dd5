"""Who asks: botocore's chain of providers, a profile, keys by reference, or a role beside them.

Roles are assumed under one fixed session name, and their credentials are fetched when first needed
and again before they end, so that a long walk stays one identity.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import botocore.session
from botocore import exceptions as of_botocore
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    DeferredRefreshableCredentials,
)

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.sources.amazon.facts import SESSION_NAME, AwsAuth

MISSING: Final = (
    of_botocore.CredentialRetrievalError,
    of_botocore.NoCredentialsError,
    of_botocore.PartialCredentialsError,
    of_botocore.ProfileNotFound,
    of_botocore.SSOError,
    of_botocore.TokenRetrievalError,
)
"""What botocore raises where it finds no credentials."""

Create = Callable[..., Any]
"""Makes a client, given a session and the service's name."""


def session_of(
    auth: AwsAuth | None, *, environ: Mapping[str, str], create: Create
) -> botocore.session.Session:
    """Return a session that signs as the scan file says.

    Args:
        auth: who asks; None for botocore's own chain.
        environ: where secrets are looked up.
        create: makes the client of STS that assumes a role.

    Raises:
        ConfigurationError: a secret or profile is missing.
    """
    profile = None if auth is None else auth.profile
    session = botocore.session.Session(profile=profile)
    if auth is None:
        return session
    if auth.keys is not None:
        keys, token = auth.keys, auth.keys.session_token
        session.set_credentials(
            keys.access_key_id.resolve(environ),
            keys.secret_access_key.resolve(environ),
            None if token is None else token.resolve(environ),
        )
    if auth.role is None:
        return session
    named = {"RoleSessionName": SESSION_NAME}
    if auth.role.external_id is not None:
        named["ExternalId"] = auth.role.external_id.resolve(environ)
    try:
        own = session.get_credentials()
    except MISSING as error:
        raise ConfigurationError(none_found(error)) from error
    if own is None:
        raise ConfigurationError(none_found(of_botocore.NoCredentialsError()))
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=lambda service, **options: create(session, service, **options),
        source_credentials=own,
        role_arn=auth.role.arn,
        extra_args=named,
    )
    assumed = botocore.session.Session(profile=profile)
    assumed.get_component("credential_provider").insert_before("env", _Assumed(fetcher))
    return assumed


def none_found(error: Exception) -> str:
    """Say that there are no credentials, and what was looked for."""
    return (
        f"botocore finds no credentials ({type(error).__name__}); expected those its chain of "
        "providers looks for, or auth in the scan file"
    )


class _Assumed(CredentialProvider):
    """Gives the credentials of a role, first of all providers."""

    METHOD = "scan-pipeline-role"

    def __init__(self, fetcher: AssumeRoleCredentialFetcher) -> None:
        super().__init__()
        self._fetcher = fetcher

    def load(self) -> Any:
        """Return credentials that are fetched when first needed, and again before they end."""
        return DeferredRefreshableCredentials(
            method=self.METHOD, refresh_using=self._fetcher.fetch_credentials
        )
