"""`receipt`: one signed account; in words without any table engine, or as a report to look at."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.core.receipt import Receipt
    from scan_pipeline.stages.reporting.document import Report
    from scan_pipeline.store.receipts import StoredReceipt

OWN_NAME: Final = ""
"""What `--html` and `--packet` are given without a FILE: one named after the generation."""

STDOUT: Final = "-"

_GENERATION: Final = re.compile(r"\d{8}T\d{6}Z(\.\d+)?", re.ASCII)


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option("--raw", is_flag=True, help="The signed DSSE envelope as it lies in the lake.")
@click.option(
    "--html",
    "page",
    is_flag=False,
    flag_value=OWN_NAME,
    metavar="[FILE]",
    help="Write a report as one HTML page to FILE (`-` is stdout), else to one named after the "
    "generation.",
)
@click.option(
    "--packet",
    is_flag=False,
    flag_value=OWN_NAME,
    metavar="[FILE]",
    help="Write the same report as plain Markdown.",
)
@click.option(
    "--audit", "audited", is_flag=True, help="Audit first, and put what it came to in the report."
)
@json_option
@click.pass_obj
def receipt(
    settings: Settings,
    *,
    scan: str,
    generation: str | None,
    raw: bool,
    page: str | None,
    packet: str | None,
    audited: bool,
    as_json: bool,
) -> ExitCode:
    """Show the receipt of GENERATION, or the newest, its signature checked."""
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.core.receipt_statement import receipt_json
    from scan_pipeline.store.lake import Lake
    from scan_pipeline.store.signed_notes import taken_out_since
    from scan_pipeline.store.trust import Trust

    reported = page is not None or packet is not None
    _refuse_contradictions(
        asked=(raw, as_json, reported), files=(page, packet), audited=audited, reported=reported
    )
    stored = settings.receipt(scan, generation)
    chosen, project = stored.receipt, settings.project()
    lake = Lake(root=project.lake)
    trust = Trust.load(project.trust, lake=project.lake)
    taken_out = taken_out_since(chosen, lake=lake, trust=trust)
    if reported:
        _write_report(settings, stored, page=page, packet=packet, audited=audited)
    elif raw:
        click.echo(settings.receipts(scan).envelope(chosen.scan_generation))
    elif as_json:
        for each in taken_out:
            say(f"since then: {each}")
        print_json(receipt_json(chosen))
    else:
        path = lake.receipt_path(chosen.scan, chosen.scan_generation)
        takes = _takes(settings, scan, chosen)
        filed = Filed(
            receipt=chosen,
            receipt_id=stored.receipt_id,
            path=path,
            takes=takes,
            taken_out=taken_out,
        )
        print_account(filed)
    return code_of_acceptance(accepted=chosen.accepted)


def _takes(settings: Settings, named: str, receipt: "Receipt") -> tuple[tuple[str, str], ...]:
    """Say what a night and a year take, under the schedule and retention of the scan's file.

    The file is looked at and not judged: a receipt is shown also where it no longer parses.
    """
    from pydantic import ValidationError

    from scan_pipeline.core.errors import ScanPipelineError
    from scan_pipeline.core.footprint import footprint
    from scan_pipeline.core.operation import Operation, Schedule
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.scan_lookup import find_scan

    schedule = retention = None
    with suppress(ScanPipelineError, ValidationError):
        facts = find_scan(named, folder=settings.folder).attributes
        schedule = adapter(Schedule | None).validate_python(facts.get("schedule"))
        operation: Operation = adapter(Operation).validate_python(facts.get("operation") or {})
        retention = operation.retention
    with suppress(ScanPipelineError):
        return tuple(footprint(receipt, schedule, now=datetime.now(UTC)).words(retention))
    return ()


def _refuse_contradictions(
    *, asked: tuple[bool, ...], files: tuple[str | None, ...], audited: bool, reported: bool
) -> None:
    """Refuse options that cannot stand together, before anything is read."""
    if sum(asked) > 1:
        raise click.UsageError("found --raw, --json and a report together; expected one of them")
    if audited and not reported:
        raise click.UsageError("found --audit alone; expected it with --html or --packet")
    if files == (STDOUT, STDOUT):
        raise click.UsageError("found `-` twice; expected one report on stdout")
    for file in files:
        if file is not None and _GENERATION.fullmatch(file):
            raise click.UsageError(
                f"found {file} where a FILE is expected; write GENERATION before the options: "
                f"receipt NAME {file} --html"
            )


def _write_report(
    settings: Settings,
    stored: "StoredReceipt",
    *,
    page: str | None,
    packet: str | None,
    audited: bool,
) -> None:
    from scan_pipeline.stages.reporting.gather import gather
    from scan_pipeline.stages.reporting.report import make_report

    report = make_report(gather(stored, workspace=settings.workspace(), audited=audited))
    if page is not None:
        from scan_pipeline.stages.reporting.page import to_html

        _put(to_html(report), page, report, suffix="html")
    if packet is not None:
        from scan_pipeline.stages.reporting.packet import to_markdown

        _put(to_markdown(report), packet, report, suffix="md")


def _put(text: str, file: str, report: "Report", *, suffix: str) -> None:
    """Write a report where it was asked for, and say where; to stdout it is the answer."""
    if file == STDOUT:
        click.echo(text, nl=False)
        say(f"{report.title}: {report.verdict}")
        return
    path = Path(file or f"{report.scan}.{report.generation}.receipt.{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    answer(f"{path}: {report.title}, {report.verdict}")
