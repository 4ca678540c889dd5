"""How a scan stands after its last nights, and which alert that makes."""

import pytest

from scan_pipeline.core.condition import Condition, Verdict, condition_of


def night(number: int, word: str) -> Verdict:
    """A night of a letter: V verified, C corroborated, L accepted as live, x not accepted."""
    level = {
        "V": ("verified", "all_records_in_snapshot"),
        "T": ("verified", "all_records_at_change_token"),
        "C": ("corroborated", "all_records_present_throughout_both_walks"),
        "L": ("unknown", "records_encountered_in_live_traversal"),
        "x": ("failed", "observed_pages_only"),
    }[word]
    status, scope = level
    return Verdict(generation=str(number), accepted=word != "x", status=status, scope=scope)


def after(nights: str, *, whole: bool = True) -> Condition:
    told = [night(number, word) for number, word in enumerate(nights, start=1)]
    return condition_of(told, whole_history=whole)


@pytest.mark.parametrize(
    ("nights", "word", "since"),
    [
        ("", "as_expected", None),
        ("VVV", "as_expected", None),
        ("L", "as_expected", None),  # nothing before it that proved more
        ("x", "not_accepted", "1"),
        ("VVxx", "not_accepted", "3"),
        ("VVxxV", "as_expected", "5"),
        ("VTV", "as_expected", None),  # another way to the whole is no less
        ("VVL", "weaker", "3"),
        ("VVLL", "weaker", "3"),
        ("VCL", "weaker", "3"),  # it fell further
        ("VLC", "weaker", "2"),  # better, and still less than before
        ("VLV", "as_expected", "3"),
        ("VLxL", "weaker", "4"),
        ("LVL", "weaker", "3"),
        ("VxV", "as_expected", "3"),
    ],
)
def test_condition_follows_from_the_nights(nights: str, word: str, since: str | None) -> None:
    found = after(nights)

    assert (found.word, found.since) == (word, since)


def test_what_began_before_the_window_has_no_beginning() -> None:
    """A condition that outlasts the nights looked at must not seem new every night."""
    found = after("xxx", whole=False)

    assert (found.word, found.since) == ("not_accepted", None)
    assert found.is_told_by("not_accepted", "long ago")
    assert not found.is_told_by("late", "long ago")


@pytest.mark.parametrize(
    ("nights", "change", "since", "told"),
    [
        ("VVV", None, None, True),
        ("VxV", None, None, True),  # the bad night was never told: its end is no news
        ("VxV", "not_accepted", "2", False),
        ("VVV", "late", "2", False),
        ("VLV", "weaker", "2", False),
        ("VxV", "accepted_again", "1", True),
        ("Vxx", None, None, False),
        ("Vxx", "not_accepted", "2", True),
        ("xVx", "not_accepted", "1", False),
        ("Vxx", "late", "2", False),
    ],
)
def test_a_condition_is_told_once(
    nights: str, change: str | None, since: str | None, told: bool
) -> None:
    assert after(nights).is_told_by(change, since) is told  # pyright: ignore[reportArgumentType]


def test_the_last_accepted_night_before_is_known() -> None:
    found = after("VVxx").accepted

    assert found is not None
    assert found.generation == "2"
