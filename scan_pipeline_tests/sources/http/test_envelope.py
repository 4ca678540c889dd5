"""A body taken apart: the records as their bytes, and nothing lost around them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.sources.http.envelope import (
    ABSENT,
    check_records_at,
    open_envelope,
    parse_body,
    split_records,
    value_at,
)

ITEMS = ("items",)


def opened(body, at=ITEMS):
    return open_envelope(body, records_at=at)


def refused(body, at=ITEMS):
    with pytest.raises(ProtocolError) as error:
        open_envelope(body, records_at=at)
    return error.value.code


def test_records_are_the_bytes_that_were_sent():
    body = b'{ "items" : [ {"a" : 1.50} , {"b":"\\u00e9\xc3\xa9"} ] , "n" : 1.50 }'

    envelope = opened(body)

    assert envelope.records == [b'{"a" : 1.50}', b'{"b":"\\u00e9\xc3\xa9"}']
    assert str(envelope.around["n"]) == "1.50"
    assert envelope.around["items"] == []
    assert split_records(body, records_at=ITEMS) == envelope.records


def test_list_may_be_the_body_or_lie_deep():
    assert opened(b'[1,{"a":2}]', ()).records == [b"1", b'{"a":2}']
    assert opened(b'{"data":{"list":{"items":[{}]}}}', ("data", "list", "items")).records == [b"{}"]
    assert opened(b'{"a.b":[1]}', ("a.b",)).records == [b"1"]


def test_empty_list_is_a_page():
    assert opened(b'{"items":[]}').records == []


@given(st.lists(st.text(max_size=3), max_size=3).map(tuple))
def test_path_that_is_not_refused_can_be_read_by(path):
    try:
        check_records_at(path)
    except ContractError:
        return
    body = [1]
    for step in reversed(path):
        body = {step: body}

    assert opened(json.dumps(body).encode(), path).records == [b"1"]


@pytest.mark.parametrize("step", ['a"', "a\\", "a\n", "\x00"])
def test_path_that_no_page_can_be_read_by_is_refused_before_one_is(step):
    with pytest.raises(ContractError):
        check_records_at(("items", step))


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"items":null}', b'{"items":{}}', b'{"items":"[]"}', b'{"item":[]}', b"[]", b"1",
     b'"items"', b'{"data":{"items":[]}}'],
)  # fmt: skip
def test_missing_list_is_no_empty_page(body):
    assert refused(body) == "records_missing"


def test_missing_list_is_told_wherever_its_path_breaks_off():
    assert refused(b'{"data":null}', ("data", "items")) == "records_missing"
    assert refused(b'{"data":[]}', ("data", "items")) == "records_missing"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b'{"items":[{"a":1}',
        b'{"items":[{"a":1},]}',
        b'{"items":[{"a":01}]}',
        b'{"items":[{"a":NaN}]}',
        b'{"items":[{"a":tru}]}',
        b'{"items":[{"a":"\t"}]}',
        b'{"items":[]} {"items":[]}',
        b'{"items":[{"a":"\xff"}]}',
        b'{"items":[],"\xff":1}',
        b"\xef\xbb\xbf" + b'{"items":[]}',
        b"<!doctype html><html></html>",
        b'{"items":[{"a":"\\ud800"}]',
        b'{"items":[],"a":"\\ud800"}',
        b'{"items":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
)
def test_body_that_is_not_json_is_no_page(body):
    assert refused(body) == "body_unparsable"


def test_html_is_called_by_its_name():
    with pytest.raises(ProtocolError, match="an HTML page"):
        opened(b" <!DOCTYPE html>")


@pytest.mark.parametrize(
    "body",
    [
        b'{"items":[{"a":1}],"items":[]}',
        b'{"items":[],"items":[{"a":1}]}',
        b'{"items":[{"a":1}],"items":[{"a":2}]}',
        b'{"items":[{"a":1}],"next":"a","next":null}',
        b'{"items":[{"a":1}],"page":{"n":1,"n":2}}',
        b'{"items":[{"a":1}],"it\\u0065ms":[]}',
    ],
)
def test_member_that_stands_twice_is_no_page(body):
    assert refused(body) == "member_doubled"


def test_member_twice_inside_a_record_is_the_records_own_fault():
    assert opened(b'{"items":[{"a":1,"a":2}]}').records == [b'{"a":1,"a":2}']


def test_half_a_surrogate_pair_is_its_records_own_fault():
    """RFC 8259 allows it, section 8.2; what holds it is told record by record."""
    body = b'{"a":"\\\\ud800","items":[{"v":"\\ud83d\\ude42"},{"v":"\\ud800"}, 3],"n":1}'

    envelope = opened(body)

    assert envelope.records == [b'{"v":"\\ud83d\\ude42"}', b'{"v":"\\ud800"}', b"3"]
    assert envelope.around == {"a": "\\ud800", "items": [], "n": 1}
    assert split_records(body, records_at=ITEMS) == envelope.records
    assert opened(b'["\\ud800"]', ()).records == [b'"\\ud800"']


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=4), st.dictionaries(st.text(max_size=4), JSON, max_size=3),
       st.sampled_from([None, 0, 2]))  # fmt: skip
def test_taking_apart_and_putting_together_is_nothing(records, around, indent):
    around = {name: value for name, value in around.items() if name != "items"}
    body = json.dumps({**around, "items": records}, indent=indent).encode()

    envelope = opened(body)

    assert [json.loads(each) for each in envelope.records] == records
    assert envelope.around == {**around, "items": []}


def test_path_that_leads_nowhere_is_absent_and_null_is_not():
    around = {"a": {"b": None}, "c": [1]}

    assert value_at(around, ("a", "b")) is None
    assert value_at(around, ("a", "x")) is ABSENT
    assert value_at(around, ("a", "b", "x")) is ABSENT
    assert value_at(around, ("c", "a")) is ABSENT
    assert value_at(around, ()) == around
    assert repr(ABSENT) == "absent"


def test_side_answers_are_exact_too():
    assert parse_body(b'{"n":12345678901234567890}') == {"n": 12345678901234567890}
    with pytest.raises(ProtocolError):
        parse_body(b'{"a":1,"a":2}')
