"""A lake that was sealed once, for tests that alter or read it."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.stages.run import run_scan
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.night_process import project_in
from scan_pipeline_tests.stages.tampering import SealedLake

SEALED = 300
"""Customers of the sealed generations: three pages."""

COLUMNS = [
    {"name": name, "type": kind}
    for name, kind in (("customer_id", "string"), ("region", "string"), ("schema_version", "int64"))
]
"""A schema that does not know every field, so that there are findings."""


@pytest.fixture(scope="session")
def sealed_once(tmp_path_factory: pytest.TempPathFactory, shipped: Any) -> Iterator[SealedLake]:
    """Two accepted nights of one scan and one of another; not to be altered."""
    folder = tmp_path_factory.mktemp("sealed")
    with ExitStack() as stack:
        bench = Bench(folder=folder, stack=stack, shipped=shipped)
        registry = bench.registry(size=SEALED)
        workspace = bench.workspace(registry, project=project_in(folder))
        scan = bench.scan({"record_schema": COLUMNS, "operation": {"commit_pages": 2}})
        other = bench.scan({"name": "shop", "record_schema": COLUMNS})
        names = []
        for each in (scan, scan, other):
            names.append(run_scan(each, workspace=workspace).stored.receipt.scan_generation)
            bench.clock.now += timedelta(days=1)
        yield SealedLake(folder, scan, names[0], names[1], other, names[2])


@pytest.fixture
def sealed(sealed_once: SealedLake, tmp_path: Path) -> SealedLake:
    """A copy of it, to be altered."""
    return sealed_once.copied_to(tmp_path / "altered")
