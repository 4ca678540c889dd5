"""A webhook and a mail server that really listen, and what they were sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Channels:
    """Two channels; each can be told to refuse.

    Attributes:
        address: of the webhook, which holds a secret.
        mail_port: of the mail server.
        posted: what the webhook took.
        mails: what the mail server took.
        answers: what the webhook answers with.
        accepts_mail: whether the mail server takes mail.
    """

    address: str = ""
    mail_port: int = 0
    posted: list[Any] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    answers: int = 200
    accepts_mail: bool = True

    @property
    def texts(self) -> list[str]:
        return [each["text"] for each in self.posted]

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: ARG002, N802
        if not self.accepts_mail:
            return "451 try again later"
        letter = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(letter, EmailMessage)
        self.mails.append(letter)
        return "250 taken"


class _PostOffice(Controller):
    """A mail server on a port that the system chose."""

    def _trigger_server(self) -> None:
        """Connect once, as the controller wants it, where it really listens."""
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def channels() -> Iterator[Channels]:
    """Listen until the block ends."""
    found = Channels()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if found.answers == 200:
                found.posted.append(json.loads(body))
            self.send_response(found.answers)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            return

    web = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    post_office = _PostOffice(found, hostname="127.0.0.1", port=0)
    post_office.start()
    try:
        found.address = f"http://127.0.0.1:{web.server_address[1]}/services/T0/B0/hushhush"
        found.mail_port = post_office.port
        yield found
    finally:
        post_office.stop()
        web.shutdown()
        thread.join()
        web.server_close()
