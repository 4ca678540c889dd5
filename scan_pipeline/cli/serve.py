"""`serve`: the MCP server for agents, over stdio or streamable HTTP."""

import socket
from pathlib import Path

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ConfigurationError

PATH = "/mcp"


@click.command()
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Who may read what; needed for --http. Without it the launching user reads everything.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP on a port, else stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=8765, show_default=True, help="Port; 0 for a free one.")
@click.option("--url", help="The server's address as its callers know it, where it is another.")
@click.pass_obj
def serve(
    settings: Settings, *, policy: Path | None, http: bool, host: str, port: int, url: str | None
) -> ExitCode:
    """Let agents read: queries, pages, records, aggregates and conclusions over MCP.

    Over stdio the caller is the user who launches the server; over HTTP whoever the bearer token
    stands for in the policy.
    """
    try:
        from scan_pipeline.agents.authentication import launching_user
        from scan_pipeline.agents.serving import (
            create_desk,
            http_server,
            policy_reader,
            stdio_server,
        )
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"serve needs {error.name}, which is not installed; expected pip install "
            "'scan-pipeline[agents]'"
        ) from error
    from scan_pipeline.stages.scan_lookup import scan_names

    if http and policy is None:
        raise click.UsageError("--http needs --policy: over a network nobody is the launching user")
    user = launching_user()
    reader = policy_reader(policy, scans=lambda: scan_names(settings.folder), user=user)
    reader()  # a policy that does not parse is told now, not at the first call
    desk = create_desk(settings.workspace(), find=settings.scan, policy=reader)
    if not http:
        stdio_server(desk, user=user).run("stdio")
        return ExitCode.ACCEPTED
    import uvicorn

    # Listening before the address is told: of a port 0 only then the number is known.
    listener = socket.create_server((host, port))
    known_as = url or f"http://{host}:{listener.getsockname()[1]}{PATH}"
    app = http_server(desk, url=known_as).streamable_http_app(streamable_http_path=PATH, host=host)
    say(f"serving agents at {known_as}")
    with listener:
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
    return ExitCode.ACCEPTED
