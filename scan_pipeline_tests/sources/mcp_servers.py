"""Servers for the tests of `mcp_tool`: scripted children, and scripted answers over HTTP."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp_types.version import LATEST_MODERN_VERSION

from scan_pipeline.core.page import Page
from scan_pipeline.sources.source import Source

SCRIPTED: Final = Path(__file__).with_name("scripted_mcp_server.py")
CURSOR: Final = {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]}
ENDPOINT: Final = "https://mcp.example/mcp"

Message = dict[str, Any]


def structured(content: Any, **more: Any) -> Message:
    """A result whose content is structured."""
    return {"content": [], "structuredContent": content, **more}


def textual(text: str, **more: Any) -> Message:
    """A result whose content is one text."""
    return {"content": [{"type": "text", "text": text}], **more}


@dataclass(frozen=True)
class Scripted:
    """A scripted server over stdio, and what it was sent."""

    script: Path
    log: Path

    @property
    def transport(self) -> dict[str, Any]:
        args = ["-S", "-E", str(SCRIPTED), str(self.script), str(self.log)]
        return {"stdio": {"command": sys.executable, "args": args}}

    @property
    def lines(self) -> list[Message]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    @property
    def asked(self) -> list[Message]:
        """Parameters of the calls that were answered, in order."""
        return [line["asked"] for line in self.lines if "asked" in line]

    @property
    def children(self) -> list[int]:
        """Process ids, one for each connection."""
        return [line["started"] for line in self.lines if "started" in line]

    def told(self, method: str) -> list[Message]:
        """Parameters of the notifications of a method."""
        return [line["params"] for line in self.lines if line.get("method") == method]


def scripted(folder: Path, *answers: Message, **script: Any) -> Scripted:
    """Write a script for a server over stdio."""
    server = Scripted(script=folder / "script.json", log=folder / "log.jsonl")
    told = {"answers": answers, **script}
    server.script.write_text(json.dumps(told), encoding="utf-8")
    return server


class ScriptedHttp(httpx2.MockTransport):
    """Answers a client of the newest revision; whatever is no handshake goes to `answer`.

    Attributes:
        requests: every message that came, with its headers.
    """

    def __init__(self, answer: Callable[[Message, int], httpx2.Response | Message]) -> None:
        """Take what answers.

        Args:
            answer: is given a message and how manieth of its method it is, from 1; returns a
                result, or a whole response.
        """
        self.requests: list[tuple[Message, httpx2.Headers]] = []
        self._answer = answer
        super().__init__(self._handle)

    def methods(self) -> list[str]:
        return [message["method"] for message, _ in self.requests]

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content) if request.content else {"method": request.method}
        self.requests.append((message, request.headers))
        if message["method"] == "server/discover":
            return reply(message, DISCOVERED)
        told = self._answer(message, self.methods().count(message["method"]))
        return told if isinstance(told, httpx2.Response) else reply(message, told)


DISCOVERED: Final = {
    "supportedVersions": [LATEST_MODERN_VERSION],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


def reply(message: Mapping[str, Any], result: Message, status: int = 200) -> httpx2.Response:
    whole = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
    return httpx2.Response(
        status, json={"jsonrpc": "2.0", "id": message.get("id"), "result": whole}
    )


def refuse(message: Mapping[str, Any], code: int, status: int = 200) -> httpx2.Response:
    error = {"code": code, "message": "refused"}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": message.get("id"), "error": error})


def records(source: Source, *pages: Page) -> list[Any]:
    """Return the records of pages, parsed."""
    return [json.loads(each) for page in pages for each in source.records(page.body)]
