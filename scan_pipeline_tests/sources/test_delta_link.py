"""The delta link protocol: which link goes on, which ends a round, and what is a removal."""

import json

import pytest

from scan_pipeline.core.errors import ContractError, ProtocolError, SnapshotExpiredError
from scan_pipeline.core.page import End, Next, Position
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline.sources.http.removals import key_of_entity
from scan_pipeline_tests.sources.over_http import Asking, answered, scan_of

URL = "https://api.test/v1/things/delta"
NEXT, DELTA = "@odata.nextLink", "@odata.deltaLink"
CONTRACT = {
    "key": ["id"],
    "mode": "sync",
    "consistency": "change_token",
    "delivery": "latest_wins",
    "denominator": "end_signal",
}


def source(**facts):
    return {
        "protocol": "delta_link",
        "url": URL,
        "records_at": "value",
        "next": {"at": [NEXT]},
        "delta": {"at": [DELTA], "covers_since": "start"},
        "removed": {"at": ["@removed"]},
        "end_signal_basis": "provider_documented",
        **facts,
    }


def asking(answers, **facts):
    """A source that answers by the token in the address, `first` without one."""

    def answer(request):
        links = answers[dict(request.url.params).get("t", "first")]
        return answered({"value": [{"id": "a"}], **links})

    return Asking(source(**facts), answer, contract=CONTRACT)


def link(token):
    return f"delta?t={token}"


def walked(here, since=None):
    """Walk to the end and return it, with the tokens that were asked for."""
    token = None
    while True:
        follows = here.fetch(token, since=since).continuation
        if isinstance(follows, End):
            return follows, [dict(each.url.params).get("t") for each in here.requests]
        token = follows.token


def test_baseline_reads_what_changed_meanwhile_before_it_ends():
    here = asking(
        {"first": {NEXT: link("p2")}, "p2": {DELTA: link("d1")}, "d1": {DELTA: link("d2")}}
    )

    end, asked = walked(here)

    assert end == End(signal="delta_link", checkpoint=f"{URL}?t=d2")
    assert asked == [None, "p2", "d1"]


def test_round_begins_at_its_checkpoint_and_ends_at_the_first_delta_link():
    here = asking({"d1": {NEXT: link("c2")}, "c2": {DELTA: link("d2")}})

    end, asked = walked(here, since=f"{URL}?t=d1")

    assert end.checkpoint == f"{URL}?t=d2"
    assert asked == ["d1", "c2"]


def test_first_pages_link_is_held_to_the_end_of_each_part():
    answers = {
        "first": {NEXT: link("p2"), DELTA: link("d1")},
        "p2": {DELTA: link("d9")},
        "d1": {NEXT: link("c2"), DELTA: link("d2")},
        "c2": {DELTA: link("d8")},
    }
    facts = {"covers_since": "start", "shown_on": "every_page", "taken_from": "first_page"}
    here = asking(answers, delta={"at": [DELTA], **facts})

    end, asked = walked(here)

    assert end.checkpoint == f"{URL}?t=d2"
    assert asked == [None, "p2", "d1", "c2"]


def test_position_says_everything_to_a_source_that_knows_nothing():
    answers = {
        "first": {NEXT: link("p2"), DELTA: link("d1")},
        "p2": {DELTA: link("d9")},
    }
    facts = {"covers_since": "start", "shown_on": "every_page", "taken_from": "first_page"}
    delta = {"at": [DELTA], **facts}
    begun = asking(answers, delta=delta).fetch().continuation
    assert isinstance(begun, Next)

    other = asking(answers, delta=delta)
    follows = other.fetch(begun.token).continuation
    body = json.dumps({"value": [], DELTA: link("d2")}).encode()

    assert isinstance(follows, Next)
    assert json.loads(follows.token)[0] == f"{URL}?t=d1"
    assert other.source.checkpoint_in(body, Position(token=follows.token)) == f"{URL}?t=d2"
    assert other.source.checkpoint_in(body, Position()) is None


@pytest.mark.parametrize(
    ("links", "code"),
    [
        ({}, "continuation_missing"),
        ({NEXT: None, DELTA: None}, "continuation_missing"),
        ({NEXT: link("a"), DELTA: link("b")}, "end_signals_disagree"),
        ({DELTA: ""}, "continuation_invalid"),
        ({NEXT: 7}, "continuation_invalid"),
    ],
)
def test_neither_link_both_or_none_is_no_page(links, code):
    with pytest.raises(ProtocolError) as refused:
        asking({"first": links}).fetch()

    assert refused.value.code == code


def test_address_offered_with_an_expiry_is_never_followed():
    def gone(_):
        return answered({"error": {"code": "x"}}, status=410, headers={"location": f"{URL}?fresh"})

    here = Asking(source(), gone, contract=CONTRACT)

    with pytest.raises(SnapshotExpiredError):
        here.fetch(since=f"{URL}?t=old")

    assert len(here.requests) == 1


@pytest.mark.parametrize(
    ("removed", "record", "reason", "key"),
    [
        ({"at": ["@removed"]}, {"id": "a", "@removed": {"reason": "changed"}}, "changed", '["a"]'),
        ({"at": ["@removed"]}, {"id": "a", "@removed": {}}, "removed", '["a"]'),
        ({"at": "deleted"}, {"id": "a", "deleted": {}}, "removed", '["a"]'),
        ({"at": "status", "equals": "off"}, {"id": "a", "status": "off"}, "removed", '["a"]'),
        (
            {"at": ["@removed"], "entity_id_at": ["@id"]},
            {"@id": "https://api.test/v1/Things('it''s')", "@removed": {"reason": "deleted"}},
            "deleted",
            '["it\'s"]',
        ),
    ],
)  # fmt: skip
def test_removal_is_told_from_a_record(removed, record, reason, key):
    here = asking({}, removed=removed)
    plain = {"id": "b", "status": "confirmed", "deleted": False, "note": "@removed"}
    escaped = json.dumps(record).replace("@", "\\u0040").encode()

    found = here.source.removals([json.dumps(plain).encode(), json.dumps(record).encode(), escaped])

    assert {row: each.reason for row, each in found.items()} == {1: reason, 2: reason}
    named = found[1].key_by(["id"]) if "entity_id_at" in removed else f'["{record["id"]}"]'
    assert named == key


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("Items(5)", {"": 5}),
        ("http://h/s/Items(OrderID=1,Line='a,b')?x=1", {"OrderID": 1, "Line": "a,b"}),
        ("Items(3f2504e0-4f89-11d3-9a0c)", {"": "3f2504e0-4f89-11d3-9a0c"}),
        ("Items('%C3%A9%2F')", {"": "é/"}),
        ("Items('a)", None),
        ("Items('a','b')", None),
        ("Items/5", None),
        ("Items()", None),
    ],
)  # fmt: skip
def test_key_is_read_from_an_entity_id(address, key):
    assert key_of_entity(address) == key


@pytest.mark.parametrize(
    ("contract", "facts", "at"),
    [
        ({"mode": "full", "delivery": "exactly_once"}, {}, "contract.mode"),
        ({"consistency": "live"}, {}, "contract.consistency"),
        ({"delivery": "at_least_once"}, {}, "contract.delivery"),
        ({"expect": {"count": 3}}, {}, "contract.expect"),
        ({"denominator": None}, {}, "contract.denominator"),
        ({}, {"end_signal_basis": None}, "contract.denominator"),
    ],
)
def test_what_rounds_cannot_be_held_to_is_refused(contract, facts, at):
    with pytest.raises(ScanFileError) as refused:
        scan_of(source(**facts), contract={**CONTRACT, **contract})

    assert at in {".".join(map(str, each.at)) for each in refused.value.problems}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"delta": {"at": "d", "taken_from": "first_page"}}, "shown_on: every_page"),
        ({"delta": {"at": "d", "shown_on": "every_page", "covers_since": "start"}}, "first_page"),
        ({"count": {"at": "n", "exactness": "exact"}}, "counts no collection"),
    ],
)
def test_facts_that_contradict_themselves_are_refused(facts, told):
    with pytest.raises((ContractError, ScanFileError), match=told):
        scan_of(source(**facts), contract=CONTRACT)
