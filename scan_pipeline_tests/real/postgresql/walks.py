"""A scan run to its receipt, and what its evidence holds."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace

Progress: TypeAlias = Callable[[Mapping[str, Any]], None]


def run(scan: Scan, place: Workspace, progress: Progress = lambda _: None) -> Receipt:
    return run_scan(scan, workspace=place, progress=progress).stored.receipt


def lines(scan: Scan, place: Workspace, receipt: Receipt) -> list[dict[str, Any]]:
    """The records of a generation from its evidence, in the order of the walk."""
    source = place.source(scan)
    bodies = place.store(scan.name, receipt.scan_generation).bodies()
    return [json.loads(each) for _, body in bodies for each in source.records(body)]
