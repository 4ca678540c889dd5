"""Whoever reads `published/<scan>`, and however, counts the same: before, during, after a night.

DuckDB's own `delta_scan` needs an extension that is fetched from its maker at run time and is not
at hand offline; here DuckDB counts over the files that the log names, through Arrow, and over the
folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import httpx2
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.store.published_table import PublishedTable
from scan_pipeline_tests.conftest import Bench, Walked

SMALL = {"contract.expect": {}, "source.partition_counts": ...}


def folder_of(walked: Walked) -> Path:
    return Path(walked.workspace.project.lake) / "published" / walked.scan.name


def counts(folder: Path) -> Mapping[str, int]:
    """Count the rows as each kind of reader does."""
    paths = pa.table(DeltaTable(str(folder)).get_add_actions()).column("path").to_pylist()
    live = ds.dataset([f"{folder}/{each}" for each in paths], format="parquet")
    lying = sorted(folder.rglob("*.parquet"))
    glob = f"select count(*) from read_parquet('{folder}/**/*.parquet')"
    return {
        "Polars": pl.scan_delta(str(folder)).select(pl.len()).collect().item(),
        "Arrow": live.count_rows(),
        "DuckDB through Arrow": duckdb.sql("select count(*) from live").fetchall()[0][0],
        "DuckDB over the folder": duckdb.sql(glob).fetchall()[0][0],
        "folder connector": sum(pl.read_parquet(each).height for each in lying),
    }


class Watched(httpx2.BaseTransport):
    """A registry; somebody looks each time before it answers."""

    def __init__(self, bench: Bench, registry: Registry, look: Callable[[], None]) -> None:
        self._inner, self._look = SimulatorTransport(registry, sleep=bench.clock.sleep), look

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._look()
        return self._inner.handle_request(request)


def test_all_count_the_same_before_during_and_after_a_failed_night(bench: Bench) -> None:
    good = bench.walk(bench.registry(size=150), SMALL)
    folder, during = folder_of(good), list[Mapping[str, int]]()
    before = counts(folder)
    failing = bench.registry(size=170, script=Script(faults=(EndEarly(page=1),)))
    watched = Watched(bench, failing, lambda: during.append(counts(folder)))
    bad = bench.walk(failing, SMALL, project=good.workspace.project, inner=watched)

    assert not bad.receipt.accepted
    assert set(before.values()) == {150}
    assert during
    assert all(each == before for each in during)
    assert counts(folder) == before


def test_all_count_the_same_after_the_next_accepted_night(bench: Bench) -> None:
    """The files of the night before are gone, not merely unnamed."""
    good = bench.walk(bench.registry(size=150), SMALL)
    bench.walk(bench.registry(size=170), SMALL, project=good.workspace.project)

    assert set(counts(folder_of(good)).values()) == {170}


def test_what_a_break_left_after_the_commit_goes_with_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = bench.walk(bench.registry(size=150), SMALL)

    held = DeltaTable(str(folder_of(good))).version()

    def breaks(table: PublishedTable) -> int:
        if table.version() > held:
            raise OSError("the process ended here")
        return 0

    with monkeypatch.context() as broken:
        broken.setattr(PublishedTable, "sweep", breaks)
        with pytest.raises(OSError, match="ended here"):
            bench.walk(bench.registry(size=170), SMALL, project=good.workspace.project)
    told = counts(folder_of(good))
    assert (told["Polars"], told["folder connector"]) == (170, 320)

    failing = bench.registry(size=180, script=Script(faults=(EndEarly(page=1),)))
    after = bench.walk(failing, SMALL, project=good.workspace.project)

    assert not after.receipt.accepted
    assert set(counts(folder_of(good)).values()) == {170}
