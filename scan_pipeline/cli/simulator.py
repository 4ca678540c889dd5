"""`simulator`: the sample registry on a port, its scenarios, and one of them broken on purpose."""

import signal
from contextlib import suppress
from pathlib import Path

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, print_table, say

DEFAULT_PORT = 8742
DEFAULT_SCENARIO = "page_skipped_count_matches"


@click.group()
def simulator() -> None:
    """Serve the sample registry, or show what a broken source does to a scan."""


@simulator.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--script",
    "file",
    type=click.Path(path_type=Path),
    help="YAML or JSON file of mutations and faults.",
)
@click.option("--scenario", "name", help="Serve what this scenario does.")
def serve(*, host: str, port: int, file: Path | None, name: str | None) -> ExitCode:
    """Serve the registry over HTTP until SIGINT or SIGTERM; its address goes to stdout."""
    from scan_pipeline.simulator.principals import ANALYST_TOKEN, AUDITOR_TOKEN
    from scan_pipeline.simulator.registry import Registry
    from scan_pipeline.simulator.scenario import registry_for
    from scan_pipeline.simulator.scenarios import scenario
    from scan_pipeline.simulator.server import serve as serve_registry

    if file is not None and name is not None:
        raise click.UsageError("--script and --scenario both say what happens: give one of them")
    if name is not None:
        registry = registry_for(scenario(name))
    else:
        registry = Registry(script=None if file is None else _read_script(file))

    def announce(url: str) -> None:
        answer(url)
        say(f"customers at {url}/v1/customers, support cases at {url}/v1/support_cases")
        say(f"public sample tokens: {AUDITOR_TOKEN} (all), {ANALYST_TOKEN} (one tenant)")

    # The server raises again what it was ended by; for it, being asked to end is the right end.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        serve_registry(registry, host=host, port=port, announce=announce)
    signal.signal(signal.SIGTERM, before)
    return ExitCode.ACCEPTED


@simulator.command()
@json_option
def scenarios(*, as_json: bool) -> ExitCode:
    """List the scenarios that `break` and `serve` know."""
    from scan_pipeline.simulator.scenarios import SCENARIOS

    if as_json:
        print_json(
            [
                {"name": each.name, "note": each.note, "may_verify": each.may_verify}
                for each in SCENARIOS.values()
            ]
        )
        return ExitCode.ACCEPTED
    print_table(
        ("scenario", "what happens", "may be verified"),
        [(each.name, each.note, each.may_verify) for each in SCENARIOS.values()],
    )
    return ExitCode.ACCEPTED


@simulator.command("break")
@click.argument("scenario", default=DEFAULT_SCENARIO)
@json_option
def break_(*, scenario: str, as_json: bool) -> ExitCode:
    """Let SCENARIO happen; show what a naive client says, and what we say.

    It happens in this process and in a lake of its own, which is thrown away. Exit 0 where our
    answer is the one that the scenario calls for.
    """
    from scan_pipeline.cli.demonstration import demonstrate, print_demonstration
    from scan_pipeline.simulator import scenarios as catalogue

    shown = demonstrate(catalogue.scenario(scenario))
    if as_json:
        print_json(shown.as_json())
    else:
        print_demonstration(shown)
    return code_of_acceptance(accepted=shown.as_expected)


def _read_script(file: Path):  # noqa: ANN202  # its type is imported when serving and not before
    import yaml

    from scan_pipeline.core.errors import ContractError
    from scan_pipeline.simulator.script import parse_script

    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ContractError(
            f"{file} cannot be read: {type(error).__name__}; expected YAML or JSON"
        ) from error
    if not isinstance(raw, dict):
        raise ContractError(f"{file} holds no mapping; expected mutations and faults")
    return parse_script(raw)
