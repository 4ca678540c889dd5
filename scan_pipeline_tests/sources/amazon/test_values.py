"""The type table: each value of an answer as JSON, exactly, and parameters on their way back."""

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.sources.amazon.values import json_of, plain, sendable


def shape_of(service: str, operation: str, *, output: bool = True) -> Any:
    model = botocore.session.Session().get_service_model(service).operation_model(operation)
    return model.output_shape if output else model.input_shape


SCAN = shape_of("dynamodb", "Scan")
SCAN_INPUT = shape_of("dynamodb", "Scan", output=False)


def attribute(value: Any) -> Any:
    return json_of({"Items": [{"a": value}]}, SCAN)["Items"][0]["a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (9_007_199_254_740_993, 9_007_199_254_740_993),
        (0.1, 0.1),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (b"\xff\x00", "/wA="),
        (datetime(2026, 11, 30, 2, tzinfo=UTC), "2026-11-30T02:00:00Z"),
        (datetime(2026, 11, 30, 2, 0, 0, 500_000, tzinfo=UTC), "2026-11-30T02:00:00.5Z"),
        (datetime(2026, 11, 30, 4, tzinfo=timezone(timedelta(hours=2))), "2026-11-30T02:00:00Z"),
        (datetime(7, 1, 2, tzinfo=UTC), "0007-01-02T00:00:00Z"),
        (None, None),
        (["a", b"b"], ["a", "Yg=="]),
    ],
)
def test_value_becomes_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected


@pytest.mark.parametrize("odd", [datetime(2026, 11, 30), object(), {1, 2}])  # noqa: DTZ001
def test_value_that_no_answer_holds_is_refused(odd: Any) -> None:
    with pytest.raises(ProtocolError):
        plain(odd)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": ""}, b'""'),
        ({"BOOL": False}, b"false"),
        ({"NULL": True}, b"null"),
        ({"N": "1.50"}, b"1.5"),
        (
            {"N": "12345678901234567890123456789012345678"},
            b"1.2345678901234567890123456789012345678e+37",
        ),
        ({"N": "9007199254740993"}, b"9007199254740993"),
        ({"B": b"\x00"}, b'{"B":"AA=="}'),
        ({"SS": ["b", "a"]}, b'{"SS":["a","b"]}'),
        ({"NS": ["10", "9", "-1.5"]}, b'{"NS":[-1.5,9,10]}'),
        ({"BS": [b"\x01", b"\x00"]}, b'{"BS":["AA==","AQ=="]}'),
        ({"L": [{"N": "1"}, {"S": "1"}]}, b'[1,"1"]'),
        ({"M": {"x": {"L": []}}}, b'{"x":[]}'),
        ({"M": {"B": {"S": "AA=="}}}, b'{"M":{"B":"AA=="}}'),
        ({"M": {"M": {"M": {}}}}, b'{"M":{"M":{}}}'),
        ({"M": {"B": {"S": "x"}, "c": {"S": "y"}}}, b'{"B":"x","c":"y"}'),
    ],
)
def test_attribute_becomes_plain_json_by_the_table(value: Any, expected: bytes) -> None:
    assert canonical_json(attribute(value)) == expected


@pytest.mark.parametrize(
    "odd",
    [{}, {"S": "a", "N": "1"}, {"N": "NaN"}, {"N": "one"}, {"N": 1}, {"S": 5}, {"NULL": False}],
)
def test_attribute_that_is_none_is_refused(odd: Any) -> None:
    with pytest.raises(ProtocolError):
        attribute(odd)


numbers = st.integers(-(10**37), 10**37).map(lambda number: {"N": str(number)})
names = st.sampled_from(["a", "B", "M", "SS", "NS", "BS"])
leaves = st.one_of(
    st.text(max_size=3).map(lambda text: {"S": text}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    numbers,
    st.binary(max_size=2).map(lambda raw: {"B": raw}),
    st.sets(st.text(max_size=2), min_size=1, max_size=3).map(lambda s: {"SS": sorted(s)}),
    st.sets(st.integers(-9, 9), min_size=1, max_size=3).map(lambda s: {"NS": [str(n) for n in s]}),
    st.sets(st.binary(max_size=1), min_size=1, max_size=3).map(lambda s: {"BS": sorted(s)}),
)
attributes = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: {"L": values}),
        st.dictionaries(names, inner, max_size=3).map(lambda values: {"M": values}),
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    """Say whether two attributes are equal; sets have no order."""
    ((kind, held),) = one.items()
    ((other_kind, other_held),) = other.items()
    if kind != other_kind:
        return False
    match kind:
        case "SS" | "BS":
            return set(held) == set(other_held)
        case "NS":
            return set(map(Decimal, held)) == set(map(Decimal, other_held))
        case "L":
            return len(held) == len(other_held) and all(map(same, held, other_held))
        case "M":
            return held.keys() == other_held.keys() and all(
                same(held[name], other_held[name]) for name in held
            )
        case _:
            return bool(held == other_held)


@given(attributes, attributes)
def test_two_attributes_are_one_json_only_if_they_are_equal(one: Any, other: Any) -> None:
    equal = canonical_json(attribute(one)) == canonical_json(attribute(other))

    assert equal == same(one, other)


@given(attributes)
def test_attribute_of_one_member_maps_is_never_taken_for_a_set_or_bytes(inner: Any) -> None:
    for name in ("B", "SS", "NS", "BS", "M"):
        wrapped = attribute({"M": {name: inner}})
        assert wrapped == {"M": {name: attribute(inner)}}


def test_parameters_take_bytes_as_base64_and_refuse_what_the_operation_does_not_take() -> None:
    shape = SCAN_INPUT

    sent = sendable({"ExclusiveStartKey": {"k": {"B": "AP8="}}}, shape, at="params")

    assert sent == {"ExclusiveStartKey": {"k": {"B": b"\x00\xff"}}}
    with pytest.raises(ContractError, match="no base64"):
        sendable({"ExclusiveStartKey": {"k": {"B": "?"}}}, shape, at="params")
    with pytest.raises(ContractError, match=r"params\.Colour"):
        sendable({"Colour": "red"}, shape, at="params")


@given(st.dictionaries(st.sampled_from("ab"), leaves, min_size=1))
def test_token_finds_its_way_back(key: dict[str, Any]) -> None:
    assert sendable({"ExclusiveStartKey": plain(key)}, SCAN_INPUT, at="token") == {
        "ExclusiveStartKey": key
    }
