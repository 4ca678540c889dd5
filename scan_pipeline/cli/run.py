"""`run`: one night of a scan, without Dagster, and the analyses that ship with it."""

import time
from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.run import Night

MOST_TRIED = 100
"""Pages of a trial, at most; who wants more wants mode bounded, which says what it covers."""


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.option(
    "--trial",
    metavar="PAGES",
    type=click.IntRange(1, MOST_TRIED),
    help="Stage so many pages apart, to see whether the file is right; proves nothing.",
)
@json_option
@click.pass_obj
def run(settings: Settings, *, scan: str, trial: int | None, as_json: bool) -> ExitCode:
    """Walk a scan to its end, certify it, and run its analyses where the receipt opens it.

    A walk that broke off is taken up again. SIGINT and SIGTERM end the walk with a receipt.
    """
    if trial is not None:
        from scan_pipeline.cli.trial import try_scan

        return try_scan(settings, scan, pages=trial, as_json=as_json)
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.cli.analysis import analyse, print_outcome
    from scan_pipeline.cli.cancellation import Cancellation
    from scan_pipeline.cli.progress import WalkProgress
    from scan_pipeline.core.receipt_statement import receipt_json
    from scan_pipeline.stages.alerting.alerts import tell_quietly
    from scan_pipeline.stages.run import run_scan
    from scan_pipeline.stages.telemetry.nights import tell_nights, watched

    contract = settings.scan(scan)
    with Cancellation(told=say) as cancellation:
        workspace = settings.workspace(sleep=cancellation.sleep)
        with WalkProgress(clock=time.monotonic) as progress:
            night = run_scan(
                contract,
                workspace=workspace,
                check_cancelled=cancellation.check,
                interruptions=(),
                progress=watched(progress, scan=contract.name, workspace=workspace),
            )
    _say_earlier(night)
    tell_nights((*night.closed, *night.earlier, night.stored), workspace=workspace, warn=say)
    tell_quietly(contract, workspace=workspace, warn=say, said=say)
    receipt = night.stored.receipt
    path = workspace.lake.receipt_path(receipt.scan, receipt.scan_generation)
    if not as_json:
        print_account(Filed(receipt=receipt, receipt_id=night.stored.receipt_id, path=path))
    outcomes = analyse(night.stored, contract, workspace=workspace)
    if as_json:
        told = [each.as_json() for each in outcomes]
        facts = {**_as_json(night), "path": path, "analyses": told}
        print_json({**facts, "receipt": receipt_json(receipt)})
        return code_of_acceptance(accepted=receipt.accepted)
    for outcome in outcomes:
        answer()
        print_outcome(outcome)
    return code_of_acceptance(accepted=receipt.accepted)


def _say_earlier(night: "Night") -> None:
    for each in night.closed:
        say(f"closed what an earlier run left open: {each.receipt.statement}")
    for each in night.left:
        say(f"{each.generation} is open and cannot be certified: {each.reason}")
    for each in night.earlier:
        say(f"began again after {each.receipt.stop_reason}: {each.receipt.statement}")


def _as_json(night: "Night") -> dict[str, Any]:
    return {
        "receipt_id": night.stored.receipt_id,
        "accepted": night.stored.receipt.accepted,
        "earlier_receipt_ids": [each.receipt_id for each in night.earlier],
        "closed_receipt_ids": [each.receipt_id for each in night.closed],
        "left_open": [dict(each.__dict__) for each in night.left],
    }
