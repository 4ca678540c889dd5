"""Pools by the host that is asked, and when a receipt is overdue."""

from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from scan_pipeline.components.face import Face
from scan_pipeline.components.operating import freshness_of, pool_of
from scan_pipeline.components.scan import scan_definitions


def test_scans_of_one_host_share_a_pool(bench: Any, shipped: Any, things: Any) -> None:
    """Two runs of one scan, and two scans of one host, take turns."""
    customers, others = bench.scan(), bench.scan({"name": "others"})
    definitions = scan_definitions(customers, workspace=bench.workspace)
    graph = definitions.resolve_asset_graph()

    named = [pool_of(each, face=Face(scan=each.name)) for each in (customers, others, things())]
    assert named == ["registry", "registry", "source.test"]
    assert {tuple(graph.get(key).pools or ()) for key in Face(scan="customers").keys} == {
        ("registry",)
    }


@pytest.mark.parametrize(
    ("cron", "hours"),
    [("0 2 * * *", 36), ("0 * * * *", 1.5), ("0 2 * * 1-5", 72 + 12), ("0 9 * * 1", 168 * 1.5)],
)
def test_receipt_is_overdue_after_the_longest_period_and_half_a_one(
    bench: Any, cron: str, hours: float
) -> None:
    """Dagster holds the receipt to it, and no other asset."""
    scan = bench.scan({"schedule": {"cron": cron, "timezone": "UTC"}})
    graph = scan_definitions(scan, workspace=bench.workspace).resolve_asset_graph()
    held = {key: graph.get(key).freshness_policy for key in graph.get_all_asset_keys()}
    expected = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))

    assert held.pop(dg.AssetKey(["customers", "receipt"])) == expected
    assert {*held.values()} == {None}
    assert freshness_of(bench.scan({"schedule": ...})) is None
