"""`check`: a scan file, offline, every problem with its line; with `--connect`, on its source."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.sources.yaml_facts import FileProblem


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--connect", is_flag=True, help="Then ask the source for two pages; nothing of them is kept."
)
@click.option(
    "--conformance",
    is_flag=True,
    help="Then play what may befall its source, offline, and tell what came of each.",
)
@click.option(
    "--bench",
    metavar="PATH",
    help="Dotted path of what makes a bench for --conformance, given the scan.",
)
@json_option
@click.pass_obj
def check(
    settings: Settings,
    *,
    file: Path,
    connect: bool,
    conformance: bool,
    bench: str | None,
    as_json: bool,
) -> ExitCode:
    """Check a scan FILE: facts, contradictions, record schema; without asking its source."""
    if connect and conformance:
        raise click.UsageError("--connect asks the source and --conformance does not: choose one")
    if bench is not None and not conformance:
        raise click.UsageError("--bench is for --conformance")
    problems = problems_of(file)
    if connect and not problems:
        from scan_pipeline.cli.connect import check_source

        return check_source(settings, file, as_json=as_json)
    if conformance and not problems:
        from scan_pipeline.cli.conformance import check_conformance
        from scan_pipeline.sources.scan_file import read_scan_file

        return check_conformance(read_scan_file(file).parse(), bench=bench, as_json=as_json)
    if as_json:
        told = [{"line": p.line, "field": p.field, "message": p.message} for p in problems]
        print_json({"file": str(file), "problems": told})
    elif problems:
        for each in problems:
            answer(f"{file}:{each.line}: {each.field}: {each.message}")
        answer(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}")
    else:
        answer(f"{file}: no problem found")
    return ExitCode.USAGE if problems else ExitCode.ACCEPTED


def problems_of(file: Path) -> tuple["FileProblem", ...]:
    """Return everything that is wrong with a scan file, in order of line.

    Raises:
        ContractError: the file cannot be read, or holds no scan, or several.
    """
    from scan_pipeline.core.errors import ContractError
    from scan_pipeline.sources.file_problems import Problem
    from scan_pipeline.sources.scan_file import LocatedScanFileError, read_scan_file
    from scan_pipeline.stages.records.schema import resolve_declared, resolve_schema
    from scan_pipeline.stages.walking.contract_check import check_contract

    document, scan = None, None
    located = list["FileProblem"]()
    try:
        document = read_scan_file(file)
        scan = document.parse()
    except LocatedScanFileError as error:
        located += error.located
    if document is None:
        return tuple(located)
    try:
        if scan is not None:
            check_contract(scan, resolve_schema(scan.record_schema))
        elif not any(each.at[:1] == ("record_schema",) for each in located):
            resolve_declared(document.attributes.get("record_schema"))
    except ContractError as error:
        schema = "record_schema" in str(error) or scan is None
        at = ("record_schema",) if schema else ("contract",)
        located.append(document.located(Problem(at=at, message=str(error))))
    return tuple(sorted(located, key=lambda each: each.line))
