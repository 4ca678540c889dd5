"""`receipt`: one signed account, read without any table engine."""

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import json_option, print_json
from scan_pipeline.cli.settings import Settings


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option("--raw", is_flag=True, help="The signed DSSE envelope as it lies in the lake.")
@json_option
@click.pass_obj
def receipt(
    settings: Settings, *, scan: str, generation: str | None, raw: bool, as_json: bool
) -> ExitCode:
    """Show the receipt of GENERATION, or the newest, its signature checked."""
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.core.receipt import receipt_json
    from scan_pipeline.store.lake import Lake

    stored = settings.receipt(scan, generation)
    chosen = stored.receipt
    if raw:
        click.echo(settings.receipts(scan).envelope(chosen.scan_generation))
    elif as_json:
        print_json(receipt_json(chosen))
    else:
        path = Lake(root=settings.project().lake).receipt_path(chosen.scan, chosen.scan_generation)
        print_account(Filed(receipt=chosen, receipt_id=stored.receipt_id, path=path))
    return code_of_acceptance(accepted=chosen.accepted)
