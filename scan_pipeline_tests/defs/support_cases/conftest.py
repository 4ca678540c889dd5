"""The shipped scan of support cases, walked where a test wants it, and models that act a script."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.faults import EndEarly
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.scan_lookup import shipped_scan
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace


@dataclass(frozen=True)
class Cases:
    """The support cases of a registry, and the place they are walked in."""

    scan: Scan
    workspace: Workspace

    def walk(self) -> str:
        """Walk once; return the generation."""
        return run_scan(self.scan, workspace=self.workspace).stored.receipt.scan_generation

    def opened(self, generation: str) -> VerifiedCollection:
        return Collection(self.scan, workspace=self.workspace).generation(generation)


@pytest.fixture
def support_cases(bench: Any) -> Callable[..., Cases]:
    """Makes a place for the shipped scan, over a registry of so many cases."""

    def made(
        cases: int = 1_200, *, broken: bool = False, environ: Mapping[str, str] | None = None
    ) -> Cases:
        script = Script(faults=(EndEarly(page=1, collection="support_cases"),) if broken else ())
        registry: Registry = bench.registry(size=10, cases=cases, script=script)
        workspace = bench.workspace(
            registry, environ={"REGISTRY_TOKEN": AUDITOR_TOKEN, **(environ or {})}
        )
        return Cases(scan=shipped_scan("support_cases").parse(), workspace=workspace)

    return made
