"""`erase`: one record taken out of every generation, on request, and what was done signed."""

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.option(
    "--key",
    "values",
    metavar="VALUE",
    multiple=True,
    required=True,
    help="Of the key, JSON or text; once for each key field.",
)
@click.option(
    "--because",
    required=True,
    metavar="TEXT",
    help="Why, e.g. the number of the request; it is kept, so it must not name the key.",
)
@click.option("--by", metavar="WHO", help="Who asked for it.")
@json_option
@click.pass_obj
def erase(
    settings: Settings,
    *,
    scan: str,
    values: tuple[str, ...],
    because: str,
    by: str | None,
    as_json: bool,
) -> ExitCode:
    """Erase a record from every generation of a scan, its trials and its published table.

    Exit 1 where the key may be left somewhere, which is named: deal with it, then run this again.
    """
    from scan_pipeline.cli.inclusion import parse_value
    from scan_pipeline.stages import erase as stage

    key = tuple(parse_value(each) for each in values)
    came = stage.erase(
        settings.scan(scan), key, because=because, by=by, workspace=settings.workspace()
    )
    if as_json:
        print_json(
            {
                "key_hash": came.key_hash,
                "erased": [dict(each.__dict__) for each in came.erased],
                "left": [dict(each.__dict__) for each in came.left],
            }
        )
    else:
        rows = [(e.generation, e.records, e.pages, e.receipt) for e in came.erased]
        if rows:
            print_table(("generation", "records", "page bodies", "receipt copied as"), rows)
        if came.left:
            print_table(("MAY BE LEFT in", "why"), [(each.where, each.why) for each in came.left])
        answer(
            f"taken out of {len(came.erased)} generations; "
            + (f"{len(came.left)} places may name it still" if came.left else "no file names it")
        )
    return code_of_acceptance(accepted=not came.left)
