"""Alerts to an incoming webhook, in the JSON that Slack takes, as do Mattermost and Rocket.Chat.

The body is `{"text": ...}`, the one member that an incoming webhook needs; 200 is taken for
delivered (api.slack.com/custom-integrations/incoming-webhooks, read 2026-11-30). `&`, `<` and `>`
steer Slack's formatting and are escaped.
"""

from typing import Final

import httpx2

from scan_pipeline.core.errors import ConfigurationError, RetryError
from scan_pipeline.stages.alerting.message import Message

TIMEOUT_S: Final = 10.0
"""Longest wait for connecting and for an answer, in seconds: a night must not hang on it."""


def post(message: Message, *, address: str, transport: httpx2.BaseTransport | None = None) -> None:
    """Send an alert; its address is a secret and is told to nobody.

    Args:
        message: what to send.
        address: of the webhook.
        transport: what carries the request, None for the network.

    Raises:
        ConfigurationError: the address is none of the web.
        RetryError: it was not taken.
    """
    if not address.startswith(("https://", "http://")):
        raise ConfigurationError(
            "the secret that alerts.webhook names is no web address; expected https://..."
        )
    text = "\n".join([f"*{_plain(message.title)}*", *(_plain(each) for each in message.lines)])
    try:
        with httpx2.Client(
            transport=transport, timeout=TIMEOUT_S, follow_redirects=False
        ) as client:
            answer = client.post(address, json={"text": text})
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise RetryError(f"the webhook was not reached: {type(error).__name__}") from None
    if not answer.is_success:
        raise RetryError(
            f"the webhook answered {answer.status_code}; expected 200. Its address may have been "
            "withdrawn, or it wants another body"
        )


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
