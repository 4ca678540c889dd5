"""Offsets and page numbers: rows received decide where to go on, and declared evidence the end."""

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import End, Next
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline_tests.sources.over_http import Asking, Killed, answered, scan_of, walk

COUNT = {"count": {"at": "total", "exactness": "exact"}}
LIVE_SCOPE = "records_encountered_in_live_traversal"


def rows(*ends, first=0, counts="rows", **facts):
    following = {
        "send_as": "page" if counts == "pages" else "offset",
        "counts": counts,
        "first": first,
        "ends_when": list(ends),
    }
    return {
        "protocol": "offset",
        "url": "https://api.test/things",
        "records_at": "items",
        "next": following,
        **facts,
    }


def pages(*ends, first=1, **facts):
    return rows(*ends, first=first, counts="pages", **facts)


EMPTY = {"is": "empty_page"}
SHORT = {"is": "short_page"}
TOTAL = {"is": "total_reached"}
OF_FOUR = {"page_size": {"send_as": "limit", "value": 4}}


class Listing:
    """A collection served by offset or by page number.

    Args:
        size: number of its records.
        cap: most records of a page, whatever is asked for.
        by_asked: whether page numbers count pages of the size asked for, though fewer are sent.
        beside: what stands beside the records of every page.
    """

    def __init__(self, size, *, cap=100, by_asked=False, beside=None):
        self.ids = [f"k{n}" for n in range(size)]
        self._cap, self._by_asked, self._beside = cap, by_asked, beside or {}

    def __call__(self, request):
        sent = dict(request.url.params)
        asked = int(sent.get("limit", self._cap))
        size = min(asked, self._cap)
        if "page" in sent:
            start = (int(sent["page"]) - 1) * (asked if self._by_asked else size)
        else:
            start = int(sent["offset"])
        found = self.ids[start : start + size]
        return answered({"items": [{"id": each} for each in found], **self._beside})


# how it advances


def test_first_request_names_its_offset_and_size():
    here = Asking(rows(EMPTY, params={"status": "all"}, **OF_FOUR), Listing(9))

    here.fetch()

    assert here.sent == {"status": "all", "limit": "4", "offset": "0"}


def test_offset_moves_by_the_rows_received_and_not_by_the_size_asked_for(tmp_path):
    came = walk(rows(EMPTY, **OF_FOUR), Listing(5, cap=2), tmp_path)

    assert [dict(each.url.params)["offset"] for each in came.requests] == ["0", "2", "4", "5"]
    assert came.keys == ["k0", "k1", "k2", "k3", "k4"]
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


def test_offsets_may_count_from_one():
    here = Asking(rows(EMPTY, first=1), Listing(9, cap=3))

    token = here.fetch().continuation.token
    here.fetch(token)

    assert here.sent["offset"] == "4"


@pytest.mark.parametrize("first", [0, 1])
def test_page_numbers_count_from_the_first_declared(first):
    here = Asking(pages(EMPTY, first=first), lambda _: answered({"items": [{"id": "a"}]}))

    token = here.fetch().continuation.token
    assert here.sent["page"] == str(first)
    here.fetch(token)

    assert here.sent["page"] == str(first + 1)


def test_position_can_travel_in_a_body():
    source = rows(EMPTY, method="POST", body={"filter": {"a": 1}}, send_in="body", **OF_FOUR)
    source["next"]["send_as"] = "paging.from"
    here = Asking(source, lambda _: answered({"items": [{"id": "a"}]}))

    here.fetch(here.fetch().continuation.token)

    assert here.last.content == b'{"filter":{"a":1},"limit":4,"paging":{"from":1}}'


# how it ends


def test_total_reached_ends(tmp_path):
    source = rows(TOTAL, **OF_FOUR, **COUNT)

    came = walk(source, Listing(8, beside={"total": 8}), tmp_path)

    assert len(came.requests) == 2
    assert came.receipt.terminal_evidence.signal == "total_reached"
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


def test_total_in_a_header_ends():
    source = rows(TOTAL, count={"header": "x-total-count", "exactness": "exact"})
    here = Asking(
        source, lambda _: answered({"items": [{"id": "a"}]}, headers={"X-Total-Count": "1"})
    )

    page = here.fetch()

    assert page.continuation == End(signal="total_reached")
    assert page.reported.total == 1


@pytest.mark.parametrize(("left", "kind"), [(0, End), (1, Next)])
def test_remaining_count_ends(left, kind):
    source = rows(TOTAL, count={"at": "left", "means": "remaining", "exactness": "exact"})
    here = Asking(source, Listing(1, beside={"left": left}))

    assert isinstance(here.fetch().continuation, kind)


def test_empty_page_before_the_total_is_a_contradiction(tmp_path):
    came = walk(rows(TOTAL, **OF_FOUR, **COUNT), Listing(3, beside={"total": 7}), tmp_path)

    assert came.verdict[:2] == ("failed", "failed")
    assert "end_signals_disagree" in came.codes


@pytest.mark.parametrize("said", [{}, {"total": None}])
def test_page_without_the_declared_total_is_an_error(said):
    here = Asking(rows(TOTAL, **COUNT), Listing(3, beside=said))

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == "continuation_missing"


@pytest.mark.parametrize("total", ["many", -1, 2.5, True])
def test_total_that_is_no_number_of_records_is_an_error(total):
    here = Asking(rows(TOTAL, **COUNT), Listing(3, beside={"total": total}))

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == "reported_invalid"


def test_short_page_ends_as_an_inference_once_a_full_one_was_seen(tmp_path):
    came = walk(rows(SHORT, EMPTY, **OF_FOUR), Listing(6), tmp_path)

    assert len(came.requests) == 2
    assert came.receipt.terminal_evidence.signal == "short_page:inferred"
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


def test_short_page_ends_nothing_while_the_source_may_be_clipping(tmp_path):
    """Every page is short of what was asked for: only an empty one can be the end."""
    came = walk(rows(SHORT, **OF_FOUR), Listing(5, cap=2), tmp_path)

    assert came.keys == ["k0", "k1", "k2", "k3", "k4"]
    assert came.receipt.terminal_evidence.signal == "empty_page"


def test_collection_that_fills_its_last_page_ends_by_an_empty_one(tmp_path):
    came = walk(rows(SHORT, **OF_FOUR), Listing(8), tmp_path)

    assert len(came.requests) == 3
    assert came.keys == [f"k{n}" for n in range(8)]


def test_empty_collection_ends_at_once(tmp_path):
    came = walk(rows(EMPTY, **OF_FOUR), Listing(0), tmp_path)

    assert (len(came.requests), came.keys, came.verdict[0]) == (1, [], "finished")


def test_number_of_pages_ends(tmp_path):
    source = pages({"at": "pages", "is": "total_pages"})

    came = walk(source, Listing(7, cap=3, beside={"pages": 3}), tmp_path)

    assert len(came.requests) == 3
    assert came.receipt.terminal_evidence.signal == "pages:total_pages"


@pytest.mark.parametrize(
    ("said", "code"),
    [({}, "continuation_missing"), ({"pages": "3"}, "continuation_invalid")],
)
def test_missing_or_odd_number_of_pages_is_an_error(said, code):
    here = Asking(pages({"at": "pages", "is": "total_pages"}), Listing(7, beside=said))

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == code


def test_flag_ends_and_must_be_there():
    source = rows({"at": "more", "is": "false"})
    ending = Asking(source, Listing(1, beside={"more": False}))

    assert ending.fetch().continuation == End(signal="more:false")
    with pytest.raises(ProtocolError, match="no field at more"):
        Asking(source, Listing(1)).fetch()


def test_total_and_flag_must_agree():
    here = Asking(
        rows(TOTAL, {"at": "more", "is": "false"}, **COUNT),
        Listing(2, beside={"total": 2, "more": True}),
    )

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == "end_signals_disagree"


# page numbers and the size of pages


@pytest.mark.parametrize("by_asked", [False, True])
def test_page_numbers_do_not_survive_a_clipped_page(tmp_path, by_asked):
    """By number, a source that clips may skip rows without a word: k2, k3, k6 and so on."""
    came = walk(pages(EMPTY, **OF_FOUR), Listing(9, cap=2, by_asked=by_asked), tmp_path)

    assert came.verdict[:2] == ("failed", "failed")
    assert "page_size_not_honoured" in came.codes
    assert came.keys == ["k0", "k1"]


def test_source_that_sends_more_than_was_asked_for_is_noticed(tmp_path):
    def answer(request):
        start = (int(dict(request.url.params)["page"]) - 1) * 6
        return answered({"items": [{"id": f"k{n}"} for n in range(start, start + 6)]})

    came = walk(pages(EMPTY, **OF_FOUR), answer, tmp_path)

    assert "page_size_not_honoured" in came.codes


def test_last_page_by_number_may_be_short(tmp_path):
    came = walk(pages(EMPTY, **OF_FOUR), Listing(9), tmp_path)

    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)
    assert came.keys == [f"k{n}" for n in range(9)]


# what goes wrong


@pytest.mark.parametrize("source", [rows(EMPTY, **OF_FOUR), pages(EMPTY, **OF_FOUR)])
def test_source_that_ignores_the_position_makes_no_progress(tmp_path, source):
    came = walk(
        source, lambda _: answered({"items": [{"id": f"k{n}"} for n in range(4)]}), tmp_path
    )

    assert came.verdict[:2] == ("failed", "failed")
    assert "no_progress" in came.codes
    assert len(came.requests) == 2


def test_rows_that_shift_are_not_seen_and_the_walk_is_no_more_than_live(tmp_path):
    listing = Listing(5, cap=2)

    def answer(request):
        found = listing(request)
        if dict(request.url.params)["offset"] == "0":
            listing.ids.remove("k0")
        return found

    came = walk(rows(EMPTY), answer, tmp_path)

    assert "k2" not in came.keys
    assert came.verdict == ("finished", "unknown", LIVE_SCOPE)


# what a scan file may say


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (rows(TOTAL), "needs an exact source.count"),
        (rows(TOTAL, count={"at": "total", "exactness": "estimate"}), "needs an exact"),
        (rows(SHORT), "needs source.page_size"),
        (rows(TOTAL, EMPTY, **COUNT), "mixes what the source says"),
        (rows({"at": "pages", "is": "total_pages"}), "cannot be told by protocol offset"),
        (rows({"is": "false"}), "needs `at`"),
        (rows({"at": "items", "is": "empty_page"}), "needs no `at`"),
        (rows(EMPTY, snapshot={"at": "v", "send_as": "v"}), "live at best"),
        (rows(), "at least 1 of them"),
    ],
)
def test_scan_file_that_could_not_be_walked_is_refused(source, told):
    with pytest.raises(ScanFileError, match=told):
        scan_of(source)


def test_walk_that_was_killed_goes_on_from_its_stored_offset(tmp_path):
    listing, asked = Listing(7), []

    def answer(request):
        asked.append(dict(request.url.params)["offset"])
        if asked == ["0", "4"]:
            raise Killed
        return listing(request)

    one_by_one = {"commit_pages": 1}
    with pytest.raises(Killed):
        walk(rows(SHORT, **OF_FOUR), answer, tmp_path, operation=one_by_one)
    came = walk(rows(SHORT, **OF_FOUR), answer, tmp_path, operation=one_by_one)

    assert came.keys == [f"k{n}" for n in range(7)]
    assert came.receipt.terminal_evidence.signal == "short_page:inferred"
