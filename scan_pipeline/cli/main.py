"""`scan-pipeline`: each command is one query; it is imported when it is called and not before."""

import importlib
import os
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_error
from scan_pipeline.cli.output import print_json, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.stages.telemetry.setup import tell_blocked

COMMANDS: Final[Mapping[str, str]] = {
    "init": "scan_pipeline.cli.init:init",
    "run": "scan_pipeline.cli.run:run",
    "launch": "scan_pipeline.cli.dagster_commands:launch",
    "ui": "scan_pipeline.cli.dagster_commands:ui",
    "check": "scan_pipeline.cli.check:check",
    "draft": "scan_pipeline.cli.draft:draft",
    "schema": "scan_pipeline.cli.schema:schema",
    "generations": "scan_pipeline.cli.generations:generations",
    "receipt": "scan_pipeline.cli.receipt:receipt",
    "explain": "scan_pipeline.cli.explain:explain",
    "page": "scan_pipeline.cli.page:page",
    "findings": "scan_pipeline.cli.findings:findings",
    "audit": "scan_pipeline.cli.audit:audit",
    "restage": "scan_pipeline.cli.restage:restage",
    "acknowledge": "scan_pipeline.cli.acknowledge:acknowledge",
    "read": "scan_pipeline.cli.read:read",
    "export": "scan_pipeline.cli.export:export",
    "changes": "scan_pipeline.cli.changes:changes",
    "inclusion": "scan_pipeline.cli.inclusion:inclusion",
    "bundle": "scan_pipeline.cli.bundle:bundle",
    "check-claims": "scan_pipeline.cli.check_claims:check_claims",
    "actions": "scan_pipeline.cli.actions:actions",
    "maintain": "scan_pipeline.cli.maintain:maintain",
    "erase": "scan_pipeline.cli.erase:erase",
    "hold": "scan_pipeline.cli.hold:hold",
    "release-hold": "scan_pipeline.cli.hold:release_hold",
    "alerts": "scan_pipeline.cli.alerts:alerts",
    "serve": "scan_pipeline.cli.serve:serve",
    "simulator": "scan_pipeline.cli.simulator:simulator",
}
"""Where each command is found, in the order of the help."""


OF_TRIALS: Final = ("receipt", "explain", "page", "findings", "audit", "read")
"""Commands that read what a trial left; the others would make a night of it, or do not ask."""


def refuse_as_json(error: BaseException, message: str, code: ExitCode) -> ExitCode:
    """Tell a refusal on stdout, where an answer in JSON was asked for; return its exit code."""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()
    told = {"kind": kind.removesuffix("_error"), "message": message, "exit_code": int(code)}
    print_json({"error": told})
    return code


def _nothing_more(error: BaseException, message: str, code: ExitCode) -> ExitCode:
    del error, message
    return code


class LazyGroup(click.Group):
    """Imports a command when it is named; turns errors and results into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands' names in the order of the help."""
        return list(COMMANDS)

    def get_command(  # click's own signature
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its result, or what its error means, is the exit code.

        Where JSON was asked for, a refusal is JSON too: `{"error": {...}}`, beside the words.
        """
        refuse = refuse_as_json if "--json" in ctx.args else _nothing_more
        try:
            code = super().invoke(ctx)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except click.ClickException as error:
            refuse(error, error.format_message(), ExitCode.USAGE)
            raise
        except (KeyboardInterrupt, click.Abort) as error:
            say("stopped on request")
            code = refuse(error, "stopped on request", ExitCode.COULD_NOT_RUN)
        except ScanPipelineError as error:
            tell_blocked(os.environ, error)
            say(str(error))
            code = refuse(error, str(error), code_of_error(error))
        except OSError as error:
            say(f"could not run: {error}")
            code = refuse(error, str(error), ExitCode.COULD_NOT_RUN)
        except Exception as error:  # noqa: BLE001  # a bug must not look like "not accepted"
            # Where, and not what: the message of an error nobody planned may carry anything.
            say("".join(traceback.format_tb(error.__traceback__)))
            say(f"could not run: {type(error).__name__}, a bug: please report the lines above")
            code = refuse(error, "a bug", ExitCode.COULD_NOT_RUN)
        ctx.exit(int(code or ExitCode.ACCEPTED))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--lake", metavar="ROOT", help="The lake: a folder, or s3://, az://, gs://.")
@click.option(
    "--project",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the search for the project's pyproject.toml begins; else the working folder.",
)
@click.option("--trials", is_flag=True, help="Read what `run --trial` left, in place of nights.")
@click.version_option(package_name="scan-pipeline", prog_name="scan-pipeline")
@click.pass_context
def cli(ctx: click.Context, lake: str | None, folder: Path | None, *, trials: bool) -> None:
    """Prove that a paginated collection was read to its end, before anyone reads it.

    Exit codes: 0 accepted, 1 not accepted, 2 bad usage or contract, 3 could not run.
    """
    if trials and ctx.invoked_subcommand not in OF_TRIALS:
        raise click.UsageError(f"--trials goes with {', '.join(OF_TRIALS)}")
    ctx.obj = Settings(
        lake=lake, folder=(folder or Path.cwd()).absolute(), environ=os.environ, trials=trials
    )


def main() -> None:
    """Run the command line."""
    cli(prog_name="scan-pipeline")
