"""A source made ready, and a lake of its own to walk it into."""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project
from scan_pipeline.testing.bench import Key, Opened
from scan_pipeline.testing.kit_scan import best, judged
from scan_pipeline.testing.verdicts import Walked

LOOKS: Final = 3_000
LOOK_S: Final = 0.01
"""How often, and how many seconds apart, a page is looked for, which another thread commits."""


class Ready:
    """One opened bench; walked once, or killed in mid-walk and then walked.

    Args:
        scan: what is walked.
        opened: its source.
        folder: where lake and keys go.
        ordered: whether the order of the records counts.
    """

    def __init__(self, scan: Scan, opened: Opened, *, folder: Path, ordered: bool) -> None:
        self.opened = opened
        self._scan, self._ordered = judged(scan, records=len(opened.keys)), ordered
        self._clock = _Clock()
        project = Project(
            lake=str(folder / "lake"),
            keys=folder / "keys",
            trust=folder / "trust.json",
            dagster_home=folder / "dagster_home",
            root=None,
        )
        self._workspace = Workspace(
            project,
            environ=opened.environ,
            inner=opened.inner,
            clock=self._clock,
            sleep=self._clock.sleep,
        )

    def walk(self) -> Walked:
        """Run one night, and read back what it came to."""
        raised, night = None, None
        try:
            night = run_scan(self._scan, workspace=self._workspace, progress=self._after_page)
        except Exception as error:  # noqa: BLE001  # what a user's adapter raises is a result here
            raised = f"{type(error).__name__}: {error}"
        return Walked(
            scan=self._scan,
            night=night,
            raised=raised,
            keys=None if night is None else self._keys(night),
            expected=[_listed(each) for each in self.opened.keys],
            ordered=self._ordered,
            best=best(self._scan.contract.consistency),
            slept=self._clock.slept,
        )

    def kill(self, *, after: int) -> None:
        """Run one night that ends without a word once a page is durable."""

        def progress(figures: Mapping[str, Any]) -> None:
            self._after_page(figures)
            if figures["pages"] < after:
                return
            for _ in range(LOOKS):
                if self._durable() >= after:
                    raise _Killed
                time.sleep(LOOK_S)
            raise RuntimeError(f"page {after} was not durable after {LOOKS * LOOK_S:.0f} s")

        try:
            run_scan(self._scan, workspace=self._workspace, progress=progress)
        except _Killed:
            return

    def _durable(self) -> int:
        """Return how many pages of the open generation are committed."""
        any_generation = self._workspace.store(self._scan.name, "20000101T000000Z")
        (generation,) = any_generation.pages().generations()
        events = self._workspace.store(self._scan.name, generation).events()
        return sum(event.event == "page" for event in events)

    def _after_page(self, figures: Mapping[str, Any]) -> None:
        self.opened.after_page(figures["pages"])

    def _keys(self, night: Night) -> list[list[Any]]:
        """Return the keys of the staged records, in the order in which they came."""
        generation = night.stored.receipt.scan_generation
        table = self._workspace.store(self._scan.name, generation).records()
        if not table.exists():
            return []
        rows: Sequence[Mapping[str, Any]] = table.read(generation).to_pylist()
        rows = sorted(rows, key=lambda row: (row["_page"], row["_position"]))
        return [json.loads(row["_key"]) for row in rows if row["_key"] is not None]


class _Killed(BaseException):
    """The process ends here, without a word."""


class _Clock:
    """Time that passes by a millisecond a look, and by what is slept."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 30, 2, tzinfo=UTC)
        self.slept = 0.0

    def __call__(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._now += timedelta(seconds=seconds)


def _listed(key: Key) -> list[Any]:
    return list(key) if isinstance(key, tuple) else [key]
