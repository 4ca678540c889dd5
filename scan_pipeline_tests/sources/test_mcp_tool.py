"""What a page of an MCP tool is: structured content or a text, and records as canonical JSON."""

import json
from hashlib import sha256

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import End
from scan_pipeline_tests.sources.mcp_servers import CURSOR, records, scripted, structured, textual


def test_structured_content_is_kept_as_canonical_json_lines(tmp_path, mcp_source):
    server = scripted(
        tmp_path,
        {
            "when": {"cursor": None},
            "result": structured({"items": [{"b": 1.50, "a": "ü"}, {"a": 2**63}], "next": "n"}),
        },
        {"when": {"cursor": "n"}, "result": structured({"items": [], "next": None})},
    )
    source = mcp_source(server, next=CURSOR, arguments={"filter": {"region": "eu"}})

    first, last = source.walk()

    assert first.body == '{"a":"ü","b":1.5}\n{"a":9223372036854775808}'.encode()
    assert source.source.records(first.body) == first.body.split(b"\n")
    assert first.leaf_hashes == [
        sha256(b"\x00" + each).digest() for each in first.body.split(b"\n")
    ]
    assert (first.records, last.records, last.body) == (2, 0, b"")
    assert source.source.records(last.body) == []
    assert last.continuation == End(signal="null")
    assert server.asked == [
        {"filter": {"region": "eu"}},
        {"filter": {"region": "eu"}, "cursor": "n"},
    ]
    assert first.fingerprint == last.fingerprint
    assert source.source.facts.leaf_encoding == "canonical-json/v1"


def test_text_keeps_numbers_that_a_double_cannot(tmp_path, mcp_source):
    """The SDK parses structured content, and rounds; a text is kept as it was sent."""
    body = '{"items":[{"n":12345678901234567.89}],"next":null}'
    said = {**structured(json.loads(body)), **textual(body)}
    server = scripted(tmp_path, {"result": said})

    exact = mcp_source(server, next=CURSOR, content="text")
    rounded = mcp_source(server, next=CURSOR)
    text, structure = exact.fetch(), rounded.fetch()

    assert text.body == body.encode()
    assert exact.source.records(text.body) == [b'{"n":12345678901234567.89}']
    assert exact.source.facts.leaf_encoding == "raw/v1"
    assert structure.body == b'{"n":12345678901234568}'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"items":[{"id":1}],"items":[],"next":null}', "member_doubled"),
        ('{"items":[{"id":1}],"next":null,"next":"x"}', "member_doubled"),
        ('{"items":[{"id":1}', "body_unparsable"),
        ("found 2 customers", "body_unparsable"),
        ('{"rows":[],"next":null}', "records_missing"),
        ('{"error":{"code":"broken"},"items":[]}', "error_envelope"),
    ],
)
def test_text_that_is_no_page_is_refused(tmp_path, mcp_source, text, code):
    source = mcp_source(scripted(tmp_path, {"result": textual(text)}), next=CURSOR, content="text")

    with pytest.raises(ProtocolError) as refused:
        source.fetch()

    assert refused.value.code == code
    assert source.reasons == [code]


def test_result_without_structured_content_is_no_page(tmp_path, mcp_source):
    source = mcp_source(scripted(tmp_path, {"result": textual('{"items":[]}')}), next=CURSOR)

    with pytest.raises(ProtocolError, match="content: text") as refused:
        source.fetch()

    assert refused.value.code == "body_unparsable"


def test_bare_array_is_a_page_under_its_root(tmp_path, mcp_source):
    server = scripted(tmp_path, {"result": textual('[{"id":1},{"id":2}]')})
    source = mcp_source(server, content="text", records_at="$", pages="none")

    assert records(source.source, source.fetch()) == [{"id": 1}, {"id": 2}]
