"""Tell of a scan's condition where it changed, once for each channel, whoever looks at it."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from scan_pipeline.core.condition import Change, Condition
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.alerting.mail import mail
from scan_pipeline.stages.alerting.message import Message, message_of
from scan_pipeline.stages.alerting.nights import last_nights
from scan_pipeline.stages.alerting.settings import AlertSettings, alert_settings
from scan_pipeline.stages.alerting.webhook import post
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.alert_ledger import AlertLedger

Channel: TypeAlias = Literal["webhook", "email"]

Fate: TypeAlias = Literal["sent", "not_sent", "waits"]
"""`waits`: another holds it, or it is too early to try again."""

NO_NIGHT = "20000101T000000Z"
"""Partition of alerts about a scan that no night is known of."""


@record
class Told:
    """What became of one alert on one channel.

    Attributes:
        channel: where it goes.
        change: what it is about.
        fate: what became of it.
        problem: why it was not sent.
    """

    channel: Channel
    change: Change
    fate: Fate
    problem: str | None = None


@record
class Alerted:
    """A look at one scan.

    Attributes:
        condition: how it stands.
        told: one for each channel that did not know it yet.
    """

    condition: Condition
    told: tuple[Told, ...]


def tell_changes(scan: Scan, *, workspace: Workspace) -> Alerted:
    """Send what each channel has not heard yet.

    Raises:
        ConfigurationError: the settings are wrong.
        ScanPipelineError: receipts or ledger cannot be read. A channel that does not take an alert
            raises nothing: it is in the answer, and is tried again by whoever looks next.
    """
    settings = alert_settings(workspace.project)
    nights = last_nights(scan, workspace=workspace)
    condition = nights.condition
    ledger = AlertLedger(workspace.lake, scan.name)
    told = list[Told]()
    for channel, send in senders(settings, workspace=workspace).items():
        last = ledger.last_sent(channel)
        if condition.is_told_by(last and last.change, last and last.since):
            continue
        told.append(
            _tell(
                channel,
                condition,
                send=lambda send=send: send(message_of(scan.name, nights)),
                ledger=ledger,
                workspace=workspace,
            )
        )
    return Alerted(condition=condition, told=tuple(told))


def tell_quietly(
    scan: Scan, *, workspace: Workspace, warn: Callable[[str], None], said: Callable[[str], None]
) -> None:
    """Send as `tell_changes`; nothing that goes wrong with it concerns the scan.

    Args:
        scan: the scan.
        workspace: where.
        warn: told what went wrong.
        said: told what was sent.
    """
    if not workspace.project.alerts:
        return
    try:
        for each in tell_changes(scan, workspace=workspace).told:
            if each.fate == "sent":
                said(f"alert by {each.channel}: {each.change.replace('_', ' ')}")
            elif each.fate == "not_sent":
                warn(f"alert by {each.channel} not sent, and tried again later: {each.problem}")
    except ScanPipelineError as error:
        warn(f"no alert was sent: {error}")
    except Exception as error:  # noqa: BLE001  # an alert never makes the scan fail
        warn(f"no alert was sent: {type(error).__name__}, a bug: please report it")


def senders(
    settings: AlertSettings, *, workspace: Workspace
) -> dict[Channel, Callable[[Message], None]]:
    """Return what sends to each channel that is configured; secrets are looked up when sending."""
    found = dict[Channel, Callable[[Message], None]]()
    base, environ = workspace.project.root, workspace.environ
    webhook, server = settings.webhook, settings.email
    if webhook is not None:
        found["webhook"] = lambda message: post(
            message, address=webhook.resolve(environ, base=base)
        )
    if server is not None:
        found["email"] = lambda message: mail(
            message, settings=server, environ=environ, base=base, now=workspace.clock()
        )
    return found


def _tell(
    channel: Channel,
    condition: Condition,
    *,
    send: Callable[[], None],
    ledger: AlertLedger,
    workspace: Workspace,
) -> Told:
    claim = ledger.claim(
        channel,
        change=condition.change,
        since=condition.since,
        generation=condition.newest.generation if condition.newest else NO_NIGHT,
        now=workspace.clock(),
    )
    if claim is None:
        return Told(channel=channel, change=condition.change, fate="waits")
    problem: str | None = None
    try:
        send()
    except ScanPipelineError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001  # whatever a server does: the claim must be closed
        problem = type(error).__name__
    ledger.close(claim, sent=problem is None, now=workspace.clock())
    fate: Fate = "sent" if problem is None else "not_sent"
    return Told(channel=channel, change=condition.change, fate=fate, problem=problem)
