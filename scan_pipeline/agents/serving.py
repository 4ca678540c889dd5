"""Put together what the server needs, out of a project."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

from scan_pipeline.agents.audit_log import audit_log, keyed_in
from scan_pipeline.agents.authentication import (
    PolicyTokens,
    caller_by_token,
    caller_by_user,
    launching_user,
)
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.ledger import Ledger
from scan_pipeline.agents.oauth_tokens import OAuthTokens
from scan_pipeline.agents.policy import Policy, Principal, ScanPolicy, View, load_policy
from scan_pipeline.agents.server import create_server
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.workspace import Workspace

WHOLE: Final = "whole"
"""The view of the user who owns the project, where no policy says otherwise."""


def policy_reader(
    path: Path | None, *, scans: Callable[[], list[str]], user: str
) -> Callable[[], Policy]:
    """Return what reads the policy as it is now.

    Args:
        path: the policy file; None for none, which lets the launching user read everything, as the
            user's own files do.
        scans: names the scans there are.
        user: the launching user.
    """
    if path is not None:
        return lambda: load_policy(path)
    whole = ScanPolicy(views={WHOLE: View()}, shared=True)

    def own() -> Policy:
        names = scans()
        reader = Principal(local_users=(user,), views=dict.fromkeys(names, (WHOLE,)))
        return Policy(principals={user: reader}, scans=dict.fromkeys(names, whole))

    return own


def create_desk(
    workspace: Workspace, *, find: Callable[[str], Scan], policy: Callable[[], Policy]
) -> Desk:
    """Return the desk of a project.

    Args:
        workspace: where the tables lie.
        find: returns a scan's contract by its name.
        policy: reads the policy.
    """
    return Desk(
        workspace,
        collection=lambda scan: Collection(find(scan), workspace=workspace),
        policy=policy,
        ledger=Ledger(workspace.project.agents / "ledger.sqlite"),
        keyed=keyed_in(workspace),
    )


def stdio_server(desk: Desk, *, user: str | None = None) -> MCPServer:
    """Return the server for the user who launches it."""
    launched_by = user or launching_user()
    return create_server(
        desk,
        caller=lambda: caller_by_user(desk.policy(), launched_by),
        log=audit_log(desk.workspace),
    )


def http_server(desk: Desk, *, url: str) -> MCPServer:
    """Return the server for callers with bearer tokens: the policy's own, or an OAuth issuer's.

    Which of the two it is, the policy says when the server begins; one that changes its mind lets
    nobody in until the server is launched again.

    Args:
        desk: what every operation needs.
        url: the server's own address, as its callers know it.

    Raises:
        PolicyError: the policy cannot be read.
    """
    oauth = desk.policy().oauth
    verifier: TokenVerifier = (
        PolicyTokens(desk.policy, resource=url)
        if oauth is None
        else OAuthTokens(desk.policy, resource=url)
    )
    return create_server(
        desk,
        caller=lambda: caller_by_token(desk.policy(), verified_by_policy=oauth is None),
        log=audit_log(desk.workspace),
        verifier=verifier,
        # From text: an address that is parsed before is given a slash, and is another issuer then.
        auth=AuthSettings.model_validate(
            {
                "issuer_url": url if oauth is None else oauth.issuer,
                "resource_server_url": url,
                "required_scopes": [*oauth.scopes] if oauth and oauth.scopes else None,
                "validate_token_resource": True,
            }
        ),
    )
