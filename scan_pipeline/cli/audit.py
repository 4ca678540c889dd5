"""`audit`: every figure of a receipt computed again; or an exported file held to its note."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings, newest

if TYPE_CHECKING:
    from scan_pipeline.stages.audit import AuditCheck

SHOWN_CHARACTERS = 40
"""Characters of a figure that agrees."""


@click.command()
@click.argument("scan", metavar="NAME|FILE", required=False)
@click.argument("generation", required=False)
@click.option(
    "--file",
    "exported",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Hold an exported file against the signed note beside it instead.",
)
@json_option
@click.pass_obj
def audit(
    settings: Settings,
    *,
    scan: str | None,
    generation: str | None,
    exported: Path | None,
    as_json: bool,
) -> ExitCode:
    """Compute the receipt of GENERATION, or the newest, again; exit 1 where anything disagrees."""
    if (scan is None) == (exported is None):
        raise click.UsageError("name a scan, or a file with --file: expected one of the two")
    if exported is not None:
        return _audit_file(settings, exported, as_json=as_json)
    return _audit_generation(settings, str(scan), generation, as_json=as_json)


def _audit_file(settings: Settings, exported: Path, *, as_json: bool) -> ExitCode:
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.export import ExportNote, check_export

    note = check_export(exported, trust=settings.workspace().trust)
    if as_json:
        print_json(adapter(ExportNote).dump_python(note, mode="json"))
    else:
        answer(f"agrees: {note.file} is as it was exported. {note.statement}")
    return ExitCode.ACCEPTED


def _audit_generation(
    settings: Settings, scan: str, generation: str | None, *, as_json: bool
) -> ExitCode:
    from scan_pipeline.stages.audit import Audit

    name, workspace = settings.name(scan), settings.workspace()
    chosen = generation or newest(workspace.receipts(name), name, trust=workspace.trust)
    report = Audit(name, chosen, workspace=workspace).run()
    if as_json:
        checks = [dict(each.__dict__) for each in report.checks]
        print_json({**report.__dict__, "checks": checks, "agrees": report.agrees})
    else:
        print_table(
            ("check", "agrees", "expected", "found"),
            [(c.name, c.agrees, _told(c.expected, c), _told(c.found, c)) for c in report.checks],
            title=f"audit of {name} {chosen}, as deep as {report.level}",
        )
        wrong = ", ".join(each.name for each in report.disagreements)
        answer(f"DISAGREES: {wrong}" if wrong else f"agrees: {len(report.checks)} checks")
    return code_of_acceptance(accepted=report.agrees)


def _told(figure: str, check: "AuditCheck") -> str:
    """Shorten what agrees; what disagrees is shown whole."""
    cut = check.agrees and len(figure) > SHOWN_CHARACTERS
    return f"{figure[: SHOWN_CHARACTERS - 3]}..." if cut else figure
