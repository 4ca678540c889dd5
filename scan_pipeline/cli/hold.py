"""`hold` and `release-hold`: a generation is kept while a review of it is open."""

from collections.abc import Callable
from typing import Literal

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json
from scan_pipeline.cli.settings import Settings


def _options(command: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Give a command what both take."""
    for decorate in (
        click.pass_obj,
        json_option,
        click.option("--by", metavar="WHO", help="Who says so."),
        click.option("--because", required=True, metavar="TEXT", help="Why; it is kept."),
        click.argument("generation"),
        click.argument("scan", metavar="NAME|FILE"),
    ):
        command = decorate(command)
    return command


@click.command()
@_options
def hold(
    settings: Settings, *, scan: str, generation: str, because: str, by: str | None, as_json: bool
) -> ExitCode:
    """Hold GENERATION: no retention drops anything of it until it is released. Signed and kept."""
    return _say(settings, scan, generation, "held", because=because, by=by, as_json=as_json)


@click.command("release-hold")
@_options
def release_hold(
    settings: Settings, *, scan: str, generation: str, because: str, by: str | None, as_json: bool
) -> ExitCode:
    """Let a held GENERATION go: from now on its scan's retention counts. Signed and kept."""
    return _say(settings, scan, generation, "released", because=because, by=by, as_json=as_json)


def _say(
    settings: Settings,
    scan: str,
    generation: str,
    state: Literal["held", "released"],
    *,
    because: str,
    by: str | None,
    as_json: bool,
) -> ExitCode:
    from scan_pipeline.stages.maintaining.holding import say_hold

    said = say_hold(
        settings.name(scan),
        generation,
        state=state,
        because=because,
        by=by,
        workspace=settings.workspace(),
    )
    if as_json:
        print_json(dict(said.__dict__))
    else:
        answer(
            f"{said.scan} {said.scan_generation} is {said.state} since {said.said_at}: {because}"
        )
    return ExitCode.ACCEPTED
