"""From what a scan file declares to a transport: credentials, network, budget, limits."""

from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.azure_tokens import AzureTokens
from scan_pipeline.sources.http.client_credentials import (
    REFUSALS,
    ClientCredentials,
    client_header,
)
from scan_pipeline.sources.http.google_tokens import GoogleTokens
from scan_pipeline.sources.http.held_credentials import HeldCredentials
from scan_pipeline.sources.http.network import Network, NetworkFacts
from scan_pipeline.sources.http.responses import ResponseClass
from scan_pipeline.sources.http.transport import Credentials, Transport
from scan_pipeline.sources.surroundings import Surroundings


def open_transport(
    url: str,
    surroundings: Surroundings,
    *,
    auth: Auth | None,
    responses: tuple[ResponseClass, ...] = (),
    network: Network | NetworkFacts | None = None,
    credentials: HeldCredentials | None = None,
    origins: tuple[str, ...] = (),
) -> Transport:
    """Return a transport to a source; nothing is sent yet.

    Args:
        url: the source; its origin is where the credentials stay.
        surroundings: the world around.
        auth: how to prove who we are there.
        responses: what statuses mean there.
        network: how the network is reached; None for what the variables say.
        credentials: what proves it where `auth` does not.
        origins: other origins that its links may lead to.
    """
    allowance = Allowance(clock=surroundings.clock)
    opened = isinstance(network, Network)
    reached = network if opened else Network(network, surroundings.environ)

    def carried(
        to: str,
        credentials: Credentials | HeldCredentials,
        responses: tuple[ResponseClass, ...],
        origins: tuple[str, ...] = (),
    ) -> Transport:
        return Transport(
            to,
            origins=origins,
            credentials=credentials,
            retries=surroundings.retries,
            responses=responses,
            inner=surroundings.inner,
            clock=surroundings.clock,
            sleep=surroundings.sleep,
            network=reached,
            allowance=allowance,
            pace=surroundings.pace,
        )

    environ = surroundings.environ
    token = None if auth is None else auth.oauth2_client_credentials
    if credentials is not None:
        held = credentials
    elif token is not None:
        endpoint = carried(token.token_url, lambda: client_header(token, environ), REFUSALS)
        fetched = ClientCredentials(token, surroundings, transport=endpoint)
        held = HeldCredentials(fetched.headers, close=endpoint.close)
    elif auth is not None and auth.google is not None:
        held = HeldCredentials(GoogleTokens(auth.google, environ).headers)
    elif auth is not None and auth.azure is not None:
        azure = AzureTokens(auth.azure, clock=surroundings.clock)
        held = HeldCredentials(azure.headers, close=azure.close)
    else:
        held = HeldCredentials(lambda _: auth.headers(environ) if auth else {})
    return carried(url, held, responses, origins)
