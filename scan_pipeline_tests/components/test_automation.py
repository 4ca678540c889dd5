"""Automation runs an analysis for each accepted generation, and for no other."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.simulator.scenarios import scenario

# `evaluate_automation_conditions` warns of its own use of a beta parameter.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

NIGHT, NEXT_NIGHT = "20261130T020000Z", "20261201T020000Z"
TOTAL, SEEN = dg.AssetKey(["analyses", "total"]), dg.AssetKey(["analyses", "seen"])


def requested(opened: Any, cursor: Any = None) -> tuple[dict[dg.AssetKey, set[str]], Any]:
    """Evaluate all conditions once; return the partitions asked for, and the cursor."""
    result = dg.evaluate_automation_conditions(
        defs=opened.definitions, instance=opened.instance, cursor=cursor
    )
    asked = {key: result.get_requested_partitions(key) for key in (TOTAL, SEEN)}
    return asked, result.cursor


def test_accepted_generation_is_analysed_once(station: Callable[..., Any]) -> None:
    """The receipt came and its verdict stands: each analysis is asked for, once."""
    opened = station()
    nothing, cursor = requested(opened)
    opened.stages()
    asked, cursor = requested(opened, cursor)
    again, _ = requested(opened, cursor)

    assert nothing == {TOTAL: set(), SEEN: set()}
    assert asked == {TOTAL: {NIGHT}, SEEN: {NIGHT}}
    assert again == {TOTAL: set(), SEEN: set()}


def test_refused_generation_is_not_analysed(station: Callable[..., Any]) -> None:
    """Every stage was materialized; the blocking verdict failed."""
    opened = station(scenario("page_skipped"))
    _, cursor = requested(opened)
    opened.stages()

    assert requested(opened, cursor)[0] == {TOTAL: set(), SEEN: set()}


def test_verdict_on_one_generation_releases_no_other(
    station: Callable[..., Any], bench: Any
) -> None:
    """Last night was refused and tonight is accepted: tonight alone is analysed."""
    registry = bench.registry()
    refused = station(registry, {"contract.limits": {"pages": 3}})
    _, cursor = requested(refused)
    refused.stages(NIGHT)
    accepted = station(registry, workspace=refused.workspace)
    accepted.instance = refused.instance
    accepted.stages(NEXT_NIGHT)

    assert requested(accepted, cursor)[0] == {TOTAL: {NEXT_NIGHT}, SEEN: {NEXT_NIGHT}}


def test_stages_before_the_receipt_ask_for_nothing(station: Callable[..., Any]) -> None:
    """Records alone are no reason to read them."""
    opened = station()
    _, cursor = requested(opened)
    opened.run(only=[["customers", "pages"], ["customers", "records"]])

    assert requested(opened, cursor)[0] == {TOTAL: set(), SEEN: set()}
