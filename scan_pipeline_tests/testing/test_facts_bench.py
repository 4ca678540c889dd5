"""Scan files of every shape are played by servers made of their facts, and behave."""

import pytest

from scan_pipeline.sources.provider_facts import provider_names
from scan_pipeline.testing import (
    BEHAVIOURS,
    Behaviour,
    Conformance,
    FactsBench,
    NotExercisedError,
    Result,
)
from scan_pipeline_tests.testing.dialects import DIALECTS, ELSEWHERE, PAGE_TOKEN, PROVIDERS, scan

pytestmark = pytest.mark.long

QUICK = ("order-undisturbed", "end-missing")
"""Behaviours that every provider is held to each time; all of them with the long matrix."""

NAMED = {str(each): each for each in BEHAVIOURS}
ALL = {**DIALECTS, **PROVIDERS}


def test_every_provider_that_ships_is_exercised() -> None:
    """A new file under sources/providers needs a row in `PROVIDERS`, or a bench."""
    assert {*PROVIDERS, *ELSEWHERE} == {*provider_names()}


@pytest.fixture(scope="module")
def kits() -> dict[str, Conformance]:
    """One for each, so that the undisturbed walk is walked once."""
    return {name: Conformance(FactsBench(each)) for name, each in ALL.items()}


@pytest.mark.parametrize("name", PROVIDERS)
def test_provider_behaves(name: str, kits: dict[str, Conformance]) -> None:
    for behaviour in QUICK:
        kits[name].run(NAMED[behaviour]).check()


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
def test_pinned_source_behaves(behaviour: Behaviour, kits: dict[str, Conformance]) -> None:
    """The whole table, over the shape that may claim most."""
    kits["token_pinned"].run(behaviour).check()


@pytest.mark.parametrize("name", DIALECTS)
def test_dialect_is_walked_whole(name: str, kits: dict[str, Conformance]) -> None:
    result = kits[name].run(NAMED["order-undisturbed"])

    assert (result.verdict, "11 records" in result.found) == ("passed", True), result


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_source_behaves(name: str, kits: dict[str, Conformance]) -> None:
    report = kits[name].report()

    report.check()
    assert report.passed


def result(name: str, behaviour: str) -> Result:
    return Conformance(FactsBench(ALL[name])).run(NAMED[behaviour])


@pytest.mark.parametrize(
    ("name", "behaviour", "told"),
    [
        ("page_numbers", "loop-cycle", "no answer names a continuation"),
        ("page_numbers", "drift-pin_changed", "no version is pinned"),
        ("offset_until_an_empty_page", "end-missing", "no field to be missing"),
        ("token_pinned", "end-disagreeing", "no other to disagree"),
        ("token_over_csv", "end-error_with_success", "no place for an error"),
        ("token_pinned", "end-other_signal", "one shape of the end"),
    ],
)
def test_what_a_source_cannot_show_is_told_and_not_passed(
    name: str, behaviour: str, told: str
) -> None:
    found = result(name, behaviour)

    assert found.verdict == "not_exercised"
    assert told in found.found


@pytest.mark.parametrize(
    ("name", "behaviour"),
    [
        ("token_and_flag", "end-disagreeing"),
        ("offset_until_the_total", "end-disagreeing"),
        ("token_and_flag", "end-other_signal"),
        ("token_up_to_a_mark", "drift-inserted"),
        ("token_up_to_a_mark", "end-empty_page"),
        ("token_under_a_change_token", "drift-inserted"),
        ("link_pinned", "drift-pin_ignored"),
        ("link_pinned", "loop-cycle"),
        ("github_rest", "end-error_with_success"),
    ],
)
def test_fault_that_not_every_shape_knows_is_played(name: str, behaviour: str) -> None:
    assert result(name, behaviour).verdict == "passed"


def test_protocol_that_no_server_can_be_made_for_is_told() -> None:
    facts = {"protocol": "etcd", "url": "http://etcd.test:2379"}
    with pytest.raises(NotExercisedError, match="protocol etcd"):
        FactsBench(scan(facts, {"key": ["key"], "consistency": "snapshot"}))


def test_credentials_are_left_out() -> None:
    """A secret that is nowhere to be had keeps nobody from playing the source."""
    facts = {**PAGE_TOKEN, "auth": {"bearer": {"env": "NOWHERE_SET"}}}

    found = Conformance(FactsBench(scan(facts))).run(NAMED["order-undisturbed"])

    assert found.verdict == "passed"
