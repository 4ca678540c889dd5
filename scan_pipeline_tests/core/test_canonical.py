"""The canonical form against RFC 8785, its library, and vectors made without this code."""

import json
import math
import random
import runpy
import struct
from collections import UserDict
from decimal import Context, Decimal, localcontext
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import (
    MAX_DEPTH,
    CanonicalFormError,
    canonical_form,
    canonical_json,
    digest_of,
    items_digest,
    key_bytes,
    key_hash,
    key_hashes,
    leaf_hash,
    leaf_hashes,
    parse_exact,
)
from scan_pipeline.core.errors import EvidenceError

VECTORS = Path(__file__).parent.parent / "vectors"
CANONICAL = json.loads((VECTORS / "canonical.json").read_text(encoding="ascii"))
KEYS = json.loads((VECTORS / "keys.json").read_text(encoding="ascii"))

LIBRARY_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DECIMALS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent, Context(prec=100)),
    st.integers(-(10**40), 10**40),
    st.integers(-60, 60),
)
EXACT_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | DECIMALS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def cases(name: str, *fields: str, vectors: dict = CANONICAL) -> list[tuple]:
    return [tuple(case[field] for field in fields) for case in vectors[name]]


def test_vectors_are_what_the_independent_script_makes() -> None:
    """No vector was edited by hand, and the hand-written ones agree with the rfc8785 package."""
    script = runpy.run_path(str(VECTORS / "make_vectors.py"))

    made = script["build"]()

    found = {name: (VECTORS / name).read_text(encoding="ascii") for name in made}
    assert found == made


@pytest.mark.parametrize(("bits", "expected"), cases("rfc8785_appendix_b", "ieee754", "canonical"))
def test_float_is_written_as_in_rfc_8785_appendix_b(bits: str, expected: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == expected.encode()


@pytest.mark.parametrize(("text", "expected"), cases("rfc8785_documents", "text", "canonical"))
def test_document_is_written_as_in_rfc_8785(text: str, expected: str) -> None:
    assert canonical_json(json.loads(text)) == expected.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("exact_numbers", "text", "canonical") + cases("exact_documents", "text", "canonical"),
)
def test_text_keeps_its_exact_value(text: str, expected: str) -> None:
    assert canonical_form(text.encode()) == expected.encode()


@pytest.mark.parametrize("case", CANONICAL["refused"], ids=lambda case: case["why"])
def test_text_without_one_exact_meaning_is_refused(case: dict) -> None:
    with pytest.raises(CanonicalFormError, match=r"found .+expected"):
        parse_exact(bytes.fromhex(case["hex"]) * case.get("times", 1))


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        -math.inf,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        "\ud800",
        ["\udfff"],
        {"\ud83d": 1},
        {1: "one"},
        {b"a": 1},
        {None: 1, "a": 2},
        b"bytes",
        {1, 2},
        pytest.param(object(), id="object"),
        1j,
    ],
    ids=repr,
)
def test_value_that_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(CanonicalFormError, match=r"found .+expected"):
        canonical_json(value)


def test_nesting_is_bounded_at_the_same_depth_for_values_and_texts() -> None:
    text = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    value = parse_exact(text)

    assert canonical_json(value) == text
    with pytest.raises(CanonicalFormError, match="nested more than 128"):
        canonical_json([value])
    with pytest.raises(CanonicalFormError, match="nested more than 128"):
        parse_exact(b'{"a":' + text + b"}")


def test_many_lists_beside_each_other_are_not_deep() -> None:
    text = b"[" + b",".join([b"[]"] * 500) + b"]"
    assert canonical_form(text) == text


def test_refusals_branch_from_the_evidence_error_and_tell_no_content() -> None:
    with pytest.raises(EvidenceError) as refused:
        parse_exact(b'{"token": "s3cret" "x"}')

    assert "s3cret" not in str(refused.value)


def test_every_character_is_escaped_as_the_rfc8785_package_does() -> None:
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    assert canonical_json(text) == rfc8785.dumps(text)


def test_tuple_mapping_and_subclasses_count_as_what_they_are() -> None:
    class Word(StrEnum):
        PAGE = "page"

    class Name(str):
        __slots__ = ()

    value = UserDict({Name("kind"): Word.PAGE, "of": (Name("a"), True, 1)})

    assert canonical_json(value) == b'{"kind":"page","of":["a",true,1]}'


def test_another_decimal_context_changes_nothing() -> None:
    with localcontext(Context(prec=2, traps=[])):
        assert canonical_form(b"12345678901234567.89") == b"12345678901234567.89"
        assert canonical_json(10**30 + 1) == b"1.000000000000000000000000000001e+30"
        with pytest.raises(CanonicalFormError):
            parse_exact(b"1e99999999999999999999")


@given(LIBRARY_VALUES)
def test_agrees_with_the_rfc8785_package_wherever_that_can_speak(value: object) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", struct.pack(">Q", bits))[0]))
def test_every_finite_float_is_written_as_the_rfc8785_package_does(number: float) -> None:
    if math.isfinite(number):
        assert canonical_json(number) == rfc8785.dumps(number)


@given(EXACT_VALUES)
def test_canonical_form_parses_to_an_equal_value_and_is_its_own_form(value: object) -> None:
    text = canonical_json(value)

    assert parse_exact(text) == value
    assert canonical_form(text) == text


@given(EXACT_VALUES, st.integers(0, 4))
def test_white_space_and_escapes_do_not_change_the_form(value: object, indent: int) -> None:
    text = canonical_json(value)
    loose = json.dumps(json.loads(text, parse_float=lambda _: 0), indent=indent).encode()
    tight = canonical_json(json.loads(text, parse_float=lambda _: 0))

    assert canonical_form(loose) == tight


@given(DECIMALS)
def test_equal_numbers_have_one_form_and_it_has_their_value(number: Decimal) -> None:
    form = canonical_json(number)

    assert Decimal(form.decode()) == number
    assert canonical_json(Decimal(f"{number:f}")) == form
    assert canonical_json(Decimal(f"{number:e}")) == form
    if number == number.to_integral_value():
        assert canonical_json(int(number)) == form


@pytest.mark.parametrize(
    ("fields", "key", "digest"), cases("keys", "fields", "key", "key_hash", vectors=KEYS)
)
def test_key_is_the_canonical_array_of_its_fields(fields: list, key: str, digest: str) -> None:
    assert key_bytes(fields) == key.encode()
    assert key_hash(key.encode()).hex() == digest
    assert key_hashes([key.encode()] * 2) == [bytes.fromhex(digest)] * 2


def test_no_two_keys_of_the_vectors_share_a_hash() -> None:
    digests = [digest for (digest,) in cases("keys", "key_hash", vectors=KEYS)]
    assert len(set(digests)) == len(digests)


@given(st.lists(st.text() | st.integers(-(10**25), 10**25), min_size=1))
def test_key_is_the_canonical_json_of_any_fields(fields: list) -> None:
    assert key_bytes(fields) == canonical_json(fields)


@pytest.mark.parametrize(
    "fields",
    [[], "abc", [True], [None], [1.0], [Decimal(1)], [["a"]], [b"a"], ["\ud800"], ["a", "\ud800"]],
    ids=repr,
)
def test_key_of_other_fields_is_refused(fields: list) -> None:
    with pytest.raises(CanonicalFormError, match=r"found .+expected"):
        key_bytes(fields)


@pytest.mark.parametrize(("record", "digest"), cases("leaves", "record", "leaf", vectors=KEYS))
def test_leaf_is_over_the_bytes_as_they_came(record: str, digest: str) -> None:
    assert leaf_hash(record.encode()).hex() == digest
    assert leaf_hash(memoryview(record.encode())).hex() == digest
    assert leaf_hashes([record.encode()] * 2) == [bytes.fromhex(digest)] * 2


@pytest.mark.parametrize(("leaves", "digest"), cases("items", "leaves", "digest", vectors=KEYS))
def test_items_digest_is_over_the_leaves_in_page_order(leaves: list, digest: str) -> None:
    assert items_digest(map(bytes.fromhex, leaves)).hex() == digest


def test_digest_is_over_the_canonical_bytes() -> None:
    assert digest_of({"b": 1.0, "a": [Decimal("1.50")]}) == sha256(b'{"a":[1.5],"b":1}').digest()


def test_names_are_sorted_by_utf16_code_units() -> None:
    """Above U+FFFF the order differs from that of code points."""
    names = ["\ufb33", "\U0001f600", "\u20ac", "a", ""]
    random.Random(7).shuffle(names)

    found = list(json.loads(canonical_json(dict.fromkeys(names))))

    assert all(a.encode("utf-16-be") < b.encode("utf-16-be") for a, b in pairwise(found))
    assert found.index("\U0001f600") < found.index("\ufb33")
