"""An end is what was declared to be one; everything else is a token or an error."""

import json
from decimal import Decimal

import pytest
from pydantic import TypeAdapter

from scan_pipeline.core.canonical import parse_exact
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import End, Next
from scan_pipeline.sources.http.end_signals import NextFacts, commits_before_next, continuation


def facts(*signals, at="next"):
    raw = {"at": at, "send_as": "cursor", "ends_when": list(signals)}
    return TypeAdapter(NextFacts).validate_json(json.dumps(raw))


def follows(body, *signals, records=1, at="next"):
    return continuation(parse_exact(body.encode()), facts(*signals, at=at), records=records)


NULL, ABSENT, EMPTY = {"is": "null"}, {"is": "absent"}, {"is": "empty_string"}
DONE = {"at": "done", "is": "equals", "value": True}
MORE = {"at": "has_more", "is": "false"}


@pytest.mark.parametrize(
    ("body", "signals", "signal"),
    [
        ('{"next":null}', [NULL], "null"),
        ("{}", [ABSENT], "absent"),
        ('{"other":1}', [{"is": "no_next_link"}], "no_next_link"),
        ('{"next":""}', [EMPTY], "empty_string"),
        ('{"next":false}', [{"is": "false"}], "false"),
        ('{"next":"-1"}', [{"is": "equals", "value": "-1"}], "equals"),
        ('{"next":0}', [{"is": "equals", "value": 0}], "equals"),
        ('{"next":""}', [NULL, EMPTY, ABSENT], "empty_string"),
        ('{"next":null,"done":true}', [NULL, DONE], "done:equals+null"),
        ('{"next":null,"has_more":false}', [NULL, MORE], "has_more:false+null"),
    ],
)
def test_declared_end_ends(body, signals, signal):
    assert follows(body, *signals) == End(signal=signal)


def test_empty_page_ends_where_that_is_declared():
    assert follows('{"next":"a"}', {"is": "empty_page"}, records=0) == End(signal="empty_page")
    assert follows('{"next":"a"}', {"is": "empty_page"}, records=1) == Next(token="a")
    assert follows('{"next":"a"}', NULL, records=0) == Next(token="a")


@pytest.mark.parametrize(
    ("body", "token"),
    [
        ('{"next":"abc"}', "abc"),
        ('{"next":"null"}', "null"),
        ('{"next":" "}', " "),
        ('{"next":7}', "7"),
        ('{"next":0}', "0"),
        ('{"next":12345678901234567890}', "12345678901234567890"),
        ('{"next":1.50}', "1.50"),
        ('{"next":1000000000000000000000}', "1000000000000000000000"),
    ],
)
def test_token_is_taken_as_it_is(body, token):
    assert follows(body, NULL) == Next(token=token)


@pytest.mark.parametrize(
    ("body", "signals", "code"),
    [
        ("{}", [NULL], "continuation_missing"),
        ("[]", [NULL], "continuation_missing"),
        ('{"page":{}}', [NULL], "continuation_missing"),
        ('{"next":null}', [ABSENT], "continuation_invalid"),
        ('{"next":""}', [NULL], "continuation_invalid"),
        ('{"next":false}', [NULL], "continuation_invalid"),
        ('{"next":true}', [NULL], "continuation_invalid"),
        ('{"next":{}}', [NULL], "continuation_invalid"),
        ('{"next":[]}', [NULL], "continuation_invalid"),
        ('{"next":["a"]}', [NULL], "continuation_invalid"),
    ],
)
def test_anything_else_is_an_error(body, signals, code):
    with pytest.raises(ProtocolError) as refused:
        follows(body, *signals)

    assert refused.value.code == code


@pytest.mark.parametrize(
    ("body", "signals"),
    [
        ('{"next":null,"done":false}', [NULL, DONE]),
        ('{"next":"a","done":true}', [NULL, DONE]),
        ('{"next":"a","has_more":false}', [NULL, MORE]),
        ('{"next":null,"has_more":true}', [NULL, MORE]),
    ],
)
def test_signals_that_disagree_are_an_error(body, signals):
    with pytest.raises(ProtocolError) as refused:
        follows(body, *signals)

    assert refused.value.code == "end_signals_disagree"


@pytest.mark.parametrize("value", ["1", 1, "true", None])
def test_equals_means_the_same_type_too(value):
    """Python takes 1 for True; a source that says 1 has not said true."""
    more = json.dumps({"next": "a", "done": value})

    assert follows(more, NULL, DONE) == Next(token="a")
    with pytest.raises(ProtocolError):
        follows(json.dumps({"next": None, "done": value}), NULL, DONE)


def test_path_may_be_deep_or_hold_a_dot():
    deep = '{"page":{"links":{"next":"a"}}}'

    assert follows(deep, NULL, at="page.links.next") == Next(token="a")
    assert follows('{"a.b":"c"}', NULL, at=["a.b"]) == Next(token="c")
    assert follows('{"page":null}', ABSENT, at="page.next") == End(signal="absent")


def test_number_goes_back_digit_for_digit():
    assert continuation({"next": Decimal("1E+2")}, facts(NULL), records=1) == Next(token="1E+2")


def test_only_single_use_continuations_wait_for_their_commit():
    assert [commits_before_next(k) for k in ("repeatable", "single_use", "connection_bound")] == [
        False,
        True,
        False,
    ]
