"""How tools and list methods page, and what says their end."""

import pytest

from scan_pipeline.core.errors import ProtocolError, SourceWindowError
from scan_pipeline.core.page import End, Next
from scan_pipeline_tests.sources.mcp_servers import CURSOR, records, scripted, structured


def test_number_goes_back_as_a_number_and_into_an_object(tmp_path, mcp_source):
    following = {"at": "next", "send_as": "params.after", "ends_when": [{"is": "null"}]}
    server = scripted(
        tmp_path,
        {"times": 1, "result": structured({"items": [1], "next": 7})},
        {"result": structured({"items": [2], "next": None})},
    )
    source = mcp_source(server, next=following, arguments={"params": {"sort": "id"}})

    source.walk()

    assert server.asked == [{"params": {"sort": "id"}}, {"params": {"sort": "id", "after": 7}}]


def test_offset_counts_what_came_and_not_what_was_asked_for(tmp_path, mcp_source):
    following = {"by": "offset", "send_as": "offset", "ends_when": [{"is": "empty_page"}]}
    server = scripted(
        tmp_path,
        {"when": {"offset": None}, "result": structured({"items": [1, 2]})},
        {"when": {"offset": 2}, "result": structured({"items": [3]})},
        {"when": {"offset": 3}, "result": structured({"items": []})},
    )
    source = mcp_source(server, next=following, page_size={"send_as": "limit", "value": 5})

    pages = source.walk()

    assert records(source.source, *pages) == [1, 2, 3]
    assert [each["limit"] for each in server.asked] == [5, 5, 5]
    assert source.source.facts.positions_are_ours


@pytest.mark.parametrize(("first", "asked"), [(None, [None, 2]), (0, [0, 1])])
def test_page_numbers_go_up_from_where_they_begin(tmp_path, mcp_source, first, asked):
    following = {
        "by": "page",
        "send_as": "page",
        "first": first,
        "ends_when": [{"at": "more", "is": "false"}],
    }
    server = scripted(
        tmp_path,
        {"times": 1, "result": structured({"items": [1], "more": True})},
        {"result": structured({"items": [2], "more": False})},
    )
    source = mcp_source(server, next=following)

    assert source.walk()[-1].continuation == End(signal="more:false")
    assert [each.get("page") for each in server.asked] == asked


def test_total_that_may_be_the_page_itself_is_asked_past(tmp_path, mcp_source):
    """A full first page that counts itself proves nothing; the next answer does."""
    reached = [{"at": "total", "is": "total_reached"}]
    following = {"by": "offset", "send_as": "offset", "ends_when": reached}
    server = scripted(
        tmp_path,
        {"when": {"offset": None}, "result": structured({"items": [1, 2], "total": 2})},
        {"when": {"offset": 2}, "result": structured({"items": [], "total": 2})},
    )
    source = mcp_source(server, next=following, page_size={"send_as": "limit", "value": 2})

    assert [each.records for each in source.walk()] == [2, 0]


@pytest.mark.parametrize(
    ("content", "size"),
    [
        ({"items": [1, 2]}, None),
        ({"items": [1, 2], "total": 5}, None),
        ({"items": [1, 2], "total": 2}, {"send_as": "limit", "value": 2}),
        (
            {"items": [1, 2], "total": 2, "limit": 2},
            {"send_as": "limit", "value": 50, "echoed_at": "limit"},
        ),
    ],
    ids=["nothing said", "more counted", "page full", "page clipped"],
)
def test_what_lies_beyond_one_answer_is_unknown_unless_it_says_so(
    tmp_path, mcp_source, content, size
):
    whole = [] if "total" not in content else [{"at": "total", "is": "total_reached"}]
    source = mcp_source(
        scripted(tmp_path, {"result": structured(content)}),
        pages="none",
        whole_when=whole,
        page_size=size,
    )
    page = source.fetch()

    assert isinstance(page.continuation, Next)
    with pytest.raises(SourceWindowError):
        source.fetch(page.continuation.token)


@pytest.mark.parametrize(
    ("content", "whole"),
    [
        ({"items": [1, 2], "total": 2}, {"at": "total", "is": "total_reached"}),
        ({"items": [1, 2], "truncated": False}, {"at": "truncated", "is": "false"}),
    ],
)
def test_one_answer_that_says_it_is_whole_is_an_end(tmp_path, mcp_source, content, whole):
    server = scripted(tmp_path, {"result": structured(content)})
    source = mcp_source(server, pages="none", whole_when=[whole])

    assert isinstance(source.fetch().continuation, End)


def test_list_method_pages_by_the_protocol_and_follows_an_empty_cursor(tmp_path, mcp_source):
    """Revision 2026-07-28: only a missing or null nextCursor is the end."""

    def resource(number: int) -> dict[str, str]:
        return {"uri": f"demo://{number}", "name": f"r{number}"}

    server = scripted(
        tmp_path,
        {"when": {"cursor": None}, "result": {"resources": [resource(1)], "nextCursor": ""}},
        {"when": {"cursor": ""}, "result": {"resources": [resource(2)], "nextCursor": "x"}},
        {"when": {"cursor": "x"}, "result": {"resources": [resource(3)]}},
    )
    source = mcp_source(server, method="resources/list")

    pages = source.walk()

    assert records(source.source, *pages) == [resource(1), resource(2), resource(3)]
    assert pages[-1].continuation == End(signal="absent")
    assert source.source.facts.tool == "resources/list"


def test_pin_and_bound_go_with_every_call_numbers_as_numbers(tmp_path, mcp_source):
    server = scripted(tmp_path, {"result": structured({"items": [], "next": None, "v": 5})})
    source = mcp_source(
        server,
        next=CURSOR,
        snapshot={"at": "v", "send_as": "version"},
        high_water_mark={"tool": "newest", "at": "v", "send_as": "up_to"},
        sent_as_numbers=["version"],
    )

    mark = source.source.opening().high_water_mark
    page = source.fetch('"a"', pin="5", high_water_mark=mark)

    assert page.reported.pin == "5"
    assert server.asked[-1] == {"version": 5, "up_to": "5", "cursor": "a"}


def test_pin_that_is_no_number_is_not_sent_as_one(tmp_path, mcp_source):
    server = scripted(tmp_path, {"result": structured({"items": [], "next": None})})
    snapshot = {"at": "v", "send_as": "version"}
    source = mcp_source(server, next=CURSOR, snapshot=snapshot, sent_as_numbers=["version"])

    with pytest.raises(ProtocolError, match="sent_as_numbers"):
        source.fetch(pin="r7")
