"""What changed since the last accepted night, as Dagster shows it."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

NIGHTS = ("20261130T020000Z", "20261201T020000Z", "20261202T020000Z")
CHANGES = [["customers", "changes"]]


def rows(told: Any) -> list[dict[str, Any]]:
    return [each.data for each in told.records]


@pytest.mark.parametrize("live", [False, True])
def test_accepted_night_is_compared_with_the_accepted_one_before(
    station: Callable[..., Any], bench: Any, live: bool
) -> None:
    """The failed night between is passed over; a weaker scope has weaker words."""
    weaker = {
        "source.snapshot": ...,
        "contract.consistency": "live",
        "contract.accept": {"scope": "records_encountered_in_live_traversal"},
    }
    edits = weaker if live else {}
    opened = station(bench.registry(size=50), edits)
    first = opened.stages(NIGHTS[0])
    alone = opened.run(NIGHTS[0], only=CHANGES)
    failing = {**edits, "contract.expect.count": 7}
    station(None, failing, workspace=opened.workspace).stages(NIGHTS[1])
    place = bench.workspace(bench.registry(size=53), project=opened.workspace.project)
    later = station(None, edits, workspace=place)
    later.stages(NIGHTS[2])
    refused = later.run(NIGHTS[1], only=CHANGES)
    told = later.run(NIGHTS[2], only=CHANGES).told("customers/changes")
    word = "first_seen" if live else "added"

    assert first.success
    assert "first accepted generation" in alone.told("customers/changes")["says"]
    assert "is not accepted" in refused.failures["customers__changes"]
    assert (told["before"], told[word], told["proven"]) == (NIGHTS[0], 3, not live)
    assert {each["change"]: each["records"] for each in rows(told["by_kind"])} == (
        {"first_seen": 3, "not_seen": 0, "differs": 0}
        if live
        else {"added": 3, "removed": 0, "changed": 0}
    )
    assert ("not proven wholes" in told["says"]) == live
    assert "customer-" not in str(told)


def test_changes_wait_for_an_accepted_receipt(station: Callable[..., Any]) -> None:
    """They follow the receipt by automation, and are no stage of the night itself."""
    opened = station()
    graph = opened.definitions.resolve_asset_graph()
    node = graph.get(dg.AssetKey(["customers", "changes"]))
    job = opened.definitions.resolve_job_def("customers_generation")

    assert node.automation_condition is not None
    assert node.parent_keys == {dg.AssetKey(["customers", "receipt"])}
    assert node.key not in job.asset_layer.executable_asset_keys
