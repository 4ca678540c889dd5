"""Keyset walks: the next page starts after the last row of this one."""

import json

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import End, Next
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline_tests.sources.over_http import Asking, Killed, answered, scan_of, walk

URL = "https://api.test/v1/charges"
LIVE_SCOPE = "records_encountered_in_live_traversal"


def keyset(*ends, after=(("id", "starting_after"),), **facts):
    following = {
        "after": [{"field": field, "send_as": send_as} for field, send_as in after],
        "ends_when": list(ends) or [{"at": "has_more", "is": "false"}],
    }
    return {
        "protocol": "last_key",
        "url": URL,
        "records_at": "data",
        "next": following,
        **facts,
    }


def page_of(*ids, more=None, **beside):
    flag = {} if more is None else {"has_more": more}
    return lambda _: answered({"data": [{"id": each} for each in ids], **flag, **beside})


class Charges:
    """A Stripe-like list: newest first, one page after a key, refused for a key that is gone."""

    def __init__(self, size):
        self.ids = [f"ch_{n}" for n in range(size, 0, -1)]

    def __call__(self, request):
        sent = dict(request.url.params)
        after, limit = sent.get("starting_after"), int(sent.get("limit", "10"))
        if after is not None and after not in self.ids:
            error = {"type": "invalid_request_error", "param": "starting_after"}
            return answered({"error": error}, status=400)
        start = 0 if after is None else self.ids.index(after) + 1
        found = self.ids[start : start + limit]
        more = start + limit < len(self.ids)
        return answered({"object": "list", "data": [{"id": e} for e in found], "has_more": more})


def test_walk_follows_the_last_row_until_the_flag_says_the_end(tmp_path):
    source = {"provider": "stripe", "url": URL, "page_size": {"value": 3}}

    came = walk(source, Charges(7), tmp_path)

    assert [dict(each.url.params).get("starting_after") for each in came.requests] == [
        None,
        "ch_5",
        "ch_2",
    ]
    assert came.keys == [f"ch_{n}" for n in range(7, 0, -1)]
    assert came.receipt.terminal_evidence.signal == "has_more:false"
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


def test_filter_stands_on_every_page():
    here = Asking(keyset(params={"status": "all"}), page_of("a", more=True))

    here.fetch(here.fetch().continuation.token)

    assert here.sent == {"status": "all", "starting_after": "a"}


def test_key_of_several_fields_travels_in_several_parameters():
    record = {"id": 7, "updated": {"at": "2026-11-30T02:00:00Z"}}
    here = Asking(
        keyset(after=(("updated.at", "after_time"), ("id", "after_id"))),
        lambda _: answered({"data": [record], "has_more": True}),
    )

    here.fetch(here.fetch().continuation.token)

    assert here.sent == {"after_time": "2026-11-30T02:00:00Z", "after_id": "7"}


def test_large_integer_key_keeps_every_digit():
    body = b'{"data":[{"id":18446744073709551617}],"has_more":true}'
    here = Asking(keyset(), lambda _: answered(json.loads(body)))

    here.fetch(here.fetch().continuation.token)

    assert here.sent == {"starting_after": "18446744073709551617"}


@pytest.mark.parametrize(
    "row", [{}, {"id": None}, {"id": ""}, {"id": 1.5}, {"id": True}, {"id": []}]
)
def test_last_row_without_a_key_is_an_error(row):
    here = Asking(keyset(), lambda _: answered({"data": [row], "has_more": True}))

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == "continuation_invalid"


def test_last_page_needs_no_key():
    here = Asking(keyset(), lambda _: answered({"data": [{}], "has_more": False}))

    assert here.fetch().continuation == End(signal="has_more:false")


@pytest.mark.parametrize(
    ("beside", "code"),
    [({}, "continuation_missing"), ({"has_more": "yes"}, "continuation_invalid")],
)
def test_missing_or_odd_flag_is_an_error(beside, code):
    with pytest.raises(ProtocolError) as refused:
        Asking(keyset(), page_of("a", **beside)).fetch()

    assert refused.value.code == code


def test_empty_page_that_says_more_follows_is_a_contradiction():
    with pytest.raises(ProtocolError) as refused:
        Asking(keyset(), page_of(more=True)).fetch()

    assert refused.value.code == "end_signals_disagree"


def test_empty_page_ends_where_nothing_else_is_to_be_had():
    ends = {"is": "empty_page"}

    assert Asking(keyset(ends), page_of()).fetch().continuation == End(signal="empty_page")
    assert isinstance(Asking(keyset(ends), page_of("a")).fetch().continuation, Next)


def test_short_page_ends_as_an_inference_after_a_full_one():
    size = {"page_size": {"send_as": "limit", "value": 2}}
    source = keyset({"is": "short_page"}, **size)
    full = Asking(source, page_of("a", "b")).fetch().continuation.token

    assert Asking(source, page_of("c")).fetch(full).continuation == (
        End(signal="short_page:inferred")
    )
    assert isinstance(Asking(source, page_of("c")).fetch().continuation, Next)


def test_source_that_ignores_the_key_makes_no_progress(tmp_path):
    came = walk(keyset(), page_of("a", "b", more=True), tmp_path)

    assert came.verdict[:2] == ("failed", "failed")
    assert "no_progress" in came.codes
    assert len(came.requests) == 2


def test_key_that_was_deleted_in_between_begins_the_walk_anew(tmp_path):
    charges = Charges(5)
    deleted = []

    def answer(request):
        found = charges(request)
        if not deleted:
            deleted.append(charges.ids.pop(1))
        return found

    source = {"provider": "stripe", "url": URL, "page_size": {"value": 2}}
    came = walk(source, answer, tmp_path)

    assert came.receipt.restart_of is not None
    assert came.keys == ["ch_5", "ch_3", "ch_2", "ch_1"]
    assert came.verdict[0] == "finished"


def test_order_is_not_checked_by_a_collation_of_ours(tmp_path):
    ends = {"is": "empty_page"}
    pages = {None: ["XeLu", "XGeU"], "XGeU": ["Xh", "Y"], "Y": []}

    def answer(request):
        found = pages[dict(request.url.params).get("starting_after")]
        return answered({"data": [{"id": each} for each in found]})

    came = walk(keyset(ends), answer, tmp_path)

    assert came.keys == ["XeLu", "XGeU", "Xh", "Y"]
    assert came.verdict[0] == "finished"


@pytest.mark.parametrize(
    "ends", [{"is": "total_reached"}, {"at": "pages", "is": "total_pages"}, {"is": "short_page"}]
)
def test_end_that_a_keyset_cannot_tell_is_refused(ends):
    with pytest.raises(ScanFileError):
        scan_of(keyset(ends, count={"at": "total", "exactness": "exact"}))


def test_walk_that_was_killed_goes_on_after_its_last_row(tmp_path):
    charges, asked = Charges(7), []

    def answer(request):
        asked.append(dict(request.url.params).get("starting_after"))
        if asked == [None, "ch_5"]:
            raise Killed
        return charges(request)

    source = {"provider": "stripe", "url": URL, "page_size": {"value": 3}}
    one_by_one = {"commit_pages": 1}
    with pytest.raises(Killed):
        walk(source, answer, tmp_path, operation=one_by_one)
    came = walk(source, answer, tmp_path, operation=one_by_one)

    assert came.keys == [f"ch_{n}" for n in range(7, 0, -1)]
