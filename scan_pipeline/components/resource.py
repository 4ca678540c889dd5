"""The resource behind a scan's assets: the scan itself and the workspace it is worked on in."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from scan_pipeline.components.face import Face
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.standing import Standing, observed_at
from scan_pipeline.stages.workspace import Workspace, open_workspace


class ScanResource:
    """One scan, to be opened by assets, sensors and analyses under the key `scan_<name>`.

    It is a plain object: nothing of it is configured at run time, since the scan file is the
    configuration, and the lake is found as everywhere (variable, then pyproject).

    Args:
        scan: what is enumerated.
        face: its names in Dagster.
        workspace: opens the place it is worked on in; called when a run needs it.
    """

    def __init__(self, scan: Scan, *, face: Face, workspace: Callable[[], Workspace]) -> None:
        self.scan, self.face = scan, face
        self._open_workspace = workspace
        self._workspace: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        """The workspace, opened once in a process.

        Raises:
            ConfigurationError: nothing names a lake.
        """
        if self._workspace is None:
            self._workspace = self._open_workspace()
        return self._workspace

    def pipeline(self, generation: str) -> Pipeline:
        """Return the stages of one generation; a restaged one rests on another's pages."""
        evidence, receipts = None, self.workspace.receipts(self.scan.name)
        if receipts.has(generation):
            receipts.repair(generation)
            stored = receipts.read(generation, trust=self.workspace.trust)
            evidence = stored.receipt.evidence["pages"].generation
        return Pipeline(self.scan, generation, workspace=self.workspace, evidence=evidence)

    def collection(self, *, max_age: timedelta | None = None) -> Collection:
        """Return the scan's generations as readers open them, none older than `max_age`."""
        return Collection(self.scan, workspace=self.workspace, max_age=max_age)

    def standing_of(self, receipt: Receipt) -> Standing:
        """Return how old the data of one generation is, by the scan's schedule."""
        return Standing(
            opened=receipt.scan_generation,
            read_at=observed_at(receipt),
            now=self.workspace.clock(),
            schedule=self.scan.schedule,
        )


def project_workspace(folder: Path) -> Callable[[], Workspace]:
    """Return what opens the workspace of the project around a folder, in this environment."""

    def opened() -> Workspace:
        return open_workspace(cwd=folder, environ=os.environ)

    return opened
