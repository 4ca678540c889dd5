"""Page a scan of items to its end in a process of its own and print what that took.

    python -m scan_pipeline_tests.agents.paging_process FOLDER PAGE_SIZE [ORDERED_BY]

The operations are called as the server calls them. No client reads along: the official one holds
each answer against its schema in Python, which takes ten times as long as to make it.
"""

import json
import os
import sys
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from scan_pipeline.agents.open_query import open_query
from scan_pipeline.agents.policy import Limits, Policy, Principal, ScanPolicy, View
from scan_pipeline.agents.queries import Order, Query
from scan_pipeline.agents.read_page import read_page
from scan_pipeline.agents.read_record import read_record
from scan_pipeline.agents.serving import create_desk
from scan_pipeline.stages.workspace import open_workspace
from scan_pipeline_tests.benchmarks.enumerate import items_at

SCAN = "items"
LARGE = 2**40


def rss_mb() -> float:
    """Return the resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def paged(folder: Path, *, page_size: int, by: tuple[str, ...]) -> dict[str, Any]:
    """Return how many rows came, of how many items, and memory and seconds of each page."""
    limits = Limits(
        page_size=page_size,
        response_bytes=64 * 2**20,
        response_tokens=LARGE,
        run_pages=LARGE,
        run_bytes=LARGE,
        run_tokens=LARGE,
        run_seconds=24 * 3600,
    )
    policy = Policy(
        principals={"eve": Principal(views={SCAN: ("whole",)})},
        scans={SCAN: ScanPolicy(views={"whole": View()})},
        limits=limits,
    )
    desk = create_desk(
        open_workspace(lake=str(folder / ".lake"), cwd=folder, environ={}),
        find=lambda _: items_at((folder / "url").read_text()),
        policy=lambda: policy,
    )
    query = Query(
        columns=("seq", "name", "amount"),
        order=tuple(Order(field=each, descending=True) for each in by),
        accept="records_encountered_in_live_traversal",
    )
    opened = open_query(desk, "eve", scan=SCAN, view=None, query=query)
    matching = opened.summary.matching_count
    seen = bytearray(matching)  # a byte an item, all of them there before the first page
    cursor, rows, memory, seconds = opened.first_cursor, 0, list[float](), list[float]()
    worked = process_time()
    while cursor:
        begun = monotonic()
        page = read_page(desk, "eve", cursor=cursor)
        seconds.append(round(monotonic() - begun, 3))
        for each in page.page.items:
            seen[(each.values or {})["seq"]] = 1
        rows += len(page.page.items)
        cursor = page.page.next_cursor
        memory.append(rss_mb())
    worked = process_time() - worked
    record = read_record(desk, "eve", handle=opened.result_handle, row=matching)
    return {
        "matching": matching,
        "rows": rows,
        "items": sum(seen),
        "last_row": record.row,
        "memory": memory,
        "seconds": seconds,
        "processor_seconds": worked,
    }


if __name__ == "__main__":
    found = paged(Path(sys.argv[1]), page_size=int(sys.argv[2]), by=tuple(sys.argv[3:]))
    sys.stdout.write(json.dumps(found))
