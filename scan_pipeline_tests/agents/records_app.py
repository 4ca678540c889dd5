"""A registry of single records with entity tags, that closes them where it is asked to."""

import hashlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from scan_pipeline.simulator.app import DISCONNECT


@dataclass(frozen=True)
class Received:
    """One request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RecordsApp:
    """`GET /v1/{kind}/{key}` gives a record, `POST /v1/{kind}/{key}/close` closes it.

    Attributes:
        records: bytes of each record by its key.
        received: all that came in.
        before: called with each request before it is answered.
        answer: status that is given to whatever would change something; None for what is right.
        location: where a redirect leads.
        lose: whether the answer to a change is lost on the way, the change being made.
        wants_condition: whether a change without If-Match is refused.
    """

    records: dict[str, bytes]
    received: list[Received] = field(default_factory=list)
    before: Callable[[Received], None] = lambda _: None
    answer: int | None = None
    location: str = ""
    lose: bool = False
    wants_condition: bool = False
    closed: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[Received]:
        """Requests that were to change something."""
        return [each for each in self.received if each.method != "GET"]

    def edit(self, key: str, **members: Any) -> None:
        """Change a record, and with it its tag."""
        self.records[key] = json.dumps(json.loads(self.records[key]) | members).encode()

    def tag(self, key: str) -> str:
        return f'"{hashlib.sha256(self.records[key]).hexdigest()[:12]}"'

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = Received(
            method=scope["method"],
            path=scope["raw_path"].decode(),
            headers={name.decode(): value.decode() for name, value in scope["headers"]},
            body=body,
        )
        self.received.append(request)
        self.before(request)
        status, headers, content = self._answered(request)
        if self.lose and request.method != "GET":
            await send({"type": DISCONNECT})
            return
        told = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": content})

    def _answered(self, request: Received) -> tuple[int, dict[str, str], bytes]:
        key = unquote(request.path.split("/")[3])
        if key not in self.records:
            return 404, {}, b""
        if request.method == "GET":
            return 200, {"etag": self.tag(key)}, self.records[key]
        if self.answer is not None:
            return self.answer, {"location": self.location}, b""
        condition = request.headers.get("if-match")
        if condition is None and self.wants_condition:
            return 428, {}, b""
        if condition not in (None, self.tag(key)):
            return 412, {}, b""
        self.closed.append(key)
        return 204, {}, b""
