"""`expect.every_record` compares values: 1 is 1.0 and not "1", and what is missing is not null."""

import pytest

INFERRED = {"record_schema": ...}


def told(bench, texts, expected, edits=INFERRED):
    every = {"contract.expect": {"every_record": {"v": expected}}}
    walked = bench.walk_records([texts], {**edits, **every})
    return [f.found for f in walked.receipt.findings.first if f.code == "filter_missed"]


@pytest.mark.parametrize(
    ("value", "expected", "found"),
    [
        ("1", 1, []),
        ("1.0", 1, []),
        ("1e0", 1, []),
        ("9007199254740993.0", 9007199254740993, []),
        ("9007199254740992.0", 9007199254740993, ["a number"]),
        ('"1"', 1, ["another text"]),
        ("1", "1", ["a number"]),
        ("true", 1, ["a boolean"]),
        ("1", True, ["a number"]),
        ('"x"', "x", []),
        ('"secret"', "x", ["another text"]),
        ("null", None, []),
        ("null", "x", ["null"]),
        ("[1]", 1, ["a list"]),
    ],
)
def test_values_are_compared(bench, value, expected, found):
    """In a column of mixed type as in one of its own; the value itself is not told."""
    own = [b'{"id":"a","v":%s}' % value.encode()]
    mixed = [*own, b'{"id":"b","v":{}}']

    assert told(bench, own, expected) == found
    assert told(bench, mixed, expected) == [*found, "an object"]


@pytest.mark.parametrize("expected", [None, "x"])
@pytest.mark.parametrize("kind", ["inferred", "string", "json"])
def test_missing_is_not_null(bench, expected, kind):
    schema = [{"name": "id", "type": "string"}, {"name": "v", "type": kind}]
    edits = INFERRED if kind == "inferred" else {"record_schema": schema}

    found = told(bench, [b'{"id":"a"}', b'{"id":"b","v":null}'], expected, edits)

    assert found == (["missing"] if expected is None else ["missing", "null"])


@pytest.mark.parametrize(("kind", "expected"), [("json", 1), ("json", "x"), ("float64", 1)])
def test_declared_column_that_shows_no_type_is_compared_by_value(bench, kind, expected):
    schema = [{"name": "id", "type": "string"}, {"name": "v", "type": kind}]
    text = b'{"id":"a","v":%s}' % (b"1.0" if expected == 1 else b'"x"')

    assert told(bench, [text], expected, {"record_schema": schema}) == []
