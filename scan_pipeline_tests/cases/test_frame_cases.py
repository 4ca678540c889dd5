"""The cases of the family `frames` that are no walks: decoding and validation."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError
from scan_pipeline_tests.cases.replay import field_case
from scan_pipeline_tests.conftest import Bench

TYPES = {"String": "string", "Int64": "int64"}


def test_c112_fraction_does_not_become_a_whole_number(bench: Bench) -> None:
    told = field_case("C112")
    (step,) = told["scenario"]["steps"]
    columns = [
        {"name": name, "type": TYPES[kind], "nullable": name not in told["expected"]["ids"]}
        for name, kind in step["schema"].items()
    ]

    walked = bench.walk_records(
        [[line.encode() for line in step["read_ndjson"]]], {"record_schema": columns}
    )

    rows = walked.workspace.store("things", walked.generation).records().read(walked.generation)
    (row,) = rows.to_pylist()
    (refused,) = [each for each in walked.receipt.findings.first if each.code == "nonconforming"]
    assert [row["id"]] == told["expected"]["ids"]
    assert (row[told["expected"]["column"]], row["_conforming"]) == (None, False)
    assert row["_raw"] == step["read_ndjson"][0]
    assert refused.expected == f"{told['expected']['column']}: int64"
    # The record was collected and its extraction is told apart; the scan is not accepted.
    assert (walked.receipt.coverage_status, walked.receipt.accepted) == ("verified", False)
    with pytest.raises(GateClosedError):
        walked.collection.latest()


MODEL = """
import pandera.polars as pa

class Record(pa.DataFrameModel):
    id: str = pa.Field(unique=True)
    n: int = pa.Field(ge=2)
"""

WALK = """
import json, sys
from pathlib import Path
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.store.project import find_project
from scan_pipeline_tests.conftest import THINGS, edited, laid_down

records = [json.dumps(dict(zip(("id", "n"), each))).encode() for each in json.loads(sys.argv[1])]
project = find_project(lake=str(Path.cwd() / "lake"), cwd=Path.cwd(), environ={})
scan = parse_scan(edited(THINGS, {"record_schema": "things_model.Record"}))
place = Workspace(project, environ={}, inner=laid_down([records]))
receipt = run_scan(scan, workspace=place).stored.receipt
print(json.dumps({
    "status": receipt.coverage_status,
    "accepted": receipt.accepted,
    "admitted": receipt.extraction.admitted,
    "nonconforming": receipt.extraction.nonconforming,
    "duplicates": receipt.duplicate_ids,
    "refused": sorted({each.expected for each in receipt.findings.first
                       if each.code == "nonconforming"}),
}))
"""


def walked_apart(rows: Any, folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Walk rows in a process of its own: Pandera reads its environment when it is imported."""
    (folder / "things_model.py").write_text(MODEL, encoding="utf-8")
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", WALK, json.dumps(rows)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_c115_validation_is_as_deep_whatever_the_environment_says(tmp_path: Path) -> None:
    """The same rows, with the variable as the case sets it: refused, and the receipt says why."""
    told = field_case("C115")
    first, second = told["scenario"]["steps"]
    assert first["rows"] == second["rows"]
    (tmp_path / "lowered").mkdir()

    lowered = walked_apart(second["rows"], tmp_path / "lowered", second["env"])

    assert lowered == {
        "status": told["expected"]["traversal_state"],
        "accepted": False,
        "admitted": len(second["rows"]),
        "nonconforming": len(second["rows"]),
        "duplicates": 1,
        "refused": ["n: greater_than_or_equal_to(2)"],
    }


IN_BATCHES = """
import pandera.polars as pa

class Alone(pa.DataFrameModel):
    id: str = pa.Field(unique=True)
    n: int

class Together(pa.DataFrameModel):
    id: str
    n: int

    class Config:
        unique = ["id"]
"""


@pytest.fixture
def in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two models that want unique ids, of a module of this test alone."""
    name = f"unique_things_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(IN_BATCHES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize("model", ["Alone", "Together"])
def test_c115_uniqueness_that_only_a_batch_would_see_is_refused(
    bench: Bench, in_batches: str, model: str
) -> None:
    """Rows are validated batch by batch: a value twice in two batches would pass."""
    pages = [[b'{"id":"a","n":1}'], [b'{"id":"a","n":2}']]
    edits = {"record_schema": f"{in_batches}.{model}", "contract.key": ["n"]}

    with pytest.raises(ContractError, match=r"unique values of id; expected no more than .* key"):
        bench.walk_records(pages, edits)


@pytest.mark.parametrize("model", ["Alone", "Together"])
def test_c115_unique_key_is_held_against_all_records(
    bench: Bench, in_batches: str, model: str
) -> None:
    pages = [[b'{"id":"a","n":1}'], [b'{"id":"a","n":1}']]

    walked = bench.walk_records(pages, {"record_schema": f"{in_batches}.{model}"})

    assert walked.receipt.extraction.nonconforming == 0
    assert walked.receipt.duplicate_ids == 1
    assert walked.verdict == ("failed", "observed_pages_only", False)
    assert [each for each in walked.codes if "duplicate" in each] == ["duplicate_delivery"]
