"""What a refusal of an MCP server means: what the source documents, HTTP's meaning, or none.

Two kinds there are (specification 2026-07-28, server/tools, "Error Handling", read 2026-11-30):
JSON-RPC errors for requests that are wrong or servers that are unwell, and results with `isError`
for what went wrong in the tool. Neither says whether another call would help. Only -32603, the
server's own trouble, is tried again without being told; all else ends the walk as failed, unless a
scan file says what it means.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json
from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    ProtocolError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    TransientSourceError,
)
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.envelope import ABSENT, parse_body, value_at
from scan_pipeline.sources.http.responses import (
    MAX_DECLARED_WAIT,
    Answer,
    RefusedAnswer,
    understand,
)
from scan_pipeline.sources.mcp.calls import McpCall, ServerRefusedError
from scan_pipeline.sources.mcp.facts import McpToolSource, ToolRefusal

INTERNAL_ERROR: Final = -32603
"""JSON-RPC 2.0, section 5.1: internal error."""

OF_JSON_RPC: Final = frozenset({200, 202, 400, 404})
"""HTTP statuses beside which the JSON-RPC error says more: 400 and 404 are the specification's own
for wrong parameters and for unknown methods or sessions (2026-07-28, basic/transports/
streamable-http, read 2026-11-30)."""

SESSION_GONE: Final = 404


def understand_refusal(
    error: ServerRefusedError,
    *,
    facts: McpToolSource,
    answered: Answer | None,
    repeatable: bool,
    now: datetime,
) -> RefusedAnswer:
    """Say what a JSON-RPC error means.

    Args:
        error: the error.
        facts: what the scan file declares.
        answered: the HTTP answer that carried it, None of a child.
        repeatable: whether the call may be made again.
        now: the time, UTC.
    """
    http = facts.transport.http
    if http is not None and answered is not None and answered.status not in OF_JSON_RPC:
        return understand(
            answered,
            origin=origin_of(http.url),
            responses=(),
            repeatable=repeatable,
            now=now,
        )
    for each in facts.errors:
        if each.code in (None, error.number) and _says(error.data, each):
            return _meant(each, str(error), data=error.data, repeatable=repeatable)
    if error.number == INTERNAL_ERROR:
        own = ToolRefusal(code=INTERNAL_ERROR, means="retry")
        return _meant(own, str(error), data=None, repeatable=repeatable)
    return RefusedAnswer(reason="rejected", error=error)


def understand_error_result(
    result: Mapping[str, Any], *, facts: McpToolSource, call: McpCall, repeatable: bool
) -> RefusedAnswer:
    """Say what a result means that is marked as an error."""
    data = _error_data(result)
    told = f"{call.words}: the tool answered with an error"
    for each in facts.errors:
        if each.code is None and _says(data, each):
            return _meant(each, told, data=data, repeatable=repeatable)
    return RefusedAnswer(reason="tool_error", error=ProtocolError("tool_error", told))


def _meant(each: ToolRefusal, told: str, *, data: Any, repeatable: bool) -> RefusedAnswer:
    match each.means:
        case "retry" if not repeatable:
            told = f"{told}, and the continuation it was called with works only once"
            return RefusedAnswer(reason="server_error", error=ContinuationConsumedError(told))
        case "wait" | "retry":
            reason = "wait" if each.means == "wait" else "server_error"
            wait = _declared_wait(data, each)
            if wait is None or wait <= MAX_DECLARED_WAIT:
                return RefusedAnswer(
                    reason=reason, error=TransientSourceError(reason, told, wait=wait)
                )
            told = (
                f"{told} and asks for a wait of {wait:.0f} s; expected at most "
                f"{MAX_DECLARED_WAIT:.0f} s. Begin a new generation after that time"
            )
            return RefusedAnswer(reason=reason, error=SourceUnavailableError(told))
        case "refused":
            told = f"{told}; expected rights to read. Check the credentials the scan file names"
            return RefusedAnswer(reason="access_refused", error=AccessRefusedError(told))
        case "expired":
            told = f"{told}: the version or continuation is gone; a new generation must begin"
            return RefusedAnswer(reason="expired", error=SnapshotExpiredError(told))
        case "consumed":
            told = f"{told}: the continuation is spent"
            return RefusedAnswer(reason="consumed", error=ContinuationConsumedError(told))
        case "window":
            told = f"{told}: it shows no more results of this query; expected its end"
            return RefusedAnswer(reason="window", error=SourceWindowError(told))


def _says(data: Any, each: ToolRefusal) -> bool:
    return each.at is None or value_at(data, each.at) == each.equals


def _declared_wait(data: Any, each: ToolRefusal) -> float | None:
    seconds = ABSENT if each.wait_at is None else value_at(data, each.wait_at)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        return None
    return float(seconds)


def _error_data(result: Mapping[str, Any]) -> Any:
    """Return what an error result says as JSON: its structured content, or its one text."""
    if "structuredContent" in result:
        return result["structuredContent"]
    texts = [block["text"] for block in result.get("content", []) if block.get("type") == "text"]
    try:
        return parse_body(texts[0].encode()) if len(texts) == 1 else None
    except (ProtocolError, UnicodeEncodeError):
        return None


def bytes_of(result: Any) -> bytes:
    """Return the bytes that a refused answer is digested by; empty where there are none."""
    try:
        return canonical_json(result)
    except CanonicalFormError:
        return b""
