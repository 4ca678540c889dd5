"""Pages out of results: structured content as canonical JSON lines, a text as it was sent.

Structured content has no record bytes of its own, so the body of a page is written here: the
canonical JSON of each record (RFC 8785 with exact numbers, see `core.canonical`), one a line; a
page without records is empty. The same goes for list methods. A text block does have bytes: the
text is the body, and a record is what stands in it.

| JSON | structured content (leaf `canonical-json/v1`) | text (leaf `raw/v1`) |
|---|---|---|
| null, true, false | as it is | as sent |
| string | as it is, shortest escapes | as sent |
| whole number | exact, of any size | as sent |
| with a fraction or exponent | the nearest double, as the SDK parses it, shortest form | as sent |
| object | members by name; of two equal ones the SDK keeps the last | as sent |
| array | in its order | as sent |

So a source whose decimals carry more than 15 significant digits is to be read with
`content: text`; a server that gives structured content should serialize the same JSON into a text
block (specification 2026-07-28, server/tools, "Structured Content", read 2026-11-30).
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import (
    ABSENT,
    open_envelope,
    parse_body,
    split_records,
    value_at,
)
from scan_pipeline.sources.mcp.facts import RECORDS_OF, McpToolSource

Content: TypeAlias = Literal["structured", "text"]

NOTHING: Final = (None, False, "", [], {})
"""What may stand where errors are told, when there are none."""


@record
class McpPage:
    """A result taken apart.

    Attributes:
        body: what is kept of it.
        records: each record's bytes, in page order.
        around: what stands around them.
    """

    body: bytes
    records: Sequence[bytes]
    around: Any


def page_of(result: dict[str, Any], facts: McpToolSource) -> McpPage:
    """Take the result of a page's call apart.

    Raises:
        ProtocolError: `error_envelope`, `records_missing`, `member_doubled` or `body_unparsable`.
    """
    at = records_at(facts)
    if facts.method is None and facts.content == "text":
        text = _text(result, facts.tool)
        try:
            envelope = open_envelope(text, records_at=at)
        except ProtocolError as error:
            if error.code == "records_missing":  # an error in their place says more
                _refuse_errors(parse_body(text), facts)
            raise
        _refuse_errors(envelope.around, facts)
        return McpPage(body=text, records=envelope.records, around=envelope.around)
    around = result if facts.method is not None else content_of(result, "structured", facts.tool)
    _refuse_errors(around, facts)
    found = value_at(around, at)
    if not isinstance(found, list):
        raise ProtocolError(
            "records_missing",
            f"the content of {facts.tool} has no list at {'.'.join(at) or '$'}; expected the "
            "records",
        )
    try:
        records = [canonical_json(each) for each in found]
    except CanonicalFormError as error:
        raise ProtocolError(
            "body_unparsable", f"a record of {facts.tool} is not the JSON it should be: {error}"
        ) from None
    return McpPage(body=b"\n".join(records), records=records, around=around)


def records_of(body: bytes, facts: McpToolSource) -> Sequence[bytes]:
    """Return the records of an admitted body, in page order.

    Raises:
        ProtocolError: the body is not a page.
    """
    if facts.method is None and facts.content == "text":
        return split_records(body, records_at=records_at(facts))
    return body.split(b"\n") if body else []


def content_of(result: dict[str, Any], read: Content, of: str) -> Any:
    """Return what a result says, parsed.

    Args:
        result: as the server sent it.
        read: where its JSON lies.
        of: what was called, for messages.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`.
    """
    if read == "text":
        return parse_body(_text(result, of))
    _check_complete(result, of)
    content = result.get("structuredContent", ABSENT)
    if content is ABSENT:
        raise ProtocolError(
            "body_unparsable",
            f"the result of {of} has no structured content; expected some, or declare content: "
            "text where its text block holds the JSON",
        )
    return content


def records_at(facts: McpToolSource) -> FieldPath:
    """Return where the records lie."""
    if facts.method is not None:
        return (RECORDS_OF[facts.method],)
    return facts.records_at or ()


def _refuse_errors(around: Any, facts: McpToolSource) -> None:
    at = records_at(facts)
    for path in facts.errors_at if facts.method is None else ():
        value = value_at(around, path)
        if path != at[: len(path)] and value is not ABSENT and value not in NOTHING:
            raise ProtocolError(
                "error_envelope",
                f"the content holds an error at {'.'.join(path)} although the result is not marked "
                "as one; expected records alone",
            )


def _check_complete(result: dict[str, Any], of: str) -> None:
    kind = result.get("resultType", "complete")
    if kind != "complete":
        raise ProtocolError(
            "body_unparsable",
            f"the result of {of} is {kind}; expected a complete one: a walk answers no questions",
        )


def _text(result: dict[str, Any], of: str) -> bytes:
    """Return the one text block of a result."""
    _check_complete(result, of)
    blocks = [block for block in result.get("content", []) if block.get("type") == "text"]
    if len(blocks) != 1:
        raise ProtocolError(
            "body_unparsable",
            f"the result of {of} has {len(blocks)} text blocks; expected one that holds JSON",
        )
    try:
        return str(blocks[0]["text"]).encode()
    except UnicodeEncodeError:
        raise ProtocolError(
            "body_unparsable", f"the text of {of} holds half a surrogate pair"
        ) from None
