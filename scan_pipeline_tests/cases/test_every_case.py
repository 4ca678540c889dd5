"""No case of the two files is left out in silence."""

import importlib
import inspect

import pytest

from scan_pipeline_tests.cases.accounts import OTHERWISE, TESTS, replayed_by_style
from scan_pipeline_tests.cases.replay import load

FILES = ("field_cases.jsonl", "peer_cases.jsonl")
IDS = [case["id"] for name in FILES for case in load(name)]


def test_every_case_is_there_once() -> None:
    assert (len(IDS), len(set(IDS))) == (108, 108)


@pytest.mark.parametrize("identity", IDS)
def test_case_is_replayed(identity: str) -> None:
    assert identity in TESTS or identity in replayed_by_style()


def test_what_is_told_of_is_a_case() -> None:
    assert {*TESTS, *OTHERWISE} <= set(IDS)


@pytest.mark.parametrize("identity", TESTS)
def test_tests_of_a_case_read_it(identity: str) -> None:
    """The functions that are named exist, and replay what the files say of this very case."""
    for place in TESTS[identity]:
        module, _, function = place.partition(":")
        source = inspect.getsource(getattr(importlib.import_module(module), function))

        assert function.startswith("test_")
        assert identity.lower().replace("-", "_") in source.lower().replace("-", "_")
