"""A walk that breaks off in this process, without a word, with so many pages durable."""

import time
from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event


class BrokeOff(BaseException):
    """Nobody in the package knows it, so that nobody closes what it leaves open."""


def break_off(
    scan: Scan, workspace: Workspace, *, after: int, generation: str | None = None
) -> str:
    """Run a night that breaks off once `after` pages are committed; return its generation.

    A generation that is named is walked by itself, whatever else is open.
    """

    def wait_and_break(figures: Mapping[str, Any]) -> None:
        if figures["pages"] < after:
            return
        while pages_of(events_of(scan, workspace, generation)) < after:
            time.sleep(0.01)
        raise BrokeOff

    try:
        if generation is None:
            run_scan(scan, workspace=workspace, progress=wait_and_break)
        else:
            Pipeline(scan, generation, workspace=workspace).pages(progress=wait_and_break)
    except BrokeOff:
        return generation or newest_walk(scan, workspace)
    raise AssertionError(f"the walk ended before {after} pages; expected it to break off")


def newest_walk(scan: Scan, workspace: Workspace) -> str:
    """Return the generation walked last."""
    return max(workspace.store(scan.name, "20000101T000000Z").pages().generations())


def events_of(scan: Scan, workspace: Workspace, generation: str | None = None) -> list[Event]:
    """Return the events of a generation, of the one walked last for None."""
    return workspace.store(scan.name, generation or newest_walk(scan, workspace)).events()


def pages_of(events: list[Event]) -> int:
    """Count the pages among events."""
    return sum(event.event == "page" for event in events)
