"""How a tool or a list method of an MCP server pages: the next call, and what follows an answer.

Tokens are canonical JSON, so that a cursor that is a number goes back as one: the cursor itself,
or the offset or page number that we count.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pydantic import JsonValue

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, End, Next, Position
from scan_pipeline.sources.http.end_signals import end_of, next_of
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.mcp.calls import ListCall, McpCall, ToolCall
from scan_pipeline.sources.mcp.facts import Arguments, McpToolSource

BEYOND: Final = '"beyond"'
"""The token of what lies beyond the one answer of a tool that does not page."""


class Paging:
    """The facts of a source, as calls.

    Args:
        facts: what the scan file declares.
    """

    def __init__(self, facts: McpToolSource) -> None:
        self._facts = facts

    def call(self, position: Position) -> McpCall:
        """Return the call for a page: the frozen query, what holds still, and where to go on."""
        facts = self._facts
        token = None if position.token is None else json.loads(position.token)
        if facts.method is not None:
            return ListCall(method=facts.method, cursor=token)
        arguments = self.held_still(facts.arguments, position)
        if facts.page_size is not None:
            _put(arguments, facts.page_size.send_as, facts.page_size.value)
        if facts.next is not None:
            goes_on = facts.next.first if token is None else token
            if goes_on is not None:
                _put(arguments, facts.next.send_as, goes_on)
        return ToolCall(tool=facts.tool, arguments=arguments)

    def held_still(self, arguments: Arguments, position: Position) -> dict[str, JsonValue]:
        """Return arguments with those added that hold the collection still.

        Raises:
            ProtocolError: `reported_invalid`, a pin or bound is no number and is to be sent as one.
        """
        facts, held = self._facts, deepcopy(dict(arguments))
        pairs = ((facts.snapshot, position.pin), (facts.high_water_mark, position.high_water_mark))
        for declared, value in pairs:
            if declared is not None and value is not None:
                number = declared.send_as in facts.sent_as_numbers
                _put(held, declared.send_as, _number(value) if number else value)
        return held

    def follows(self, content: Any, position: Position, *, records: int) -> Continuation:
        """Return what follows a page, by the way in which the source pages.

        Raises:
            ProtocolError: the answer says neither that something follows nor that nothing does.
        """
        facts = self._facts
        following = facts.next
        if facts.method is not None:
            return _next_cursor(content)
        if following is None:
            read = None if self._is_full(content, records) else records
            end = end_of(content, facts.whole_when, at=(), records=records, read=read)
            return end or Next(token=BEYOND)
        if following.by == "cursor" and following.at is not None:
            end = end_of(content, following.ends_when, at=following.at, records=records)
            if end is not None:
                return end
            token = value_at(content, following.at)
            next_of(token, where=".".join(following.at), signals=following.ends_when)
            return Next(token=canonical_json(token).decode())  # a number goes back as a number
        usual = 0 if following.by == "offset" else 1
        first = usual if following.first is None else int(following.first)
        at = first if position.token is None else int(position.token)
        read = at - first + records if following.by == "offset" else None
        if position.token is None and self._is_full(content, records):
            read = None
        end = end_of(content, following.ends_when, at=(), records=records, read=read)
        step = records if following.by == "offset" else 1
        return end or Next(token=str(at + step))

    def _is_full(self, content: Any, records: int) -> bool:
        """Say whether a first page is as long as it was allowed to be.

        A total that equals the length of such a page may have been taken from it.
        """
        size = self._facts.page_size
        if size is None:
            return False
        echoed = ABSENT if size.echoed_at is None else value_at(content, size.echoed_at)
        allowed = echoed if type(echoed) is int and echoed < size.value else size.value
        return records >= allowed


def _next_cursor(result: Mapping[str, Any]) -> Continuation:
    """Read the cursor of a list method: any text there, the empty one too, goes on."""
    cursor = result.get("nextCursor", ABSENT)
    if cursor is ABSENT or cursor is None:
        return End(signal="absent" if cursor is ABSENT else "null")
    if not isinstance(cursor, str):
        raise ProtocolError("continuation_invalid", "nextCursor holds no text; expected a cursor")
    return Next(token=canonical_json(cursor).decode())


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ProtocolError(
            "reported_invalid", "a pin or bound is no number, and sent_as_numbers names it"
        ) from None


def _put(arguments: dict[str, JsonValue], path: str, value: JsonValue) -> None:
    """Set an argument; dots lead into arguments that are objects, which the facts made sure of."""
    *parents, last = path.split(".")
    inner: Any = arguments
    for step in parents:
        inner = inner.setdefault(step, {})
    inner[last] = value
