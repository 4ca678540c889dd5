"""Alerts by e-mail, over SMTP."""

import smtplib
import ssl
from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from scan_pipeline.core.errors import RetryError
from scan_pipeline.stages.alerting.message import Message
from scan_pipeline.stages.alerting.settings import MailSettings, Security

TIMEOUT_S: Final = 10.0
"""Longest wait for the server's answer, in seconds."""

_PORTS: Final[Mapping[Security, int]] = {"starttls": 587, "tls": 465, "none": 25}


def mail(
    message: Message,
    *,
    settings: MailSettings,
    environ: Mapping[str, str],
    base: Path | None,
    now: datetime,
) -> None:
    """Send an alert to all addresses, or to none.

    Args:
        message: what to send.
        settings: the server.
        environ: where its password is looked up.
        base: folder that a password's file is relative to.
        now: time in UTC.

    Raises:
        ConfigurationError: the password is missing.
        RetryError: the server did not take it; says no more of it than its code.
    """
    password = None if settings.password is None else settings.password.resolve(environ, base=base)
    letter = letter_of(message, settings=settings, now=now)
    try:
        with _connected(settings) as server:
            if settings.user is not None and password is not None:
                server.login(settings.user, password)
            refused = server.send_message(letter)
    except (smtplib.SMTPException, OSError) as error:
        code = getattr(error, "smtp_code", None)
        told = type(error).__name__ + (f", code {code}" if code else "")
        raise RetryError(
            f"the mail server {settings.host} did not take the alert: {told}"
        ) from None
    if refused:
        raise RetryError(
            f"the mail server {settings.host} took the alert for some and refused "
            f"{len(refused)} of {len(settings.to)} addresses"
        )


def letter_of(message: Message, *, settings: MailSettings, now: datetime) -> EmailMessage:
    """Return the letter; the same alert has the same id, by which mail programs know a double."""
    letter = EmailMessage()
    letter["Subject"] = message.title
    letter["From"] = settings.sender
    letter["To"] = ", ".join(settings.to)
    letter["Date"] = format_datetime(now)
    letter["Message-ID"] = f"<{message.id}@{settings.sender.rpartition('@')[2]}>"
    letter["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence note answers it
    letter.set_content("\n".join(message.lines) + "\n")
    return letter


def _connected(settings: MailSettings) -> smtplib.SMTP:
    port = settings.port or _PORTS[settings.security]
    if settings.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(settings.host, port, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(settings.host, port, timeout=TIMEOUT_S)
    try:
        if settings.security == "starttls":
            server.starttls(context=ssl.create_default_context())
    except BaseException:
        server.close()
        raise
    return server
