"""Tokens in headers, bodies and GraphQL connections; bodies that are records and nothing else."""

import gzip
import json

import httpx2
import pytest

from scan_pipeline.core.canonical import leaf_hash
from scan_pipeline.core.errors import ContractError, ProtocolError, SourceWindowError
from scan_pipeline.core.page import End, Next
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline_tests.sources.over_http import Asking, Killed, answered, scan_of, walk

URL = "https://api.test/v1/things"
NULL = {"ends_when": [{"is": "null"}]}
LIVE_SCOPE = "records_encountered_in_live_traversal"


def source(following=None, **facts):
    return {
        "protocol": "page_token",
        "url": URL,
        "records_at": "items",
        "next": {"at": "next", "send_as": "cursor", **NULL, **(following or {})},
        **facts,
    }


def one_page(*, headers=None, **body):
    return lambda _: answered({"items": [{"id": "a"}], "next": "t", **body}, headers=headers)


# where a token lies and travels


def test_token_may_lie_in_a_response_header():
    following = {"header": "x-next", "send_as": "page_id", "ends_when": [{"is": "absent"}]}
    facts = source() | {"next": following}

    more = Asking(facts, one_page(headers={"X-Next": "abc"})).fetch()
    last = Asking(facts, one_page()).fetch()

    assert more.continuation == Next(token="abc")
    assert last.continuation == End(signal="absent")


def test_word_in_a_header_can_be_the_end():
    """Salesforce says `Sforce-Locator: null`, four letters."""
    null = {"is": "equals", "value": "null"}
    facts = source() | {"next": {"header": "locator", "send_as": "locator", "ends_when": [null]}}

    assert Asking(facts, one_page(headers={"locator": "null"})).fetch().continuation == (
        End(signal="equals")
    )
    with pytest.raises(ProtocolError, match="header locator"):
        Asking(facts, one_page()).fetch()


def test_token_may_travel_in_a_header():
    here = Asking(source({"send_in": "header", "send_as": "x-continue"}), one_page())

    here.fetch("t1")

    assert here.last.headers["x-continue"] == "t1"
    assert here.sent == {}


def test_token_page_size_and_pin_travel_in_a_body():
    facts = source(
        {"send_as": "page.after"},
        method="POST",
        send_in="body",
        params={"api-version": "7"},
        body={"filter": {"status": "open"}, "page": {"sort": "id"}},
        page_size={"send_as": "page.limit", "value": 50},
        snapshot={"at": "version", "send_as": "version"},
    )
    here = Asking(facts, one_page())

    here.fetch("t1", pin="v1")

    assert here.last.method == "POST"
    assert here.last.headers["content-type"] == "application/json"
    assert here.sent == {"api-version": "7"}
    assert json.loads(here.last.content) == {
        "filter": {"status": "open"},
        "page": {"sort": "id", "limit": 50, "after": "t1"},
        "version": "v1",
    }


def test_first_request_has_the_body_without_a_token():
    here = Asking(source(method="POST", send_in="body", body={"a": None}), one_page())

    here.fetch()

    assert here.last.content == b'{"a":null}'


def test_initial_token_opens_the_walk():
    here = Asking(source({"first": "*"}), one_page())

    here.fetch()

    assert here.sent == {"cursor": "*"}


def test_frozen_part_of_a_request_covers_its_body():
    one = Asking(source(method="POST", body={"a": 1}), one_page()).fetch()
    same = Asking(source(method="POST", body={"a": 1}), one_page()).fetch("t9")
    other = Asking(source(method="POST", body={"a": 2}), one_page()).fetch()

    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (source(body={"a": 1}), "method: POST"),
        (source(send_in="body"), "method: POST"),
        (source({"send_in": "body"}), "method: POST"),
        (source({"header": "x-next"}), "exactly one of: at, header"),
        (source(count={"exactness": "exact"}), "exactly one of: at, header"),
        (source(nested=[{"at": "members"}]), "cap, more_at"),
    ],
)
def test_scan_file_that_contradicts_itself_is_refused(facts, told):
    with pytest.raises(ScanFileError, match=told):
        scan_of(facts)


def test_body_with_something_else_on_the_way_is_refused():
    here = Asking(
        source({"send_as": "page.after"}, method="POST", send_in="body", body={"page": 3}),
        one_page(),
    )

    with pytest.raises(ContractError, match=r"no object at page on the way to page\.after"):
        here.fetch("t1")


# what says the end


def test_flag_beside_the_token_must_be_there_and_be_a_flag():
    both = {"ends_when": [{"is": "null"}, {"at": "more", "is": "false"}]}

    for beside, code in (
        ({}, "continuation_missing"),
        ({"more": "no"}, "continuation_invalid"),
        ({"more": False}, "end_signals_disagree"),
        ({"more": True, "next": None}, "end_signals_disagree"),
    ):
        with pytest.raises(ProtocolError) as refused:
            Asking(source(both), one_page(**beside)).fetch()
        assert refused.value.code == code


# GraphQL connections

QUERY = "query($first: Int!, $after: String) { org { repos(first: $first, after: $after) { x } } }"
CONNECTION = {
    "provider": "github_graphql",
    "body": {"query": QUERY, "variables": {"login": "x"}},
    "records_at": "data.org.repos.nodes",
    "page_size": {"value": 2},
    "next": {
        "at": "data.org.repos.pageInfo.endCursor",
        "ends_when": [{"at": "data.org.repos.pageInfo.hasNextPage", "is": "false"}],
    },
    "count": {"at": "data.org.repos.totalCount", "exactness": "exact"},
}


def connection(*ids, more, cursor="c", **beside):
    info = {"hasNextPage": more, "endCursor": cursor}
    repos = {"nodes": [{"id": each} for each in ids], "pageInfo": info, "totalCount": 3}
    return answered({"data": {"org": {"repos": repos}}, **beside})


def test_graphql_connection_is_walked_by_a_variable(tmp_path):
    def answer(request):
        variables = json.loads(request.content)["variables"]
        assert variables["login"] == "x"
        assert variables["first"] == 2
        if "after" not in variables:
            return connection("a", "b", more=True, cursor="c1")
        assert variables["after"] == "c1"
        return connection("c", more=False, cursor="left over")

    came = walk(CONNECTION, answer, tmp_path)

    assert came.keys == ["a", "b", "c"]
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)
    assert came.receipt.terminal_evidence.signal == "data.org.repos.pageInfo.hasNextPage:false"
    assert came.receipt.tool == "POST https://api.github.com/graphql"


def test_errors_beside_data_are_no_page():
    partial = connection("a", more=True, errors=[{"type": "NOT_FOUND", "path": ["org"]}])

    with pytest.raises(ProtocolError) as refused:
        Asking(CONNECTION, lambda _: partial).fetch()

    assert refused.value.code == "error_envelope"


def test_errors_in_place_of_data_are_told_as_such():
    nothing = answered({"data": None, "errors": [{"message": "bad query"}]})

    with pytest.raises(ProtocolError) as refused:
        Asking(CONNECTION, lambda _: nothing).fetch()

    assert refused.value.code == "error_envelope"


@pytest.mark.parametrize("more", [True, None])
def test_connection_without_a_cursor_or_a_flag_is_an_error(more):
    with pytest.raises(ProtocolError) as refused:
        Asking(CONNECTION, lambda _: connection("a", more=more, cursor=None)).fetch()

    assert refused.value.code == "continuation_invalid"


# answers in other clothes


def test_success_must_be_said_where_that_is_declared():
    facts = source(success={"at": "ok", "equals": True}, errors_at=[])

    assert Asking(facts, one_page(ok=True)).fetch().records == 1
    for said in ({"ok": False}, {"ok": "true"}, {}):
        with pytest.raises(ProtocolError) as refused:
            Asking(facts, one_page(**said)).fetch()
        assert refused.value.code == "error_envelope"


def test_list_may_be_left_out_where_that_is_documented():
    facts = source({"ends_when": [{"is": "absent"}]})
    nothing = lambda _: answered({})  # noqa: E731

    with pytest.raises(ProtocolError, match="records"):
        Asking(facts, nothing).fetch()
    lenient = Asking({**facts, "records_omitted_when_empty": True}, nothing)

    page = lenient.fetch()

    assert (page.records, page.continuation) == (0, End(signal="absent"))
    assert lenient.source.records(page.body) == ()
    with pytest.raises(ProtocolError) as refused:
        Asking(
            {**facts, "records_omitted_when_empty": True}, lambda _: answered({"error": "x"})
        ).fetch()
    assert refused.value.code == "error_envelope"


def test_bare_values_are_kept_as_objects_of_one_field():
    here = Asking(
        source(record_field="name"), lambda _: answered({"items": ["x/y", 7], "next": None})
    )

    page = here.fetch()

    kept = [b'{"name":"x/y"}', b'{"name":7}']
    assert here.source.records(page.body) == kept
    assert page.leaf_hashes == [leaf_hash(each) for each in kept]


def test_projection_must_name_all_that_the_walk_reads():
    facts = source(projection="fields", params={"fields": "items(id,name)"})

    with pytest.raises(ScanFileError, match="and not next"):
        scan_of(facts)
    scan_of({**facts, "params": {"fields": "items(id),next"}})


def test_lists_inside_records_that_are_cut_are_told(tmp_path):
    cut = [{"at": "members", "cap": 2, "more_at": ["members@odata.nextLink"]}]
    records = [
        {"id": "at_cap", "members": [1, 2]},
        {"id": "below", "members": [1]},
        {"id": "more", "members": [1], "members@odata.nextLink": "https://x"},
        {"id": "none"},
    ]
    answer = lambda _: answered({"items": records, "next": None})  # noqa: E731

    came = walk(source(nested=cut), answer, tmp_path)

    told = {each.key for each in came.receipt.findings.first if each.code == "nested_list_cut"}
    assert told == {'["at_cap"]', '["more"]'}
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


@pytest.mark.parametrize(("members", "status"), [([1], "verified"), ([1, 2], "unknown")])
def test_pinned_collection_with_a_cut_list_inside_is_not_verified(tmp_path, members, status):
    facts = source(
        nested=[{"at": "members", "cap": 2}],
        snapshot={"at": "version", "send_as": "version"},
        count={"at": "total", "exactness": "exact"},
    )
    page = {"items": [{"id": "a", "members": members}], "next": None, "version": "v", "total": 1}

    came = walk(
        facts,
        lambda _: answered(page),
        tmp_path,
        contract={"key": ["id"], "consistency": "snapshot"},
    )

    assert came.receipt.coverage_status == status


# a window on the results


def test_clean_end_at_the_window_is_no_end(tmp_path):
    facts = source(result_window=2, count={"at": "total", "exactness": "exact"})
    pages = {None: ["a", "b"]}

    def answer(_):
        return answered({"items": [{"id": e} for e in pages[None]], "next": None, "total": 7})

    came = walk(facts, answer, tmp_path)

    assert came.receipt.stop_reason == "source_window"
    assert came.verdict == ("interrupted", "unknown", "observed_pages_only")


@pytest.mark.parametrize("total", [2, 1])
def test_collection_that_is_known_to_fit_its_window_is_whole(tmp_path, total):
    facts = source(result_window=2, count={"at": "total", "exactness": "exact"})
    ids = ["a", "b"][:total]
    page = {"items": [{"id": e} for e in ids], "next": None, "total": total}

    came = walk(facts, lambda _: answered(page), tmp_path)

    assert came.verdict[0] == "finished"


def test_refusal_beyond_the_window_is_named():
    beyond = {"status": 422, "body": {"at": "message", "equals": "too deep"}, "means": "window"}
    here = Asking(
        source(responses=[beyond]), lambda _: answered({"message": "too deep"}, status=422)
    )

    with pytest.raises(SourceWindowError):
        here.fetch("t")

    assert [each.reason for each in here.refused] == ["window"]


def test_error_inside_a_success_can_ask_for_a_wait():
    limited = {"status": 200, "body": {"at": "errors.0.type", "equals": "LIMITED"}, "means": "wait"}
    answers = iter(
        [
            answered({"errors": [{"type": "LIMITED"}]}, headers={"retry-after": "7"}),
            answered({"items": [], "next": None}),
        ]
    )
    here = Asking(source(responses=[limited]), lambda _: next(answers))

    page = here.fetch()

    assert (page.attempts, here.slept) == (2, [7.0])
    assert [(each.status, each.reason) for each in here.refused] == [(200, "wait")]


# bodies that are records and nothing else

LINES = {
    "protocol": "next_link",
    "url": URL,
    "records_format": "json_lines",
    "records_at": "$",
    "next": {"relation": "next", "ends_when": [{"is": "no_next_link"}]},
}
CSV = source() | {
    "records_format": "csv",
    "records_at": "$",
    "next": {
        "header": "locator",
        "send_as": "locator",
        "ends_when": [{"is": "equals", "value": "null"}],
    },
}


def raw(body, **headers):
    return lambda _: httpx2.Response(200, content=body, headers=headers)


def test_lines_are_records_as_sent():
    body = b'{"id":"1", "n":1.50}\r\n\n{"id":"2","t":"\xe2\x80\xa8"}\n'
    here = Asking(LINES, raw(body))

    page = here.fetch()

    assert here.source.records(page.body) == [
        b'{"id":"1", "n":1.50}',
        '{"id":"2","t":"\u2028"}'.encode(),
    ]


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b'{"id":1}\n{"id":', b"\xff\n"])
def test_lines_that_are_no_json_are_no_page(body):
    with pytest.raises(ProtocolError) as refused:
        Asking(LINES, raw(body)).fetch()

    assert refused.value.code == "body_unparsable"


def test_rows_of_csv_become_canonical_json(tmp_path):
    pages = {None: ('id,name\nr1,"a, ""b"""\nr2,\n', "MTAw"), "MTAw": ("id,name\nr3,c\n", "null")}

    def answer(request):
        body, locator = pages[dict(request.url.params).get("locator")]
        return httpx2.Response(200, content=body.encode(), headers={"locator": locator})

    came = walk(CSV, answer, tmp_path)

    assert came.keys == ["r1", "r2", "r3"]
    assert came.receipt.merkle.leaf_encoding == "canonical-json/v1"
    here = Asking(CSV, answer)
    assert here.source.records(here.fetch().body)[0] == b'{"id":"r1","name":"a, \\"b\\""}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "body_unparsable"),
        (b"id,name\nr1\n", "body_unparsable"),
        (b'id,name\nr1,"cut', "body_unparsable"),
        (b"id,id\nr1,r2\n", "member_doubled"),
    ],
)
def test_csv_that_is_cut_or_ambiguous_is_no_page(body, code):
    with pytest.raises(ProtocolError) as refused:
        Asking(CSV, raw(body, locator="null")).fetch()

    assert refused.value.code == code


def test_field_of_a_body_that_has_none_is_refused():
    with pytest.raises(ScanFileError, match="records and nothing else"):
        scan_of(LINES | {"next": {"at": "next", "ends_when": [{"is": "absent"}]}})


# the coding of a body


def zipped(*members, cut=0):
    body = b"".join(gzip.compress(each) for each in members)
    body = body[: len(body) - cut]
    stream = httpx2.ByteStream(body)
    return lambda _: httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=stream)


def test_every_member_of_a_gzip_body_is_read():
    body = Asking(LINES, zipped(b'{"id":"1"}\n', b'{"id":"2"}\n', b'{"id":"3"}\n')).fetch().body

    assert body.count(b"\n") == 3


def test_large_gzip_body_is_read_whole():
    body = b'{"id":"1","x":"' + b"a" * 5_000_000 + b'"}\n'

    assert Asking(LINES, zipped(body)).fetch().body == body


@pytest.mark.parametrize("cut", [1, 8, 12])
def test_gzip_body_that_is_cut_is_no_page(cut):
    with pytest.raises(ProtocolError, match="ends in the middle"):
        Asking(LINES, zipped(b'{"id":"1"}\n', cut=cut)).fetch()


def test_garbage_after_a_gzip_member_is_no_page():
    stream = httpx2.ByteStream(gzip.compress(b'{"id":"1"}\n') + b"garbage")
    answer = httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=stream)

    with pytest.raises(ProtocolError) as refused:
        Asking(LINES, lambda _: answer).fetch()

    assert refused.value.code == "body_unparsable"


def test_walk_that_was_killed_goes_on_from_its_stored_token(tmp_path):
    asked = []

    def answer(request):
        token = json.loads(request.content).get("cursor")
        asked.append(token)
        if asked == [None, "t1"]:
            raise Killed
        pages = {None: ("a", "t1"), "t1": ("b", "t2"), "t2": ("c", None)}
        key, following = pages[token]
        return answered({"items": [{"id": key}], "next": following})

    facts = source(method="POST", send_in="body")
    one_by_one = {"commit_pages": 1}
    with pytest.raises(Killed):
        walk(facts, answer, tmp_path, operation=one_by_one)
    came = walk(facts, answer, tmp_path, operation=one_by_one)

    assert came.keys == ["a", "b", "c"]
