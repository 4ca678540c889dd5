"""JSON text in columns: found for many records at once, and the same as found one by one."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import CanonicalFormError, canonical_form
from scan_pipeline.stages.records.json_columns import JsonColumns

NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,3})?\Z"),
    st.sampled_from(["-0", "-0.0", "0.0", "1e0", "0.000001", "0.0000001", "1.50", "1" + 21 * "0"]),
)
TEXTS = st.one_of(
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(['"\\/"', '"\\ud800"', '"\\ud83d\\ude00"', '"\x7f"']),
)
NAMES = st.one_of(st.text(max_size=3), st.sampled_from(["Z", "a", "é", "\uffff", "😀"]))
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{' , '.join(items)}]"),
        st.dictionaries(NAMES, inner, max_size=4).map(
            lambda members: (
                "{" + ", ".join(f"{json.dumps(k)} : {v}" for k, v in members.items()) + "}"
            )
        ),
    ),
    max_leaves=12,
)


def lines_of(*values: str) -> bytes:
    return "\n".join(f'{{"other": 1, "v": {value}}}' for value in values).encode(
        "utf-8", "surrogatepass"
    )


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_every_text_is_the_canonical_form(values: list[str]) -> None:
    try:
        expected = [canonical_form(value.encode()).decode() for value in values]
    except CanonicalFormError:
        expected = None

    found = JsonColumns(["v"]).texts(lines_of(*values))

    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert ["null" if text is None else text for text in found["v"]] == expected


def test_null_is_told_from_a_member_that_is_not_there() -> None:
    found = JsonColumns(["v", "w"]).texts(b'{"v": null}\n{"w": [1, 2.50]}')

    assert found == {"v": [None, msgspec.UNSET], "w": [msgspec.UNSET, "[1,2.5]"]}


def test_nesting_beyond_the_canonical_depth_is_no_text() -> None:
    assert JsonColumns(["v"]).texts(lines_of("[" * 127 + "]" * 127)) is not None
    assert JsonColumns(["v"]).texts(lines_of("[" * 129 + "]" * 129)) is None


@pytest.mark.parametrize("broken", [b'{"v": 1', b'{"v": NaN}', b'{"v": 01}'])
def test_what_is_no_json_is_no_text(broken: bytes) -> None:
    assert JsonColumns(["v"]).texts(broken) is None
