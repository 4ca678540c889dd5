"""What the registry answers, and how it refuses."""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.value import record

Wire: TypeAlias = Literal["whole", "cut", "lost"]
"""`whole`: sent to its end; `cut`: the connection breaks in the body; `lost`: before any byte."""


@record
class Answer:
    """One HTTP answer, and what the connection does with it.

    Attributes:
        status: HTTP status code.
        body: the body as it would go out whole.
        content_type: of the body.
        headers: further headers, by lower-case name.
        delay_s: seconds between the work and the first byte.
        wire: how much of it arrives.
        sent_bytes: for `cut`, how many bytes of the body go out.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    wire: Wire = "whole"
    sent_bytes: int = 0


class RequestRefusedError(ScanPipelineError):
    """The registry does not do what was asked; it says so with a status and a code.

    Attributes:
        status: HTTP status code, 400 to 599.
        code: the error's word in the envelope.
        headers: further headers of the refusal.
    """

    def __init__(
        self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, dict(headers or {})


def json_answer(content: object) -> Answer:
    """Answer 200 with compact JSON."""
    return Answer(status=200, body=compact(content))


def refusal(error: RequestRefusedError) -> Answer:
    """Put a refusal into the error envelope."""
    return Answer(status=error.status, body=envelope(error.code, str(error)), headers=error.headers)


def envelope(code: str, message: str) -> bytes:
    """Return the body of every error: `{"error": {"code", "message"}}`."""
    return compact({"error": {"code": code, "message": message}})


def compact(content: object) -> bytes:
    """Write JSON without spaces, in UTF-8."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
