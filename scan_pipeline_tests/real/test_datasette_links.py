"""Datasette names its next page whole as well: in `next_url`, and in a Link header."""

from collections.abc import Callable
from typing import Any

import pytest

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.real.conftest import Airports

IN_BODY = {
    "next": {"at": "next_url", "ends_when": [{"is": "null"}]},
    "params": {"_shape": "objects", "_nofacet": "1"},
}
IN_HEADER = {
    "next": {"relation": "next", "ends_when": [{"is": "no_next_link"}]},
    "params": {"_shape": "array"},
    "records_at": "$",
    "count": None,
}


@pytest.mark.parametrize("linked", [IN_BODY, IN_HEADER], ids=["next_url", "link_header"])
def test_every_airport_is_met_by_following_links(
    base_url: str,
    airports: Airports,
    scan_of: Callable[..., Scan],
    workspace: Workspace,
    linked: dict[str, Any],
) -> None:
    def by_links(raw: dict[str, Any]) -> None:
        raw["source"] |= {"protocol": "next_link", **linked}
        raw["contract"]["limits"] = {"seconds": 120}

    receipt = run_scan(scan_of(base_url, by_links), workspace=workspace).stored.receipt

    assert (receipt.traversal, receipt.coverage_status) == ("finished", "unknown")
    assert receipt.unique_ids_observed == len(airports)
