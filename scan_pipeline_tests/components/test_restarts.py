"""When another attempt follows, and what it is called."""

from typing import Any

import pytest

from scan_pipeline.components.restarts import attempt_after, attempt_before

NIGHT = "20261130T020000Z"


@pytest.mark.parametrize("reason", ["snapshot_expired", "continuation_consumed"])
def test_expiry_is_followed_by_the_next_attempt(bench: Any, reason: str) -> None:
    """As often as the contract allows: two restarts make three attempts."""
    scan = bench.scan({"operation.restarts": 2})

    assert attempt_after(NIGHT, reason, scan=scan) == f"{NIGHT}.2"
    assert attempt_after(f"{NIGHT}.2", reason, scan=scan) == f"{NIGHT}.3"
    assert attempt_after(f"{NIGHT}.3", reason, scan=scan) is None


@pytest.mark.parametrize("reason", ["end_signal", "cancelled", "limit_reached", "protocol_broken"])
def test_nothing_else_is_followed(bench: Any, reason: str) -> None:
    """What beginning again cannot mend is not begun again."""
    assert attempt_after(NIGHT, reason, scan=bench.scan()) is None


def test_no_restart_is_allowed_where_the_contract_says_none(bench: Any) -> None:
    """`restarts: 0`."""
    scan = bench.scan({"operation.restarts": 0})

    assert attempt_after(NIGHT, "snapshot_expired", scan=scan) is None


def test_first_attempt_follows_none(bench: Any) -> None:
    """Neither does a second generation of the same second, whose forerunner has no receipt."""
    place = bench.workspace(bench.registry())

    assert attempt_before(NIGHT, scan=bench.scan(), workspace=place) is None
    assert attempt_before(f"{NIGHT}.2", scan=bench.scan(), workspace=place) is None


def test_generation_of_the_same_second_is_no_restart(bench: Any) -> None:
    """Its namesake before it ended well."""
    walked = bench.walk()
    second = f"{walked.generation}.2"

    assert attempt_before(second, scan=walked.scan, workspace=walked.workspace) is None
