"""`findings`: every finding of a generation, from its table."""

from typing import TYPE_CHECKING, Any, get_args

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.vocabulary import Severity

if TYPE_CHECKING:
    from scan_pipeline.stages.workspace import Workspace

COLUMNS = ("severity", "code", "stage", "page", "key", "expected", "found", "remedy")


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option("--code", help="Only findings of this code, e.g. duplicate_delivery.")
@click.option("--severity", type=click.Choice(get_args(Severity)), help="Only findings this heavy.")
@json_option
@click.pass_obj
def findings(
    settings: Settings,
    *,
    scan: str,
    generation: str | None,
    code: str | None,
    severity: str | None,
    as_json: bool,
) -> ExitCode:
    """List all findings of GENERATION, or of the newest with a receipt."""
    from scan_pipeline.cli.settings import newest

    name, workspace = settings.name(scan), settings.workspace()
    chosen = generation or newest(workspace.receipts(name), name, trust=workspace.trust)
    told = all_findings(name, chosen, workspace=workspace)
    kept = [
        each
        for each in told
        if code in (None, each["code"]) and severity in (None, each["severity"])
    ]
    if as_json:
        print_json(kept)
        return ExitCode.ACCEPTED
    rows = [[each[column] for column in COLUMNS] for each in kept]
    print_table(COLUMNS, rows, title=f"{len(kept):,} of {len(told):,} findings of {name} {chosen}")
    return ExitCode.ACCEPTED


def all_findings(scan: str, generation: str, *, workspace: "Workspace") -> list[dict[str, Any]]:
    """Return the findings of a generation in order, as plain values.

    Those of a sealed generation are held against the digest in its receipt.

    Raises:
        GateClosedError: the generation has no findings yet: it was not reconciled.
        TamperedError: they are not those that the receipt was signed over.
    """
    from scan_pipeline.core.errors import GateClosedError, TamperedError
    from scan_pipeline.core.findings import findings_digest
    from scan_pipeline.store.lake import check_generation

    store = workspace.store(scan, check_generation(generation))
    if store.is_sealed():
        receipt = store.receipts.read(generation, trust=workspace.trust).receipt
        found = findings_digest(store.read_findings())
        if found != receipt.findings.digest:
            raise TamperedError(
                "findings",
                f"{scan} {generation}: the findings' digest is {found}; expected "
                f"{receipt.findings.digest}, which was signed. Restore the table",
            )
    elif generation not in store.pages().generations():
        raise GateClosedError(
            scan=scan, generation=generation, reason="no such generation; expected one that ran"
        )
    table = store.findings_table()
    rows = table.read(generation).sort_by("number").to_pylist() if table.exists() else []
    hidden = ("scan_generation", "number")
    return [{name: row[name] for name in row if name not in hidden} for row in rows]
