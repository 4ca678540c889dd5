"""Each trap of the parsers becomes an exact value or a nonconforming record, never a change."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.stages.records.inference import infer_columns
from scan_pipeline.stages.records.parsing import RecordParser
from scan_pipeline.stages.records.schema import ResolvedSchema

UTC_US = pa.timestamp("us", "UTC")
MONEY = pa.decimal128(18, 2)
WIDE = pa.decimal128(38, 9)


def parser(*fields, optional=(), as_json=()):
    return RecordParser(
        ResolvedSchema(
            columns=pa.schema(list(fields)),
            optional=frozenset(optional),
            as_json=frozenset(as_json),
            model=None,
            fingerprint="sha256:0",
        )
    )


def one(kind, text, *, among=1, **arguments):
    """Parse one value among equal neighbours; return what is stored and why it was refused."""
    records = [b'{"v":%b}' % text.encode()] * among
    parsed = parser(pa.field("v", kind, nullable=False), **arguments).parse(records)
    values = set(map(repr, parsed.columns.column("v").to_pylist()))
    assert len(values) == 1
    assert parsed.columns.num_rows == among
    return parsed.columns.column("v")[0].as_py(), [each.found for each in parsed.refused][:1]


EXACT = [
    (pa.int64(), "9223372036854775807", 2**63 - 1),
    (pa.int64(), "-9223372036854775808", -(2**63)),
    (pa.int32(), "-0", 0),
    (pa.bool_(), "false", False),
    (pa.string(), '"\\u00e9"', "é"),
    (pa.string(), '"\\ud83d\\ude42"', "🙂"),
    (pa.string(), '""', ""),
    (pa.float64(), "0.1", 0.1),
    (pa.float64(), "0.30000000000000004", 0.1 + 0.2),
    (pa.float64(), "9007199254740992", 2.0**53),
    (pa.float64(), "1152921504606846976", 2.0**60),
    (pa.float64(), "5e-324", 5e-324),
    (pa.float64(), "0.00000000000000000000001", 1e-23),
    (pa.float64(), "0e-999", 0.0),
    (MONEY, "12.30", Decimal("12.30")),
    (MONEY, '"12.30"', Decimal("12.30")),
    (MONEY, "1234567890123456.78", Decimal("1234567890123456.78")),
    (MONEY, "1.500", Decimal("1.50")),
    (MONEY, "1e2", Decimal("100.00")),
    (MONEY, "1E+15", Decimal("1000000000000000.00")),
    (MONEY, "0e99", Decimal("0.00")),
    (MONEY, "0e-999999999", Decimal("0.00")),
    (MONEY, '"1.5E+3"', Decimal("1500.00")),
    (MONEY, "1000000000000000000e-18", Decimal("1.00")),
    (WIDE, "12345678901234567.89", Decimal("12345678901234567.89")),
    (UTC_US, '"2026-08-29T09:18:00Z"', datetime(2026, 8, 29, 9, 18, tzinfo=UTC)),
    (UTC_US, '"2026-08-29T11:18:00+02:00"', datetime(2026, 8, 29, 9, 18, tzinfo=UTC)),
    (UTC_US, '"2026-08-29T09:18:00.123456Z"', datetime(2026, 8, 29, 9, 18, 0, 123456, tzinfo=UTC)),
    (pa.date32(), '"2026-08-29"', date(2026, 8, 29)),
    (pa.list_(pa.int64()), "[1,null,3]", [1, None, 3]),
    (pa.list_(UTC_US), '["2026-08-29T09:18:00Z"]', [datetime(2026, 8, 29, 9, 18, tzinfo=UTC)]),
    (pa.struct([pa.field("a", MONEY)]), '{"a":1.5}', {"a": Decimal("1.50")}),
]


@pytest.mark.parametrize("among", [1, 100])
@pytest.mark.parametrize(("kind", "text", "value"), EXACT)
def test_value_is_stored_as_it_was_sent(kind, text, value, among):
    assert one(kind, text, among=among) == (value, [])


REFUSED = [
    (pa.int64(), "9223372036854775808", "a value that int64 does not hold"),
    (pa.int64(), "1.9", "a number"),
    (pa.int64(), "1.0", "a number"),
    (pa.int64(), "true", "a boolean"),
    (pa.int64(), '"12"', "a text"),
    (pa.int64(), "null", "null"),
    (pa.int64(), "[12]", "a list"),
    (pa.int32(), "2147483648", "a value that int32 does not hold"),
    (pa.bool_(), "1", "a number"),
    (pa.bool_(), '"true"', "a text"),
    (pa.string(), "12", "a number"),
    (pa.string(), "{}", "an object"),
    (pa.string(), '"\\ud800"', "found a lone surrogate"),
    (pa.float64(), "9007199254740993", "a number that a double would round"),
    (pa.float64(), "12345678901234567.89", "a number that a double would round"),
    (pa.float64(), "4503599627370497.53", "a number that a double would round"),
    (pa.float64(), "1.23456789012345678901", "a number that a double would round"),
    (pa.float64(), "123456789012345678e-5", "a number that a double would round"),
    (pa.float64(), "1e400", "a number that a double would round"),
    (pa.float64(), "1e-400", "a number that a double would round"),
    (pa.float64(), '"1.5"', "a text"),
    (pa.float64(), "true", "a boolean"),
    (MONEY, "1.505", "a value that decimal128(18, 2) does not hold"),
    (MONEY, "12345678901234567.89", "a value that decimal128(18, 2) does not hold"),
    (MONEY, "123456789012345678", "a value that decimal128(18, 2) does not hold"),
    (MONEY, '"12345678901234567"', "a value that decimal128(18, 2) does not hold"),
    (pa.list_(MONEY), "[123456789012345678]", "a value that decimal128(18, 2) does not hold"),
    (MONEY, "1e16", "a value that decimal128(18, 2) does not hold"),
    (MONEY, "1e999999999", "a number with more digits than decimal128(18, 2)"),
    (MONEY, "1e-77", "a number with more digits than decimal128(18, 2)"),
    (MONEY, "1.5E-76", "a number with more digits than decimal128(18, 2)"),
    (MONEY, '"1e-999999999"', "a number with more digits than decimal128(18, 2)"),
    (MONEY, '"1e-9999999999999999999"', "a number with more digits than decimal128(18, 2)"),
    (pa.list_(MONEY), "[1e-77]", "a number with more digits than decimal128(18, 2)"),
    (MONEY, "1e-999999999", "a number with more digits than decimal128(18, 2)"),
    (MONEY, '" 1.5"', "a text that is no decimal128(18, 2)"),
    (MONEY, '"1_0"', "a text that is no decimal128(18, 2)"),
    (MONEY, '"NaN"', "a text that is no decimal128(18, 2)"),
    (MONEY, "true", "a boolean"),
    (UTC_US, '"2026-08-29T09:18:00"', "a text that is no timestamp[us, tz=UTC]"),
    (UTC_US, '"2026-08-29"', "a text that is no timestamp[us, tz=UTC]"),
    (UTC_US, '"2026-08-29T09:18:00.1234567Z"', "a text that is no timestamp[us, tz=UTC]"),
    (UTC_US, "1787995080", "a number"),
    (pa.date32(), "1", "a number"),
    (pa.date32(), '"2026-02-30"', "a text that is no date32[day]"),
    (pa.list_(pa.float64()), "[1.5,9007199254740993]", "a number that a double would round"),
    (pa.list_(pa.date32()), "[1]", "a number"),
    (pa.struct([pa.field("a", pa.float64())]), '{"a":1e400}', "a number that a double would round"),
    (pa.struct([pa.field("a", pa.int64())]), '{"a":1,"b":2}', "unknown members ['b']"),
    (pa.struct([pa.field("a", pa.int64())]), '{"a":1,"a":2}', "found the same member twice"),
]


@pytest.mark.parametrize("among", [1, 100])
@pytest.mark.parametrize(("kind", "text", "found"), REFUSED)
def test_value_that_would_change_is_refused(kind, text, found, among):
    stored, (told,) = one(kind, text, among=among)

    assert stored is None
    assert told.startswith(found)


ID = pa.field("id", pa.string(), nullable=False)


def test_missing_key_is_no_null():
    parsed = parser(ID, pa.field("v", pa.int64())).parse([b'{"id":"a"}', b'{"id":"b","v":null}'])

    assert [(each.row, each.column, each.found) for each in parsed.refused] == [(0, "v", "nothing")]
    assert parsed.columns.column("v").to_pylist() == [None, None]


def test_missing_key_is_found_among_many_nulls():
    """Where a thousand records say null, the one that says nothing is still told apart."""
    records = [b'{"id":"a", "v": null}'] * 500 + [b'{"id":"a","v":null}'] * 500
    records[700] = b'{"id":"the \\"v\\":null one"}'

    parsed = parser(ID, pa.field("v", pa.int64())).parse(records)

    assert [(each.row, each.found) for each in parsed.refused] == [(700, "nothing")]


def test_missing_key_is_found_beside_an_inner_member_of_its_name():
    inner = pa.field("in", pa.struct([pa.field("v", pa.int64())]))

    parsed = parser(ID, inner, pa.field("v", pa.int64())).parse(
        [b'{"id":"a","in":{"v":null}}', b'{"id":"b","in":{"v":null},"v":null}']
    )

    assert [(each.row, each.column) for each in parsed.refused] == [(0, "v")]


def test_record_may_lack_an_optional_field_and_may_not_say_null():
    field = pa.field("v", pa.int64(), nullable=False)
    records = [b'{"id":"a"}', b'{"id":"b","v":null}', b'{"id":"c","v":3}']

    parsed = parser(ID, field, optional={"v"}).parse(records)

    assert [(each.row, each.found) for each in parsed.refused] == [(1, "null")]
    assert parsed.columns.column("v").to_pylist() == [None, None, 3]


def test_key_first_seen_late_is_kept_beside_the_columns():
    records = [b'{"id":"a"}'] * 100 + [b'{"id":"b","late":12345678901234567.89,"more":[1]}']

    parsed = parser(ID).parse(records)

    assert parsed.refused == ()
    assert parsed.extra == {100: '{"late":12345678901234567.89,"more":[1]}'}
    assert parsed.columns.column("id").to_pylist() == ["a"] * 100 + ["b"]


def test_doubled_member_is_refused_and_its_neighbours_are_not():
    records = [b'{"id":"a","v":1}', b'{"id":"b","v":1,"v":2}', b'{"id":"c","v":3}']

    parsed = parser(ID, pa.field("v", pa.int64())).parse(records)

    assert [(each.row, each.column) for each in parsed.refused] == [(1, None)]
    assert parsed.columns.column("v").to_pylist() == [1, None, 3]


def test_refused_record_keeps_the_fields_that_are_exact():
    """A partition is counted by its field, whatever is wrong beside it."""
    parsed = parser(ID, pa.field("v", pa.int64())).parse([b'{"id":"a","v":1.9}'])

    assert parsed.columns.to_pylist() == [{"id": "a", "v": None}]


@pytest.mark.parametrize("text", [b"[]", b"1", b'"id"', b"null"])
def test_record_that_is_no_object_is_refused(text):
    parsed = parser(ID).parse([b'{"id":"a"}', text])

    assert [(each.row, each.column, each.expected) for each in parsed.refused] == [
        (1, None, "a JSON object")
    ]


def test_line_breaks_inside_a_record_do_not_split_it():
    pretty = json.dumps({"id": "a\nb", "v": 1}, indent=2).encode().replace(b"\n", b"\r\n")

    parsed = parser(ID, pa.field("v", pa.int64())).parse([pretty] * 3)

    assert parsed.refused == ()
    assert parsed.columns.to_pylist() == [{"id": "a\nb", "v": 1}] * 3


def test_no_record_is_an_empty_table():
    assert parser(ID).parse([]).columns.num_rows == 0


def test_json_column_keeps_any_value_as_text():
    records = [b'{"id":"a","v":{"b":1.50,"a":[true]}}', b'{"id":"b","v":12345678901234567.89}']

    parsed = parser(ID, pa.field("v", pa.string()), as_json={"v"}).parse(records)

    assert parsed.columns.column("v").to_pylist() == [
        '{"a":[true],"b":1.5}',
        "12345678901234567.89",
    ]


def test_columns_are_inferred_from_every_record():
    pages = [
        [b'{"id":"a","n":1,"mixed":1,"big":1,"none":null}'],
        [b'{"id":"b","n":null,"mixed":"1","big":9223372036854775808,"late":true,"_x":1}', b"[1]"],
    ]

    columns = infer_columns(iter(pages))

    assert {each.name: (str(each.type), each.metadata) for each in columns} == {
        "id": ("string", None),
        "n": ("int64", None),
        "mixed": ("string", {b"as": b"json"}),
        "big": ("string", {b"as": b"json"}),
        "none": ("string", {b"as": b"json"}),
        "late": ("bool", None),
    }


NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**18), max_value=10**18
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=5),
    st.sampled_from(["12", "1.50", "2026-08-29T09:18:00Z", "2026-08-29", "NaN"]),
    st.lists(st.integers(-3, 3), max_size=2),
    st.just({"a": 1}),
)
KINDS = [
    pa.int64(),
    pa.float64(),
    MONEY,
    pa.string(),
    pa.bool_(),
    UTC_US,
    pa.date32(),
    pa.list_(pa.int64()),
    pa.struct([pa.field("a", pa.int64())]),
]


@given(st.sampled_from(KINDS), st.lists(VALUES, min_size=1, max_size=4), st.booleans())
def test_fast_way_and_close_look_agree(kind, values, nullable):
    """Both refuse the same values and store the same ones."""
    texts = [b'{"v":%b}' % json.dumps(value, default=str).encode() for value in values]
    reader = parser(pa.field("v", kind, nullable=nullable))

    closely = reader._one_by_one(texts)
    fast = reader._at_once(b"\n".join(texts), rows=len(texts), block=2**20)

    assert (fast is None) or not closely.refused
    if fast is not None:
        assert fast.equals(closely.columns.cast(fast.schema))
