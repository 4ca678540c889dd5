"""`changes`: what was added, removed and changed between two generations."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.ages import age_word, max_age_option
from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json, print_table, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES, ConclusionScope

if TYPE_CHECKING:
    from scan_pipeline.stages.readers.changes import Changes

TABLE_LIMIT = 20


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("before", required=False)
@click.argument("after", required=False)
@click.option(
    "--accept",
    type=click.Choice(CONCLUSION_SCOPES),
    help="Compare generations of this scope, in weaker words where it is no whole.",
)
@click.option("--limit", type=click.IntRange(min=0), help="Show so many records at most.")
@max_age_option
@json_option
@click.pass_obj
def changes(
    settings: Settings,
    *,
    scan: str,
    before: str | None,
    after: str | None,
    accept: ConclusionScope | None,
    limit: int | None,
    max_age: timedelta | None,
    as_json: bool,
) -> ExitCode:
    """Compare generation BEFORE with AFTER, else the two newest that are proven whole.

    Between two proven wholes a record was added, removed or changed; between others it was first
    seen, not seen, or differs, and nothing more can be said.
    """
    from scan_pipeline.stages.readers.changes import changes as compare
    from scan_pipeline.stages.reading import Collection
    from scan_pipeline.stages.standing import check_age

    if (before is None) != (after is None):
        raise click.UsageError("name both generations, or neither")
    workspace = settings.workspace()
    collection = Collection(settings.scan(scan), workspace=workspace)
    if before is None or after is None:
        before, after = collection.newest_two(accept=accept)
    opened = [
        collection.generation(each, at_least="corroborated")
        if accept is None
        else collection.partial(each, accept=accept)
        for each in (before, after)
    ]
    check_age(opened[1].receipt, max_age=max_age, now=workspace.clock())
    found = compare(
        *opened, partition_by=collection.scan.contract.partition_by, workspace=workspace
    )
    say(found.statement())
    say(age_word(collection, opened[1].receipt, at_least="corroborated"))
    if as_json:
        _print_json(found, limit)
    else:
        _print_table(found, TABLE_LIMIT if limit is None else limit)
    return ExitCode.ACCEPTED


def _print_json(found: "Changes", limit: int | None) -> None:
    rows = found.rows if limit is None else found.rows.head(limit)
    print_json(
        {
            **{name: value for name, value in found.__dict__.items() if name != "rows"},
            "statement": found.statement(),
            "shown": rows.height,
            "total": found.rows.height,
            "rows": rows.to_dicts(),
        }
    )


def _print_table(found: "Changes", limit: int) -> None:
    print_table(
        ("key", "change", "fields"),
        [
            (key, change, ", ".join(fields))
            for key, change, fields in found.rows.head(limit).iter_rows()
        ],
    )
    shown = min(limit, found.rows.height)
    answer(f"{shown:,} of {found.rows.height:,} changes shown")
