"""The pure mapping from what happened to an exit code, and what no command may print."""

import click
import pytest
from click.testing import CliRunner

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance, code_of_error
from scan_pipeline.cli.main import LazyGroup
from scan_pipeline.core import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ContractError("x"), ExitCode.USAGE),
        (errors.ConfigurationError("x"), ExitCode.COULD_NOT_RUN),
        (errors.GateClosedError(scan="a", generation=None, reason="x"), ExitCode.NOT_ACCEPTED),
        (errors.TamperedError("records", "x"), ExitCode.NOT_ACCEPTED),
        (errors.ProtocolError("no_progress", "x"), ExitCode.NOT_ACCEPTED),
        (errors.CancelledError("x"), ExitCode.NOT_ACCEPTED),
        (errors.WriterConflictError("x"), ExitCode.COULD_NOT_RUN),
        (errors.SourceUnavailableError("x"), ExitCode.COULD_NOT_RUN),
        (OSError("x"), ExitCode.COULD_NOT_RUN),
        (ValueError("x"), ExitCode.COULD_NOT_RUN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_has_its_code(error: Exception, code: ExitCode) -> None:
    assert code_of_error(error) == code


def test_only_acceptance_is_zero() -> None:
    assert [code_of_acceptance(accepted=each) for each in (True, False)] == [0, 1]


class OneCommand(LazyGroup):
    """The group of the command line, with one command of a test's."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name)


def group_that_raises(error: BaseException) -> click.Group:
    def fail() -> None:
        raise error

    return OneCommand(commands={"fail": click.Command("fail", callback=fail)})


def test_our_error_is_told_without_a_traceback() -> None:
    result = CliRunner().invoke(
        group_that_raises(errors.ContractError("found x; expected y")), ["fail"]
    )

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "found x; expected y\n"


def test_bug_is_not_called_not_accepted_and_its_message_is_kept_back() -> None:
    """Nobody planned that message: it may hold anything, a token too."""
    result = CliRunner().invoke(group_that_raises(KeyError("sk-secret")), ["fail"])

    assert (result.exit_code, result.stdout) == (3, "")
    assert "KeyError" in result.stderr
    assert "test_exit_codes.py" in result.stderr
    assert "sk-secret" not in result.output


def test_interrupted_command_could_not_run() -> None:
    result = CliRunner().invoke(group_that_raises(KeyboardInterrupt()), ["fail"])

    assert result.exit_code == 3


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run"], ["page", "customers", "x", "0"], ["--project", "/nowhere"]]
)
def test_bad_usage_is_two(arguments: list[str]) -> None:
    from scan_pipeline.cli.main import cli

    assert CliRunner().invoke(cli, arguments).exit_code == 2
