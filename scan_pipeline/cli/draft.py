"""`draft`: a proposed scan file from the address of an API, every guess marked."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.drafting.proposal import Draft


@click.command()
@click.argument("url")
@click.option(
    "--auth",
    metavar="bearer=VARIABLE|HEADER=VARIABLE",
    help="The variable that holds the secret, never the secret itself.",
)
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="Not for secrets.")
@click.option("--name", metavar="NAME", help="Name of the scan; else from the address.")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the file here; one that is there is never written over.",
)
@json_option
@click.pass_obj
def draft(
    settings: Settings,
    *,
    url: str,
    auth: str | None,
    headers: tuple[str, ...],
    name: str | None,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Read two pages of URL and propose a scan file; every guess is marked, nothing is run.

    Exit 1 where something is left that only a person can fill in.
    """
    from scan_pipeline.core.errors import ContractError
    from scan_pipeline.stages.beginning.project_files import component_file
    from scan_pipeline.stages.beginning.schema_line import schema_line
    from scan_pipeline.stages.drafting.writing import scan_file
    from scan_pipeline.stages.scan_lookup import DEFS_FILE

    if out is not None and out.exists():
        raise ContractError(f"{out} is there already; expected a new file: give another --out")
    found = drafted(settings, url, auth=auth, headers=headers, name=name)
    text = scan_file(found)
    if out is not None:
        line = schema_line(out)
        text = component_file(text, line=line) if out.name == DEFS_FILE else f"{line}{text}"
        _write(out, text)
    if as_json:
        print_json({**_as_json(found), "file": text, "out": None if out is None else str(out)})
    elif out is None:
        answer(text.removesuffix("\n"))
    say_of(found)
    named = str(out) if out is not None else "FILE"
    say(f"{found.requests} requests; next: scan-pipeline check {named} --connect")
    return ExitCode.NOT_ACCEPTED if found.fill_in else ExitCode.ACCEPTED


def drafted(
    settings: Settings, url: str, *, auth: str | None, headers: tuple[str, ...], name: str | None
) -> "Draft":
    """Ask an address for a draft; arguments are those of the command.

    Raises:
        AccessRefusedError: the source refused our credentials, or wants some.
    """
    from scan_pipeline.core.errors import AccessRefusedError
    from scan_pipeline.core.operation import Retries
    from scan_pipeline.sources.surroundings import Surroundings
    from scan_pipeline.stages.drafting.draft import draft as ask
    from scan_pipeline.stages.drafting.question import question
    from scan_pipeline.stages.workspace import open_world, utc_now
    from scan_pipeline.store.lake import check_name

    asked = question(url, headers=headers, auth=auth)
    if name is not None:
        check_name(name)
    environ, inner = open_world(url, environ=settings.environ)
    surroundings = Surroundings(
        environ=environ,
        inner=inner,
        clock=utc_now,
        sleep=time.sleep,
        retries=Retries(attempts=3, max_wait=5.0),
    )
    try:
        return ask(asked, surroundings=surroundings, name=name)
    except AccessRefusedError:
        if auth is None:
            say("if it wants a token: --auth bearer=VARIABLE, the variable that holds it")
        raise


def say_of(found: "Draft") -> None:
    """Say how large a night would be, and what is left to a person."""
    from scan_pipeline.stages.drafting.writing import sizes

    for line in sizes(found):
        say(line)
    for at, what in found.fill_in.items():
        say(f"to fill in: {at}: {what}")


def _write(out: Path, text: str) -> None:
    """Write a new file.

    Raises:
        ContractError: it is there already.
    """
    from scan_pipeline.core.errors import ContractError

    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ContractError(f"{out} is there already; give another --out") from error


def _as_json(found: "Draft") -> dict[str, Any]:
    return {
        "attributes": found.attributes,
        "notes": {at: list(remarks) for at, remarks in found.notes.items()},
        "fill_in": dict(found.fill_in),
        "requests": found.requests,
        "pages": found.pages,
        "page_bytes": found.page_bytes,
        "pages_implied": found.pages_implied,
        "night_bytes": found.night_bytes,
        "tried": [{"what": what, "why_not": why} for what, why in found.tried],
    }
