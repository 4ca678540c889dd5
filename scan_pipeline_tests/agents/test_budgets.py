"""What a run may cost: taken before the work, given back where it was not used."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from scan_pipeline.agents.budgets import Budget
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.ledger import Ledger
from scan_pipeline.agents.policy import Limits

LIMITS = Limits(response_bytes=1_000, run_bytes=5_000, run_pages=3, run_seconds=60)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents" / "ledger.sqlite"


def budget_at(path, now=1_000.0, *, limits=LIMITS):
    """Return ana's budget as a process of its own would."""
    return Budget(Ledger(path).runs, limits, principal="ana", now=now)


def take(budget, *, size=1_000, pages=0, used=None):
    with budget.taking(size=size, pages=pages) as taken:
        taken.used = size if used is None else used


def test_what_was_not_used_is_given_back(path):
    take(budget_at(path), pages=1, used=100)

    assert (budget_at(path).bytes_left, budget_at(path).pages_left) == (4_900, 2)


def test_answer_that_failed_costs_nothing(path):
    with pytest.raises(ZeroDivisionError), budget_at(path).taking(size=1_000, pages=1):
        raise ZeroDivisionError

    assert (budget_at(path).bytes_left, budget_at(path).pages_left) == (5_000, 3)


def test_call_that_was_killed_in_between_has_cost_all_it_might(path):
    taking = budget_at(path).taking(size=1_000, pages=1)
    taking.__enter__()

    assert (budget_at(path).bytes_left, budget_at(path).pages_left) == (4_000, 2)


def test_many_at_one_ledger_take_no_more_than_there_is(path):
    Ledger(path)

    def one(_):
        try:
            take(budget_at(path))
        except ReaderError as error:
            return error.code
        return "taken"

    with ThreadPoolExecutor(8) as pool:
        outcomes = sorted(pool.map(one, range(12)))

    assert outcomes == ["run_budget_exhausted"] * 7 + ["taken"] * 5


@pytest.mark.parametrize(
    ("limits", "remedy"),
    [
        (Limits(response_bytes=1_000, run_pages=0), "stop"),
        (Limits(response_bytes=1_000, run_bytes=0), "narrow"),
        (Limits(response_bytes=1_000, run_tokens=0), "narrow"),
    ],
)
def test_budget_of_nothing_gives_nothing(path, limits, remedy):
    with pytest.raises(ReaderError) as refused:
        take(budget_at(path, limits=limits), pages=1)

    assert (refused.value.remedy, refused.value.code) == (remedy, "run_budget_exhausted")


def test_next_run_begins_when_the_last_is_over_and_not_before(path):
    take(budget_at(path, 1_000), pages=3)

    assert budget_at(path, 1_059.9).pages_left == 0
    assert budget_at(path, 1_060).pages_left == 3


def test_clock_set_back_gives_no_new_run_and_no_longer_one(path):
    take(budget_at(path, 1_000), pages=3)

    assert budget_at(path, 400).pages_left == 0
    assert budget_at(path, 459).pages_left == 0
    assert budget_at(path, 460).pages_left == 3


def test_answer_of_an_earlier_run_gives_nothing_back_into_the_next(path):
    with budget_at(path, 1_000).taking(size=4_000, pages=2) as taken:
        take(budget_at(path, 2_000), size=500, pages=1)
        taken.used = 0

    assert (budget_at(path, 2_001).bytes_left, budget_at(path, 2_001).pages_left) == (4_500, 2)


def test_same_call_again_is_answered_without_the_work_until_the_run_is_over(path):
    budget = budget_at(path)
    take(budget)
    budget.too_large({"row": 1}, "it has 9,000 bytes")

    with pytest.raises(ReaderError, match="9,000") as refused:
        budget_at(path).refuse_again({"row": 1})
    assert refused.value.code == "same_call_again"
    budget_at(path).refuse_again({"row": 2})
    take(budget_at(path, 1_060))
    budget_at(path, 1_060).refuse_again({"row": 1})
