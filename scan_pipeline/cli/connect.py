"""`check --connect`: two pages of the source held against the file, a line for each question."""

from pathlib import Path
from typing import TYPE_CHECKING

from scan_pipeline.cli.account import words
from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, print_json, print_table
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.core.scan import Scan


def check_source(settings: Settings, file: Path, *, as_json: bool) -> ExitCode:
    """Ask the source of a file that has no problem, and tell what it answered.

    Raises:
        ConfigurationError: a secret is missing; nothing was asked.
        SourceUnavailableError: the source did not answer.
    """
    from scan_pipeline.sources.scan_file import read_scan_file
    from scan_pipeline.stages.connecting.connection import check_connection
    from scan_pipeline.stages.workspace import open_in_world

    scan = read_scan_file(file).parse()
    source = open_in_world(scan, environ=settings.environ)
    try:
        found = check_connection(scan, source=source)
    finally:
        source.close()
    recorded = _recorded(settings, scan) if found.passed else None
    if as_json:
        told = {
            "passed": found.passed,
            "pages": found.pages,
            "recorded": recorded,
            "lines": [dict(each.__dict__) for each in found.lines],
        }
        print_json({"file": str(file), "problems": [], "connection": told})
    else:
        print_table(
            ("question", "answer", "found", "expected", "what to do"),
            [
                (words(e.question), words(e.result), e.found, e.expected, e.remedy)
                for e in found.lines
            ],
            title=f"{file}: its source, as it answered {found.pages} page(s)",
        )
        answer(_verdict([e.question for e in found.lines if e.result == "failed"], recorded))
    return ExitCode.ACCEPTED if found.passed else ExitCode.NOT_ACCEPTED


def _verdict(failed: list[str], recorded: str | None) -> str:
    if failed:
        return f"NOT AS DECLARED: {', '.join(map(words, failed))}"
    if recorded is None:
        return "nothing contradicts the file, and not all of it could be looked at"
    return f"as declared; recorded at {recorded}" if recorded else "as declared; " + _NO_LAKE


_NO_LAKE = "not recorded, since nothing says where the lake is (--lake, SCAN_PIPELINE_LAKE)"


def _recorded(settings: Settings, scan: "Scan") -> str:
    """Write down in the lake that the check passed; return when, nothing where there is no lake.

    A changed connector or provider file is `contract_unchecked` until this is done.
    """
    from scan_pipeline.core.errors import ConfigurationError
    from scan_pipeline.stages.walking.connector_checks import record_check

    try:
        workspace = settings.workspace()
    except ConfigurationError:
        return ""
    return record_check(scan, workspace=workspace).checked_at
