"""The registry's customers behind a search engine on a real port: whole, and after a kill."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.elasticsearch import SearchEngine, create_search_app
from scan_pipeline.simulator.points_in_time import Names
from scan_pipeline.simulator.server import running_app
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench, edited
from scan_pipeline_tests.sources import search_engines
from scan_pipeline_tests.sources.search_engines import ENVIRON, Searched, search
from scan_pipeline_tests.stages.night_process import project_in

pytestmark = pytest.mark.long


def test_all_customers_are_verified_and_open_whole(bench: Bench) -> None:
    engine = SearchEngine(names="rotate")

    with running_app(create_search_app(engine)) as url:
        walked = search(bench, engine, {"source.url": url, "source.size": 1_000}, inner=None)

    assert walked.receipt.coverage_status == "verified", walked.receipt.reasons
    assert {row["customer_id"] for row in walked.rows} == {
        f"customer-{number}" for number in range(1, CUSTOMERS + 1)
    }
    assert walked.audit_agrees
    assert engine.points.open == {}


@pytest.mark.parametrize("names", ["kept", "rotate"])
def test_killed_walk_goes_on_under_its_point_in_time(
    bench: Bench, tmp_path: Path, names: Names
) -> None:
    """A new process has the stored events alone, and closes what the dead one left open."""
    engine = SearchEngine(size=450, names=names)
    with running_app(create_search_app(engine)) as url:
        edits = {"source.url": url, "operation.commit_pages": 1}
        settings = {"root": str(tmp_path), "edits": edits, "after": 3}
        died = subprocess.run(
            [
                sys.executable,
                "-m",
                "scan_pipeline_tests.sources.killed_search",
                json.dumps(settings),
            ],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        assert len(engine.points.open) == 1
        scan = parse_scan(edited(search_engines.CUSTOMERS, edits))
        place = Workspace(project_in(tmp_path), environ=ENVIRON)
        night = run_scan(scan, workspace=place)

    walked = Searched(engine=engine, scan=scan, workspace=place, night=night)
    assert walked.receipt.coverage_status == "verified", walked.receipt.reasons
    assert walked.receipt.records_observed == 450
    assert night.earlier == ()
    assert sum(each.path == "/customers/_pit" for each in engine.asked) == 1
    assert engine.points.open == {}
    assert walked.audit_agrees
