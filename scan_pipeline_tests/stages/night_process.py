"""One night of a scan in a process of its own that ends by SIGKILL at an exact point.

Nothing of the package is patched: the point is reached in what the night is handed (transport,
progress) or in subclasses of what it works with (source, lake, store, receipts).

    python -m scan_pipeline_tests.stages.night_process '{"root": ..., "die": ["request", 3], ...}'
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import yaml

from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import Opening, Page, Position
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.transport import SimulatorTransport
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.sources.source import RefusedCallback, Removal, Source
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.project import Project
from scan_pipeline.store.receipts import ReceiptStore
from scan_pipeline_tests.conftest import REGISTRY, SHIPPED, SteppingClock, edited


def project_in(root: Path) -> Project:
    """Return the places of a project below one folder."""
    return Project(
        lake=str(root / "lake"),
        keys=root / "keys",
        trust=root / "scan_pipeline_trust.json",
        dagster_home=root / "dagster_home",
        root=None,
    )


@dataclass
class Death:
    """Kills this process when a point is reached for the n-th time."""

    point: str
    number: int
    reached: int = 0

    def at(self, point: str) -> None:
        if point != self.point:
            return
        self.reached += 1
        if self.reached == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingTransport(httpx2.BaseTransport):
    """`request` is a request about to be sent, `answer` one whose body has come."""

    def __init__(self, inner: httpx2.BaseTransport, death: Death) -> None:
        self._inner, self._death = inner, death

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._death.at("request")
        response = self._inner.handle_request(request)
        if self._death.point != "answer":
            return response
        raw = b"".join(response.iter_raw())
        response.close()
        self._death.at("answer")
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=httpx2.ByteStream(raw),
            request=request,
        )

    def close(self) -> None:
        self._inner.close()


class DyingSource(Source):
    """`body` is a body about to be taken apart: by staging, or on resume."""

    def __init__(self, inner: Source, death: Death) -> None:
        self._inner, self._death, self.adapter = inner, death, inner.adapter

    @property
    def facts(self):
        return self._inner.facts

    @property
    def waited(self) -> float:
        return self._inner.waited

    def principal(self) -> bytes | None:
        return self._inner.principal()

    def opening(self) -> Opening:
        return self._inner.opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        return self._inner.fetch(position, refused=refused)

    def closing(self, position: Position) -> Opening:
        return self._inner.closing(position)

    def records(self, body: bytes) -> Sequence[bytes]:
        self._death.at("body")
        return self._inner.records(body)

    def checkpoint_in(self, body: bytes, position: Position) -> str | None:
        return self._inner.checkpoint_in(body, position)

    def removals(self, records: Sequence[bytes]) -> Mapping[int, Removal]:
        return self._inner.removals(records)

    def let_go(self) -> tuple[Finding, ...]:
        return self._inner.let_go()

    def close(self) -> None:
        self._inner.close()


@record
class DyingLake(Lake):
    """`receipt_committed`: the receipt is in its table and has no file; `receipt_filed`: it has."""

    death: Death = field(kw_only=True)

    def write_once(self, path: str, data: bytes) -> None:
        self.death.at("receipt_committed")
        super().write_once(path, data)
        self.death.at("receipt_filed")


class DyingReceipts(ReceiptStore):
    """`receipt`: signed, and nothing of it written."""

    def __init__(self, lake: Lake, scan: str, death: Death) -> None:
        super().__init__(lake, scan)
        self._death = death

    def write(self, *arguments: Any, **named: Any) -> None:
        self._death.at("receipt")
        super().write(*arguments, **named)


class DyingStore(GenerationStore):
    """`staged`: records written, findings not; then figures, summaries and findings in order."""

    def __init__(self, like: GenerationStore, death: Death) -> None:
        super().__init__(
            like.lake,
            scan=like.scan,
            generation=like.generation,
            new_sealer=like.sealer,
            evidence=like.evidence,
        )
        self._death = death
        self.receipts = DyingReceipts(like.lake, like.scan, death)

    def write_staged_findings(self, *arguments: Any, **named: Any) -> None:
        self._death.at("staged")
        super().write_staged_findings(*arguments, **named)
        self._death.at("staged_findings")

    def write_summaries(self, *arguments: Any, **named: Any) -> None:
        self._death.at("figures")
        super().write_summaries(*arguments, **named)
        self._death.at("summaries")

    def write_findings(self, *arguments: Any, **named: Any) -> None:
        super().write_findings(*arguments, **named)
        self._death.at("findings")


class DyingWorkspace(Workspace):
    """A workspace whose parts die."""

    def __init__(self, project: Project, death: Death, **arguments: Any) -> None:
        super().__init__(project, **arguments)
        self.lake = DyingLake(root=project.lake, death=death)
        self._death = death

    def source(self, *arguments: Any, **named: Any) -> Source:
        return DyingSource(super().source(*arguments, **named), self._death)

    def store(self, *arguments: Any, **named: Any) -> GenerationStore:
        return DyingStore(super().store(*arguments, **named), self._death)


def scan_and_workspace(settings: Mapping[str, Any], death: Death) -> tuple[Scan, DyingWorkspace]:
    """Return the shipped scan, edited, and where it runs."""
    clock = SteppingClock(datetime.fromisoformat(settings["start"]))
    attributes = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["attributes"]
    facts = json.dumps(edited(attributes, settings["edits"]))
    scan = parse_scan(json.loads(facts.replace(REGISTRY, settings["url"])))
    if settings["url"] == REGISTRY:
        registry = Registry(size=settings["size"], clock=clock)
        inner: httpx2.BaseTransport = SimulatorTransport(registry, sleep=clock.sleep)
    else:
        inner = httpx2.HTTPTransport()
    workspace = DyingWorkspace(
        project_in(Path(settings["root"])),
        death,
        environ={"REGISTRY_TOKEN": AUDITOR_TOKEN},
        inner=DyingTransport(inner, death),
        clock=clock,
        sleep=clock.sleep,
    )
    return scan, workspace


def main(settings: Mapping[str, Any]) -> None:
    death = Death(*settings["die"])
    scan, workspace = scan_and_workspace(settings, death)

    def committed(figures: Mapping[str, Any]) -> None:
        """`committed`: so many pages are durable, and the next request is not sent."""
        if death.point != "committed" or figures["pages"] < death.number:
            return
        (generation,) = workspace.store(scan.name, "20000101T000000Z").pages().generations()
        store = workspace.store(scan.name, generation)
        while sum(event.event == "page" for event in store.events()) < death.number:
            time.sleep(0.01)
        death.reached = death.number - 1
        death.at("committed")

    run_scan(scan, workspace=workspace, progress=committed)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
