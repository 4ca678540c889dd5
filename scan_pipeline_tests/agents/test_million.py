"""A million rows paged to their end, in flat memory."""

import json
import subprocess
import sys

import pytest

from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.benchmarks.enumerate import items_at, lake_in
from scan_pipeline_tests.benchmarks.items_server import serving

ROWS, PAGE = 1_000_000, 20_000
GROWTH_MB = 150
"""By how much the pages after the first tenth may raise the process's memory; it is some 30. The
rows are 324 MB as JSON, and their order in memory is 12."""


@pytest.mark.benchmark
@pytest.mark.timeout(900)
def test_million_rows_are_paged_to_their_end_in_flat_memory(tmp_path):
    """In an order that ties everywhere; the last record is then read in full by its number."""
    with serving(ROWS) as url:
        workspace = lake_in(tmp_path)
        (tmp_path / "url").write_text(url)
        assert run_scan(items_at(url), workspace=workspace).stored.receipt.accepted

    paging = [sys.executable, "-m", "scan_pipeline_tests.agents.paging_process"]
    done = subprocess.run(
        [*paging, str(tmp_path), str(PAGE), "status"], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    memory = found["memory"]

    assert found["matching"] == found["rows"] == found["items"] == found["last_row"] == ROWS
    assert len(memory) == ROWS // PAGE
    assert max(memory) - max(memory[: len(memory) // 10]) < GROWTH_MB
