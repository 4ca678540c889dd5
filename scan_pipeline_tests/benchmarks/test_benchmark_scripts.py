"""The benchmark's scripts do what docs/benchmarks.md says; how fast is for people to judge."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from scan_pipeline_tests.benchmarks.items_server import item, serving


def run(module: str, url: str, out: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", f"scan_pipeline_tests.benchmarks.{module}", url, str(out)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_enumerate_leaves_a_delta_table_of_the_items(tmp_path: Path) -> None:
    with serving(2_500) as url:
        ran = run("enumerate", url, tmp_path / "out")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("2,500 records of items")
    rows = pl.read_delta(str(tmp_path / "out" / "items")).sort("seq")
    sent = [json.loads(item(n)) for n in range(2_500)]
    assert rows.select(sent[0].keys()).to_dicts() == sent


@pytest.mark.benchmark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [100_000, 1_000_000])
def test_cost_of_each_stage(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(number) as url:
        ran = run("stages", url, tmp_path / "out")

    assert ran.returncode == 0, ran.stderr
    with capsys.disabled():
        print(f"\n{number:,} records of {len(item(number // 2))} bytes\n{ran.stdout}")
