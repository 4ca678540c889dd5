"""Keys: from texts and from columns the same, and readable whatever is wrong beside them."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import key_hash
from scan_pipeline.stages.records.keys import key_column, key_column_hashes, key_of


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b'{"id":"customer-1"}', '["customer-1"]'),
        (b'{"id":1}', "[1]"),
        (b'{"id":"1"}', '["1"]'),
        (b'{"id":12345678901234567890}', "[12345678901234567890]"),
        (b'{"id":"\\u00e9"}', '["\u00e9"]'),
        (b'{"id":"e\\u0301"}', '["e\u0301"]'),
        (b'{"id":"a\\"b"}', '["a\\"b"]'),
        (b'{"id":""}', '[""]'),
    ],
)
def test_key_is_canonical(text, key):
    assert key_of(text, ("id",)) == key


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":"a","v":1,"v":2}',
        b'{"id":"a","v":"\\ud800"}',
        b'{"id":"a","v":1e99999999999999999999}',
        b'{"id":"a","v":' + b"9" * 5_000 + b"}",
        b'{"id":"a","v":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
    ids=["doubled member", "half a surrogate pair", "huge exponent", "huge integer", "deep"],
)
def test_what_is_wrong_elsewhere_does_not_hide_the_key(text):
    assert key_of(text, ("id",)) == '["a"]'


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":"a","id":"b"}',
        b'{"id":"a","id":"a"}',
        b'{"id":"\\ud800"}',
        b'{"id":1.0}',
        b'{"id":1e2}',
        b'{"id":true}',
        b'{"id":null}',
        b'{"id":["a"]}',
        b'{"id":' + b"9" * 5_000 + b"}",
        b'{"ID":"a"}',
        b"{}",
        b'["id"]',
        b'"id"',
        b"1",
        b"null",
    ],
)
def test_key_that_cannot_be_read_is_none(text):
    assert key_of(text, ("id",)) is None


def test_key_of_several_fields_and_of_inner_ones():
    text = b'{"a":{"b":7},"c.d":"x"}'

    assert key_of(text, ("c.d", "a.b")) == '["x",7]'
    assert key_of(text, ("a.c",)) is None


@given(st.lists(st.tuples(st.text(max_size=4), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_columns_give_the_keys_of_the_texts(rows):
    columns = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows])}
    )
    texts = [json.dumps({"a": a, "b": b}).encode() for a, b in rows]

    keys = key_column(columns, ("b", "a"))

    if keys is not None:
        assert keys.to_pylist() == [key_of(text, ("b", "a")) for text in texts]


@pytest.mark.parametrize("value", ['a"b', "a\\b", "a\nb", "\x00"])
def test_column_that_needs_escaping_is_left_to_the_texts(value):
    assert key_column(pa.table({"a": ["x", value]}), ("a",)) is None


def test_column_of_another_type_or_none_is_left_to_the_texts():
    columns = pa.table({"a": [1.5]})

    assert key_column(columns, ("a",)) is None
    assert key_column(columns, ("b",)) is None


def test_hash_is_null_where_the_key_is():
    hashes = key_column_hashes(pa.array(['["a"]', None, '["b"]']))

    assert hashes.to_pylist() == [key_hash(b'["a"]'), None, key_hash(b'["b"]')]
