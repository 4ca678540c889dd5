"""`export`: records as a file that proves itself alone."""

from datetime import timedelta
from pathlib import Path
from typing import Literal, get_args

import click

from scan_pipeline.cli.ages import age_word, max_age_option
from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES, ConclusionScope

Wish = Literal["verified", "corroborated"]


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder it is written to; else the working folder.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "parquet")),
    default="csv",
    show_default=True,
    help="How records are written.",
)
@click.option(
    "--where",
    multiple=True,
    type=(str, str, str),
    metavar="FIELD OP VALUE",
    help="Only rows that meet it, e.g. --where region eq eu; VALUE is JSON, or text.",
)
@click.option("--column", "columns", multiple=True, help="Only these columns.")
@click.option("--at-least", type=click.Choice(get_args(Wish)), help="The whole, proven so far.")
@click.option("--accept", type=click.Choice(CONCLUSION_SCOPES), help="Be content with this scope.")
@max_age_option
@json_option
@click.pass_obj
def export(
    settings: Settings,
    *,
    scan: str,
    generation: str | None,
    folder: Path,
    form: Literal["csv", "parquet"],
    where: tuple[tuple[str, str, str], ...],
    columns: tuple[str, ...],
    at_least: Wish | None,
    accept: ConclusionScope | None,
    max_age: timedelta | None,
    as_json: bool,
) -> ExitCode:
    """Write the records of GENERATION, else of the newest that is proven whole, to a file.

    The file's name carries scan, generation and verdict; beside it lies a signed note, against
    which `audit --file` holds it.
    """
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.readers.conditions import parse_condition
    from scan_pipeline.stages.readers.export import ExportNote
    from scan_pipeline.stages.readers.export import export as write_export
    from scan_pipeline.stages.reading import Collection

    if at_least is not None and accept is not None:
        raise click.UsageError("--at-least exports the whole, --accept a part: give one of them")
    workspace = settings.workspace()
    collection = Collection(settings.scan(scan), workspace=workspace, max_age=max_age)
    wish: Wish = at_least or "verified"
    if accept is not None:
        opened = (
            collection.newest_part(accept=accept)
            if generation is None
            else collection.partial(generation, accept=accept)
        )
    elif generation is None:
        opened = collection.latest(at_least=wish)
    else:
        opened = collection.generation(generation, at_least=wish)
    path, note = write_export(
        opened,
        folder,
        form=form,
        where=[parse_condition(*each) for each in where],
        columns=columns,
        workspace=workspace,
    )
    say(note.statement)
    say(age_word(collection, opened.receipt, at_least=wish))
    if as_json:
        print_json({"path": str(path), **adapter(ExportNote).dump_python(note, mode="json")})
    else:
        answer(str(path))
    return ExitCode.ACCEPTED
