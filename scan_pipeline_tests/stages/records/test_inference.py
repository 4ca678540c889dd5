"""Columns inferred from all records: a type holds only where every value has it."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.stages.records.inference import _kinds_at_once, _kinds_one_by_one, infer_columns

VALUES = st.one_of(
    st.sampled_from(
        ["null", "true", "-0", "1.0", "1e2", "1.5", "[]", "{}", '[1, "x"]', '"\\ud800"']
    ),
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(
        ['"x"', '"\\ud800"', '"2026-11-30"', '"2026-11-30T02:00:00Z"', '"12:30:00"', '"1"']
    ),
)
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3).map(
        lambda members: "{" + ", ".join(f'"{k}": {v}' for k, v in members.items()) + "}"
    ),
    min_size=1,
    max_size=4,
)


def inferred(*pages: list[Any]) -> dict[str, tuple[pa.DataType, bool]]:
    columns = infer_columns([json.dumps(each).encode() for each in page] for page in pages)
    return {each.name: (each.type, each.metadata == {b"as": b"json"}) for each in columns}


@given(RECORDS)
def test_many_records_at_once_and_one_by_one_agree(records: list[str]) -> None:
    texts = [each.encode() for each in records]
    closely = _kinds_one_by_one(texts)

    at_once = _kinds_at_once(texts)

    if at_once is not None:
        assert {name: seen - {"null"} or {"null"} for name, seen in at_once.items()} == {
            # a field of integers and of other numbers is one of doubles to the reader
            name: ({"json"} if "json" in seen else seen) - {"null"} or {"null"}
            for name, seen in closely.items()
        }


def test_integers_booleans_and_text_become_columns_of_their_type() -> None:
    assert inferred([{"i": 1, "b": True, "s": "x", "t": "2026-11-30T02:00:00Z"}]) == {
        "i": (pa.int64(), False),
        "b": (pa.bool_(), False),
        "s": (pa.string(), False),
        "t": (pa.string(), False),
    }


@pytest.mark.parametrize("value", [1.5, 1.0, 2**63, [1], {"x": 1}, None])
def test_what_no_column_holds_exactly_keeps_its_text(value: Any) -> None:
    assert inferred([{"v": value}]) == {"v": (pa.string(), True)}


@pytest.mark.parametrize(("one", "other"), [(1, "x"), (1, 1.5), (True, 1), ("x", [1])])
def test_a_type_that_changes_keeps_its_text(one: Any, other: Any) -> None:
    assert inferred([{"v": one}, {"v": other}]) == {"v": (pa.string(), True)}
    assert inferred([{"v": one}], [{"v": other}]) == {"v": (pa.string(), True)}


def test_a_type_holds_beside_null_and_absence() -> None:
    assert inferred([{"v": None}, {}], [{"v": 3}]) == {"v": (pa.int64(), False)}


def test_our_own_names_are_no_columns_of_a_record() -> None:
    assert list(inferred([{"_key": "x", "scan_generation": "y", "z": 1}])) == ["z"]


def test_fields_stand_in_order_of_first_sight() -> None:
    assert list(inferred([{"b": 1}, {"a": 1, "b": 2}], [{"c": 1, "a": 1}])) == ["b", "a", "c"]


def test_a_record_that_is_no_json_decides_nothing() -> None:
    columns = infer_columns([[b'{"v": 1}', b'{"v": "x", "v": 2}', b"[1]", b"{"]])

    assert columns == pa.schema([pa.field("v", pa.int64())])
