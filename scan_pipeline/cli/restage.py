"""`restage`: stored pages judged again after a fix of schema, key or expectation."""

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import json_option, print_json, say
from scan_pipeline.cli.settings import Settings


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation")
@json_option
@click.pass_obj
def restage(settings: Settings, *, scan: str, generation: str, as_json: bool) -> ExitCode:
    """Judge the pages of GENERATION again under the present scan file; the source is not asked."""
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.core.receipt_statement import receipt_json
    from scan_pipeline.stages import restage as stage
    from scan_pipeline.stages.alerting.alerts import tell_quietly

    contract, workspace = settings.scan(scan), settings.workspace()
    stored = stage.restage(contract, generation, workspace=workspace)
    tell_quietly(contract, workspace=workspace, warn=say, said=say)
    receipt = stored.receipt
    if as_json:
        print_json({"receipt_id": stored.receipt_id, "receipt": receipt_json(receipt)})
    else:
        path = workspace.lake.receipt_path(receipt.scan, receipt.scan_generation)
        print_account(Filed(receipt=receipt, receipt_id=stored.receipt_id, path=path))
    return code_of_acceptance(accepted=receipt.accepted)
