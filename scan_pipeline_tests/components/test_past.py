"""Runs over the past: what was never walked is refused, what is certified is judged, not walked."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

NIGHT = "20261130T020000Z"
BACKFILL = {"dagster/backfill": "b"}


@pytest.mark.parametrize("schedule", [True, False])
def test_past_night_that_never_was_is_refused_and_nothing_is_asked(
    station: Callable[..., Any], bench: Any, schedule: bool
) -> None:
    """By backfill or one by one; a run that was dropped is made up for until the next tick."""
    registry = bench.registry()
    opened = station(registry, {} if schedule else {"schedule": ...})
    bench.clock.now += timedelta(hours=24)
    refused = [opened.stages(NIGHT, tags=tags) for tags in (BACKFILL, {})]

    for ran in refused:
        told = ran.failures["customers__pages"]
        assert f"customers {NIGHT}: found no walk of that moment; expected one" in told
        assert "customers_new_generation" in told
    assert registry.served.pages == []
    assert not opened.workspace.store("customers", NIGHT).events()
    bench.clock.now -= timedelta(hours=1)
    assert opened.run(NIGHT, only=[["customers", "pages"]]).success


def test_backfill_judges_a_past_generation_again_where_the_contract_changed(
    station: Callable[..., Any], bench: Any
) -> None:
    """A new generation beside it, shown and superseding; asked again, nothing more is made."""
    registry = bench.registry()
    opened = station(registry, {"contract.expect": {"count": 999}})
    opened.stages()
    asked = len(registry.served.pages)
    assert not opened.receipt().receipt.accepted
    fixed = station(registry, workspace=opened.workspace)
    fixed.instance = opened.instance
    bench.clock.now += timedelta(days=3)
    first, second = (fixed.stages(NIGHT, tags=BACKFILL) for _ in range(2))
    again = f"{NIGHT}.2"

    assert first.told("customers/records")["scan_pipeline/judged_again_as"] == again
    assert second.told("customers/receipt")["scan_pipeline/judged_again_as"] == again
    assert len(registry.served.pages) == asked
    assert opened.workspace.receipts("customers").generations() == [NIGHT, again]
    receipt = fixed.receipt(again).receipt
    assert (receipt.accepted, receipt.supersedes) == (True, fixed.receipt().receipt_id)
    assert fixed.instance.get_materialized_partitions(dg.AssetKey(["customers", "receipt"])) == {
        NIGHT,
        again,
    }
    assert fixed.run(again, only=[["analyses", "total"]]).success
    assert (
        f"judged again as {again}"
        in (fixed.run(NIGHT, only=[["analyses", "total"]]).failures["analyses__total"])
    )


@pytest.mark.long
def test_past_generation_stays_where_pages_cannot_answer(
    station: Callable[..., Any], bench: Any
) -> None:
    """Another scope is another question; pages whose key is destroyed answer none."""
    registry = bench.registry()
    opened = station(registry)
    opened.stages()
    wider = station(registry, {"source.params": {"status": "active"}}, workspace=opened.workspace)
    wider.instance = opened.instance
    stricter = station(registry, {"contract.expect": {"count": 1_000}}, workspace=opened.workspace)
    stricter.instance = opened.instance
    asked = len(registry.served.pages)
    wider.stages(NIGHT, tags=BACKFILL)
    for key in opened.workspace.project.keys.glob("**/*customers*"):
        key.unlink()
    stricter.stages(NIGHT, tags=BACKFILL)

    assert len(registry.served.pages) == asked
    assert opened.workspace.receipts("customers").generations() == [NIGHT]
    assert opened.receipt().receipt.accepted
