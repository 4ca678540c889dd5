"""`maintain`: settle what is open, let go of what is over, sweep what no version names."""

from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.maintain import Maintained


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@json_option
@click.pass_obj
def maintain(settings: Settings, *, scan: str, as_json: bool) -> ExitCode:
    """Close what was abandoned, drop what the scan no longer keeps, clean up behind it.

    What a receipt pins is never compacted or swept; what is dropped is told by a signed amendment
    beside its receipt. Exit 1 where something could not be certified or dropped.
    """
    from scan_pipeline.stages import maintain as stage

    came = stage.maintain(settings.scan(scan), workspace=settings.workspace())
    if as_json:
        print_json(_as_json(came))
    else:
        _print(came)
    return code_of_acceptance(accepted=not came.left and not came.refused)


def _as_json(came: "Maintained") -> dict[str, object]:
    return {
        "closed": [each.receipt.scan_generation for each in came.closed],
        "left": [dict(each.__dict__) for each in came.left],
        "compacted": list(came.compacted),
        "dropped": [dict(each.__dict__) for each in came.dropped],
        "kept_back": [dict(each.__dict__) for each in came.kept_back],
        "refused": [dict(each.__dict__) for each in came.refused],
        "swept_files": came.swept_files,
    }


def _print(came: "Maintained") -> None:
    closed = [each.receipt for each in came.closed]
    rows = [
        *(("closed", each.scan_generation, "", each.statement) for each in closed),
        *(("left open", each.generation, "", each.reason) for each in came.left),
        *(("dropped", e.generation, e.what, f"{e.bytes:,} bytes") for e in came.dropped),
        *(("kept", each.generation, each.what, each.reason) for each in came.kept_back),
        *(("REFUSED", each.generation, each.what, each.reason) for each in came.refused),
    ]
    if rows:
        print_table(("what", "generation", "of", "why"), rows)
    answer(f"{len(came.dropped)} dropped, {came.swept_files} files swept, logs cleaned")
