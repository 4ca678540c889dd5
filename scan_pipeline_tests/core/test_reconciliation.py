"""The id sequence: gaps named as ranges, strangers kept apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.reconciliation import IdSequenceCheck


def check(*ids, prefix="customer-", first=1, last=10):
    sequence = IdSequenceCheck(prefix=prefix, first=first, last=last)
    sequence.mark(ids)
    return sequence


def test_gaps_are_named_as_ranges():
    sequence = check(*(f"customer-{n}" for n in (2, 3, 5, 9)))

    assert sequence.missing() == (
        "customer-1",
        "customer-4",
        "customer-6..customer-8",
        "customer-10",
    )
    assert sequence.missing_count() == 6
    assert sequence.beyond == []


def test_whole_sequence_has_no_gap():
    assert check(*(f"customer-{n}" for n in range(1, 11))).missing() == ()


def test_nothing_is_one_gap():
    assert check().missing() == ("customer-1..customer-10",)


@pytest.mark.parametrize("last", [0, -5])
def test_empty_sequence_misses_nothing_and_knows_strangers(last):
    sequence = check("customer-1", last=last)

    assert sequence.missing() == ()
    assert sequence.beyond == ["customer-1"]


@pytest.mark.parametrize(
    "stranger",
    ["customer-0", "customer-11", "customer-01", "customer-", "customer-1x", "client-1", "",
     "customer--1", "customer-\u0661", "customer-1 ", "Customer-1"],
)  # fmt: skip
def test_id_outside_the_sequence_is_kept_apart(stranger):
    sequence = check(stranger)

    assert sequence.beyond == [stranger]
    assert sequence.missing_count() == 10


def test_numbers_without_prefix_may_be_integers_and_begin_anywhere():
    sequence = check(0, 2, prefix="", first=0, last=3)

    assert sequence.missing() == ("1", "3")
    assert check(7, prefix="", first=5, last=7).missing() == ("5..6",)


@given(st.integers(0, 30), st.integers(0, 40), st.sets(st.integers(-3, 60)))
def test_missing_and_seen_are_the_whole(first, size, seen):
    sequence = check(*seen, prefix="", first=first, last=first + size)
    wanted = set(range(first, first + size + 1))

    named = set()
    for gap in sequence.missing():
        start, _, end = gap.partition("..")
        named |= set(range(int(start), int(end or start) + 1))

    assert named == wanted - seen
    assert sequence.missing_count() == len(named)
    assert set(map(int, sequence.beyond)) == seen - wanted
