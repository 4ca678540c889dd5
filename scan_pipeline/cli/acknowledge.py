"""`acknowledge`: a person says that a swing is real, and the withheld receipt is superseded."""

import getpass

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import json_option, print_json, say
from scan_pipeline.cli.settings import Settings


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation")
@click.option("--because", required=True, metavar="TEXT", help="Why the change is real; kept.")
@click.option("--by", metavar="WHO", help="Who says so; else the user of this machine.")
@json_option
@click.pass_obj
def acknowledge(
    settings: Settings, *, scan: str, generation: str, because: str, by: str | None, as_json: bool
) -> ExitCode:
    """Acknowledge the swing for which the receipt of GENERATION is withheld. Signed and kept.

    Nothing else can be acknowledged: the pages are judged again, and what fails stays failed.
    """
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.core.receipt_statement import receipt_json
    from scan_pipeline.stages.acknowledge import acknowledge as stage
    from scan_pipeline.stages.alerting.alerts import tell_quietly

    contract, workspace = settings.scan(scan), settings.workspace()
    stored = stage(
        contract.name,
        generation,
        by=by or getpass.getuser(),
        because=because,
        workspace=workspace,
    )
    tell_quietly(contract, workspace=workspace, warn=say, said=say)
    receipt = stored.receipt
    if as_json:
        say(receipt.statement)
        print_json({"receipt_id": stored.receipt_id, "receipt": receipt_json(receipt)})
    else:
        path = workspace.lake.receipt_path(receipt.scan, receipt.scan_generation)
        print_account(Filed(receipt=receipt, receipt_id=stored.receipt_id, path=path))
    return code_of_acceptance(accepted=receipt.accepted)
