"""`alerts`: send what changed since the last look; for cron, where no Dagster runs."""

from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, print_json, print_table, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ConfigurationError, ScanPipelineError

if TYPE_CHECKING:
    from scan_pipeline.stages.alerting.alerts import Alerted
    from scan_pipeline.stages.workspace import Workspace

HEADINGS = ("scan", "condition", "since", "channel", "alert", "problem")


@click.command()
@click.argument("scans", metavar="[NAME|FILE]...", nargs=-1)
@click.option("--test", "trial", is_flag=True, help="Send a test to every channel, and no alert.")
@json_option
@click.pass_obj
def alerts(settings: Settings, *, scans: tuple[str, ...], trial: bool, as_json: bool) -> ExitCode:
    """Look at scans (all of the project, if none is named) and send the alerts that are due.

    Each change is told once on each channel, whoever looks: run it as often as you like.
    """
    from scan_pipeline.stages.alerting.alerts import tell_changes
    from scan_pipeline.stages.alerting.settings import WHERE
    from scan_pipeline.stages.scan_lookup import scan_names

    workspace = settings.workspace()
    if not workspace.project.alerts:
        raise ConfigurationError(
            f"found no {WHERE} in the project's pyproject.toml; expected webhook or email there"
        )
    if trial:
        return _try_out(workspace, as_json=as_json)
    rows, bad = list[dict[str, Any]](), False
    for named in scans or scan_names(settings.folder):
        try:
            scan = settings.scan(named)
            found = _rows(scan.name, tell_changes(scan, workspace=workspace))
        except ScanPipelineError as error:
            # One scan that cannot be looked at must not keep the others' alerts.
            say(f"{named}: {error}")
            found, bad = [], True
        bad = bad or any(each["alert"] == "not_sent" for each in found)
        rows += found
    if as_json:
        print_json(rows)
    else:
        print_table(HEADINGS, [tuple(each.values()) for each in rows])
    return ExitCode.COULD_NOT_RUN if bad else ExitCode.ACCEPTED


def _rows(scan: str, alerted: "Alerted") -> list[dict[str, Any]]:
    told = [(each.channel, each.fate, each.problem) for each in alerted.told]
    return [
        {
            "scan": scan,
            "condition": alerted.condition.word,
            "since": alerted.condition.since,
            "channel": channel,
            "alert": fate,
            "problem": problem,
        }
        for channel, fate, problem in told or [(None, None, None)]
    ]


def _try_out(workspace: "Workspace", *, as_json: bool) -> ExitCode:
    from scan_pipeline.stages.alerting.alerts import senders
    from scan_pipeline.stages.alerting.message import trial_message
    from scan_pipeline.stages.alerting.settings import alert_settings

    root = workspace.project.root
    message = trial_message("here" if root is None else root.name)
    rows = list[dict[str, Any]]()
    for channel, send in senders(alert_settings(workspace.project), workspace=workspace).items():
        problem: str | None = None
        try:
            send(message)
        except ScanPipelineError as error:
            problem = str(error)
        fate = "sent" if problem is None else "not_sent"
        rows.append({"channel": channel, "alert": fate, "problem": problem})
    if as_json:
        print_json(rows)
    else:
        print_table(("channel", "alert", "problem"), [tuple(each.values()) for each in rows])
    failed = any(each["problem"] for each in rows)
    return ExitCode.COULD_NOT_RUN if failed else ExitCode.ACCEPTED
