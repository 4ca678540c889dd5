import pytest

from scan_pipeline.simulator.answers import RequestRefusedError
from scan_pipeline.simulator.cursors import Cursor, CursorCodec
from scan_pipeline.simulator.mutations import Delete
from scan_pipeline.simulator.principals import ANALYST_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script

CURSOR = Cursor(
    page=2, after=(100,), principal="auditor", scope="s", snapshot_id="customers:x", nonce=""
)


def test_a_cursor_opens_to_what_was_sealed():
    codec = CursorCodec(b"secret")

    assert codec.open(codec.seal(CURSOR)) == CURSOR


def test_equal_cursors_have_equal_text_and_tell_nothing():
    text = CursorCodec(b"secret").seal(CURSOR)

    assert text == CursorCodec(b"secret").seal(CURSOR)
    assert "auditor" not in text


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_no_character_of_a_cursor_may_change(place):
    text = CursorCodec(b"secret").seal(CURSOR)
    changed = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]

    with pytest.raises(RequestRefusedError) as refused:
        CursorCodec(b"secret").open(changed)
    assert (refused.value.status, refused.value.code) == (400, "cursor_invalid")


@pytest.mark.parametrize("text", ["", "cur_", "cur_%%%", "cur_é", "1", "cur_" + "A" * 400])
def test_what_was_never_a_cursor_is_refused(text):
    with pytest.raises(RequestRefusedError, match="not given out here"):
        CursorCodec(b"secret").open(text)


@pytest.mark.parametrize("spoil", [" {}", "{}=", "{}\n", "x{}"])
def test_only_the_exact_text_is_accepted(spoil):
    codec = CursorCodec(b"secret")

    with pytest.raises(RequestRefusedError):
        codec.open(spoil.format(codec.seal(CURSOR)))


def test_a_cursor_of_another_secret_does_not_open():
    with pytest.raises(RequestRefusedError):
        CursorCodec(b"other").open(CursorCodec(b"secret").seal(CURSOR))


@pytest.mark.parametrize(
    "change",
    [
        {"region": "us"},
        {"region": None},
        {"order": "updated_at"},
        {"page_size": "50"},
        {"up_to": "500"},
        {"snapshot_id": "customers:2026-08-29T09:17:00Z@r0"},
    ],
)
def test_a_cursor_is_bound_to_its_query_and_snapshot(reading, clock, change):
    reader = reading(Registry(clock=clock))
    following = reader.after(reader.page(region="eu"), region="eu")
    sent = {name: value for name, value in {**following, **change}.items() if value is not None}

    response = reader.get(**sent)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "cursor_mismatch")


def test_a_cursor_is_bound_to_its_principal(reading):
    registry = Registry()
    auditor, analyst = reading(registry), reading(registry, token=ANALYST_TOKEN)

    response = analyst.get(**auditor.after(auditor.page()))

    assert (response.status_code, response.json()["error"]["code"]) == (400, "cursor_mismatch")


def test_a_cursor_wants_its_snapshot_beside_it(reading):
    reader = reading(Registry())

    response = reader.get(cursor=reader.page()["page"]["next_cursor"])

    assert (response.status_code, response.json()["error"]["code"]) == (400, "snapshot_required")


def test_a_new_process_goes_on_where_an_earlier_one_stopped(reading, numbered):
    script = Script(mutations=(Delete(after_page=1, first=150), Delete(after_page=2, first=450)))
    earlier = reading(Registry(size=500, script=script))
    first = earlier.page()
    repinned = earlier.page()

    later = reading(Registry(size=500, script=script))
    rest = later.walk(**later.after(first), limit=1)
    while rest[-1]["page"]["next_cursor"]:
        rest.append(later.page(**later.after(rest[-1])))
    assert numbered(first, *rest) == list(range(1, 501))

    # r1 came of the script, and comes of it again.
    assert repinned["collection"]["snapshot_id"].endswith("@r1")
    assert repinned["collection"]["expected_count"] == 499
    newest = reading(Registry(size=500, script=script))
    assert 150 not in numbered(newest.page(**newest.after(repinned)))


def test_walks_have_equal_cursors_unless_they_are_told_apart(reading, clock):
    def first_cursors(script):
        reader = reading(Registry(clock=clock, script=script))
        return [reader.page()["page"]["next_cursor"] for _ in range(2)]

    plain = first_cursors(Script())
    told_apart = first_cursors(Script(walk_nonces=True)) + first_cursors(Script(walk_nonces=True))

    assert plain[0] == plain[1]
    assert len(set(told_apart)) == 4


def test_walk_nonces_leave_the_records_alone(reading, numbered):
    walk = reading(Registry(size=300, script=Script(walk_nonces=True))).walk()

    assert numbered(*walk) == list(range(1, 301))


@pytest.mark.parametrize("status", [400, 410])
def test_a_single_use_cursor_is_consumed_by_its_first_use(reading, status):
    reader = reading(Registry(script=Script(cursors="single_use", consumed_status=status)))
    following = reader.after(reader.page())

    assert reader.get(**following).status_code == 200
    again = reader.get(**following)
    assert (again.status_code, again.json()["error"]["code"]) == (status, "cursor_consumed")
