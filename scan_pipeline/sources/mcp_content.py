"""Records out of a result: structured content, or JSON in a text block, as canonical JSON lines.

A result has no record bytes of its own, so the body of a page is written here: the canonical JSON
of each record (RFC 8785 with exact numbers, see `core.canonical`), one a line; a page without
records is empty. How each JSON type gets there:

| in the result | `content: structured` | `content: text` |
|---|---|---|
| null, true, false | as it is | as it is |
| string | as it is, shortest escapes | the same |
| whole number | exact, of any size | the same |
| number with a fraction or an exponent | the nearest double, shortest form: the SDK parses it so | exact decimal value |
| object | members ordered by name; of two equal ones the SDK keeps the last | refused if doubled |
| array | in its order | the same |

So a source whose decimals carry more than 15 significant digits is to be read with
`content: text`; a server that gives structured content should serialize the same JSON into a text
block (specification 2026-07-28, server/tools, "Structured Content", read 2026-11-30).
"""  # noqa: E501  # a table's row is one line

from collections.abc import Sequence
from typing import Any, Literal

from scan_pipeline.core.canonical import CanonicalFormError, canonical_json
from scan_pipeline.core.contract import FieldPath
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.sources.envelope import ABSENT, parse_body, value_at
from scan_pipeline.sources.mcp_facts import RECORDS_OF, McpToolSource


def content_of(result: dict[str, Any], *, read: Literal["structured", "text"], of: str) -> Any:
    """Return what the result of a tool says.

    Args:
        result: as the server sent it.
        read: where its JSON lies.
        of: what was called, for messages.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`.
    """
    kind = result.get("resultType", "complete")
    if kind != "complete":
        raise ProtocolError(
            "body_unparsable",
            f"the result of {of} is {kind}; expected a complete one: a walk answers no questions",
        )
    if read == "text":
        return parse_body(_only_text(result, of))
    content = result.get("structuredContent", ABSENT)
    if content is ABSENT:
        raise ProtocolError(
            "body_unparsable",
            f"the result of {of} has no structured content; expected some, or declare content: "
            "text where its text block holds the JSON",
        )
    return content


def records_in(content: Any, facts: McpToolSource) -> list[bytes]:
    """Return the canonical JSON of each record.

    Raises:
        ProtocolError: `error_envelope`, `records_missing` or `body_unparsable`.
    """
    at = records_at(facts)
    for path in facts.errors_at if facts.method is None else ():
        value = value_at(content, path)
        if (
            path != at[: len(path)]
            and value is not ABSENT
            and value not in (None, False, "", [], {})
        ):
            raise ProtocolError(
                "error_envelope",
                f"the content holds an error at {'.'.join(path)} although the result is not marked "
                "as one; expected records alone",
            )
    found = value_at(content, at)
    if not isinstance(found, list):
        raise ProtocolError(
            "records_missing",
            f"the content of {facts.tool} has no list at {'.'.join(at) or '$'}; expected the "
            "records",
        )
    try:
        return [canonical_json(each) for each in found]
    except CanonicalFormError as error:
        raise ProtocolError(
            "body_unparsable", f"a record of {facts.tool} is not the JSON it should be: {error}"
        ) from None


def records_at(facts: McpToolSource) -> FieldPath:
    """Return where the records lie."""
    if facts.method is not None:
        return (RECORDS_OF[facts.method],)
    return facts.records_at or ()


def body_of(records: Sequence[bytes]) -> bytes:
    """Write the body of a page."""
    return b"\n".join(records)


def split_body(body: bytes) -> list[bytes]:
    """Return the records of a body, in page order."""
    return body.split(b"\n") if body else []


def _only_text(result: dict[str, Any], of: str) -> bytes:
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
