"""The rules of one walk, rule by rule; there is no IO in them."""

from datetime import UTC, datetime
from hashlib import sha256

import pytest

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import End, Next, Page, Position, Reported
from scan_pipeline.core.walk import Walk, pages_implied

AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
FROZEN = sha256(b"the request").digest()
END = End(signal="null")


def leaf(name):
    return sha256(str(name).encode()).digest()


CARRIED = {"source.snapshot.travels_in": "continuation"}


def page(*records, pin: str | None = "v1", total=None, follows=None, **changed):
    """A page of these records, under a pin, with more to follow unless told otherwise."""
    reported = {"pin": pin, "total": total}
    reported |= {name: changed.pop(name) for name in ("remaining", "page") if name in changed}
    facts = {
        "position": Position(pin=pin),
        "fingerprint": FROZEN,
        "continuation": follows or Next(token="more"),
        "body": b"{}",
        "records": len(records),
        "leaf_hashes": [leaf(each) for each in records],
        "reported": Reported(**reported),
        "attempts": 1,
        "requested_at": AT,
        "received_at": AT,
    }
    return Page(**{**facts, **changed})


@pytest.fixture
def walk(things):
    """Makes the walk of a scan of things, edited."""

    def begin(edits=None):
        scan = things(edits)
        return Walk(scan.source, scan.contract)

    return begin


def codes(walked):
    return [each.code for each in walked.findings]


def asked(walked, *tokens, seconds=0.0):
    """Ask for these positions in turn; return what the last came to."""
    return [walked.before_request(Position(token=each), seconds=seconds) for each in tokens][-1]


@pytest.mark.parametrize(
    "tokens", [(None, None), (None, "a", "a"), (None, "a", "b", "a"), (None, "a", "b", None)]
)
def test_position_is_asked_for_once(walk, tokens):
    walked = walk()

    with pytest.raises(ProtocolError) as refused:
        asked(walked, *tokens)

    assert refused.value.code == "cursor_repeated"


def test_token_that_reads_like_the_first_request_is_another(walk):
    assert asked(walk(), None, "none", "None", "") is None


def test_contract_may_tolerate_some_repeated_positions(walk):
    walked = walk({"contract.limits": {"repeated_cursors": 2}})

    assert asked(walked, None, "a", "a", "a") is None
    with pytest.raises(ProtocolError, match=r"limits\.repeated_cursors is 2"):
        asked(walked, "a")


def test_request_is_frozen(walk):
    walked = walk()
    walked.admit(page(1))

    with pytest.raises(ProtocolError) as refused:
        walked.admit(page(2, fingerprint=sha256(b"another filter").digest()))

    assert refused.value.code == "request_changed"
    assert (walked.pages, walked.records) == (1, 1)


def test_first_page_names_the_version_and_every_later_one_the_same(walk):
    walked = walk()
    walked.admit(page(1, pin="v1"))

    walked.admit(page(2, pin=None))
    with pytest.raises(ProtocolError) as changed:
        walked.admit(page(3, pin="v2"))

    assert changed.value.code == "snapshot_changed"
    assert walked.pin == "v1"


def test_first_page_without_a_version_is_refused(walk):
    with pytest.raises(ProtocolError) as refused:
        walk().admit(page(1, pin=None))

    assert refused.value.code == "pin_not_reported"


@pytest.mark.parametrize("again", [None, "v2"])
def test_version_that_a_continuation_carries_is_named_by_every_page(walk, again):
    """What travels in a token cannot be seen in the request."""
    walked = walk(CARRIED)
    walked.admit(page(1, pin="v1"))
    walked.admit(page(2, pin="v1"))

    with pytest.raises(ProtocolError) as refused:
        walked.admit(page(3, pin=again))

    assert refused.value.code == ("pin_not_reported" if again is None else "snapshot_changed")


def test_name_of_the_version_moves_on_where_it_rotates(walk):
    walked = walk({"source.snapshot": {"at": "version", "send_as": "version", "rotates": True}})
    for names in ("a", "b", None, "c"):
        walked.admit(page(names, pin=names))

    assert walked.pin == "c"


def test_version_is_nobodys_business_without_a_snapshot(walk):
    walked = walk({"contract.consistency": "live"})
    walked.admit(page(1, pin="v1"))
    walked.admit(page(2, pin="v2"))

    assert walked.pin is None
    assert codes(walked) == []


def test_page_that_comes_again_is_told_and_the_third_in_a_row_is_the_end(walk):
    walked = walk()
    walked.admit(page(1, 2))
    walked.admit(page(1, 2))
    walked.admit(page(3))
    walked.admit(page(1, 2))
    walked.admit(page(3))

    assert codes(walked) == ["page_repeated"] * 3
    assert [(each.page, each.found) for each in walked.findings] == [
        (2, "page 1"),
        (4, "page 1"),
        (5, "page 3"),
    ]
    with pytest.raises(ProtocolError) as stuck:
        walked.admit(page(1, 2))
    assert stuck.value.code == "no_progress"


def test_page_that_comes_again_is_a_note_where_repeats_are_declared(walk):
    walked = walk({"contract.delivery": "at_least_once"})
    walked.admit(page(1))
    walked.admit(page(1))

    assert [(each.code, each.severity) for each in walked.findings] == [("page_repeated", "note")]


def test_same_records_in_another_order_are_another_page(walk):
    walked = walk()
    walked.admit(page(1, 2))
    walked.admit(page(2, 1))

    assert codes(walked) == []


def test_empty_pages_are_no_repeats(walk):
    walked = walk()
    for _ in range(5):
        walked.admit(page())

    assert codes(walked) == []
    assert (walked.pages, walked.empty_pages) == (5, 5)


@pytest.mark.parametrize(
    ("edits", "admitted", "expected"),
    [
        ({"pages": 2}, [page(1), page(2)], ("pages", 2, 2)),
        ({"records": 3}, [page(1, 2), page(3, 4)], ("records", 3, 4)),
        ({"bytes": 10}, [page(1, body=b"0123456789")], ("bytes", 10, 10)),
        ({"empty_pages": 1}, [page(), page()], ("empty_pages", 2, 2)),
        ({"empty_pages": 0}, [page()], ("empty_pages", 1, 1)),
    ],
)
def test_limit_stops_before_the_next_request(walk, edits, admitted, expected):
    walked = walk({"contract.limits": edits})
    for number, each in enumerate(admitted):
        assert asked(walked, str(number)) is None
        walked.admit(each)

    hit = asked(walked, "next")

    assert (hit.name, hit.allowed, hit.reached) == expected


def test_seconds_are_counted_without_declared_waits(walk):
    walked = walk({"contract.limits": {"seconds": 10}})

    assert asked(walked, "a", seconds=7.9) is None
    assert asked(walked, "b", seconds=10.0).name == "seconds"


def test_nothing_but_empty_pages_is_limited_by_itself(walk):
    walked = walk()
    for number in range(21):
        assert asked(walked, str(number), seconds=1e9) is None
        walked.admit(page())

    assert asked(walked, "more").name == "empty_pages"


def test_one_page_with_records_begins_the_empty_ones_anew(walk):
    walked = walk({"contract.limits": {"empty_pages": 1}})
    for each in (page(), page(1), page(), page(2)):
        walked.admit(each)

    assert asked(walked, "more") is None


def test_share_above_the_count_bounds_records_and_pages(walk):
    walked = walk({"contract.limits": {"over_count": 0.5}})
    for number in range(3):
        walked.admit(page(f"{number}a", f"{number}b", total=4))

    hit = asked(walked, "more")

    assert (hit.name, hit.allowed, hit.reached) == ("records", 6.0, 6)


def test_share_above_the_count_bounds_pages_by_the_largest_page(walk):
    walked = walk({"contract.limits": {"over_count": 0.5}})
    walked.admit(page("a", "b", total=4))
    walked.admit(page("c", total=4))
    assert asked(walked, "x") is None
    walked.admit(page(total=4))

    hit = asked(walked, "y")

    assert (hit.name, hit.allowed, hit.reached) == ("pages", 3.0, 3)


def test_share_above_the_count_waits_for_a_count(walk):
    walked = walk({"contract.limits": {"over_count": 0.0}})
    walked.admit(page(1))

    assert asked(walked, "more") is None


def test_limit_that_is_near_is_told_once(walk):
    walked = walk({"contract.limits": {"pages": 10}})
    for number in range(9):
        assert asked(walked, str(number)) is None
        walked.admit(page(number))
    asked(walked, "more")

    assert [(each.code, each.found, each.expected) for each in walked.findings] == [
        ("limit_near", "8", "pages <= 10")
    ]


def test_exact_total_does_not_move(walk):
    walked = walk()
    for number, total in enumerate((5, 5, 6, 7)):
        walked.admit(page(number, total=total))

    assert [(each.code, each.page, each.severity) for each in walked.findings] == [
        ("count_changed", 3, "error")
    ]
    assert walked.total == 5


def test_live_total_may_move_and_proves_nothing_then(walk):
    walked = walk({"contract.consistency": "live"})
    walked.admit(page(1, total=5))
    walked.admit(page(2, total=6))

    assert [(each.code, each.severity) for each in walked.findings] == [
        ("count_changed", "warning")
    ]


def test_total_that_stops_coming_is_told_once(walk):
    walked = walk()
    for number, total in enumerate((5, None, None)):
        walked.admit(page(number, total=total))

    assert [(each.code, each.page) for each in walked.findings] == [("count_dropped", 2)]


def test_estimate_is_no_count(walk):
    walked = walk({"source.count.exactness": "estimate"})
    walked.admit(page(1, total=5))
    walked.admit(page(2, total=6))

    assert walked.total is None
    assert codes(walked) == []


def test_what_remains_implies_the_total(walk):
    walked = walk({"source.count.means": "remaining"})
    walked.admit(page(1, 2, remaining=1))
    walked.admit(page(3, remaining=0, follows=END))

    assert walked.total == 3
    assert codes(walked) == []


def test_something_that_remains_at_the_end_fails(walk):
    walked = walk({"source.count.means": "remaining"})
    walked.admit(page(1, remaining=4, follows=END))

    assert [(each.code, each.found) for each in walked.findings] == [("remaining_at_end", "4")]


def test_estimate_that_disagrees_is_noted_and_decides_nothing(walk):
    walked = walk({"source.count": {"at": "n", "means": "remaining", "exactness": "estimate"}})
    walked.admit(page(1, remaining=4, follows=END))

    assert walked.total is None
    assert [(each.code, each.severity) for each in walked.findings] == [
        ("remaining_at_end", "note")
    ]


def test_page_holds_as_many_as_it_says(walk):
    walked = walk({"source.count": {"at": "n", "means": "page", "exactness": "exact"}})
    walked.admit(page(1, 2, page=3))

    assert [(each.code, each.expected, each.found) for each in walked.findings] == [
        ("page_short_of_its_count", "3", "2")
    ]


@pytest.mark.parametrize(
    ("total", "size", "pages"),
    [(0, 100, 1), (1, 100, 1), (100, 100, 1), (101, 100, 2), (8_742, 100, 88), (5, 0, None)],
)
def test_pages_that_a_count_implies(total, size, pages):
    assert pages_implied(total, page_size=size) == pages


def test_figures_are_told_as_they_run(walk):
    walked = walk()
    walked.admit(page(1, 2, total=2, body=b"abc"))

    assert walked.facts() == {"pages": 1, "records": 2, "bytes": 3, "total": 2}
