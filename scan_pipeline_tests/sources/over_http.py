"""Sources over answers that a test writes down, asked page by page or walked to a receipt."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from scan_pipeline.core.operation import Retries
from scan_pipeline.core.page import Page, Position, Refusal
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.sources.catalogue import open_source, parse_scan
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import find_project

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
LIVE = {"key": ["id"], "consistency": "live"}

Answer = Callable[[httpx2.Request], httpx2.Response]


class Killed(BaseException):
    """The process ends here, without a word."""


def answered(body: Any, *, status: int = 200, headers: Any = None) -> httpx2.Response:
    """Return an answer of JSON."""
    return httpx2.Response(status, content=json.dumps(body).encode(), headers=headers)


def scan_of(source: Mapping[str, Any], **blocks: Any) -> Any:
    """Read a scan file over a source, live unless said otherwise."""
    attributes = {"name": "things", "source": dict(source), "contract": LIVE, **blocks}
    return parse_scan(attributes)


class Asking:
    """A source over one answer to every request; keeps what was asked, refused and slept."""

    def __init__(
        self,
        source: Mapping[str, Any],
        answer: Answer,
        *,
        environ: Mapping[str, str] | None = None,
        **blocks: Any,
    ) -> None:
        self.requests: list[httpx2.Request] = []
        self.refused: list[Refusal] = []
        self.slept: list[float] = []
        self._answer = answer
        self.source = open_source(
            scan_of(source, **blocks),
            Surroundings(
                environ=environ or {},
                inner=httpx2.MockTransport(self._handle),
                clock=lambda: NOW,
                sleep=self.slept.append,
                retries=Retries(attempts=3),
            ),
        )

    def fetch(self, token: str | None = None, **position: Any) -> Page:
        """Ask for a page."""
        return self.source.fetch(Position(token=token, **position), refused=self.refused.append)

    @property
    def last(self) -> httpx2.Request:
        """The last request."""
        return self.requests[-1]

    @property
    def sent(self) -> dict[str, str]:
        """Parameters of the last request."""
        return dict(self.last.url.params)

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self._answer(request)


@dataclass(frozen=True)
class Walked:
    """A scan that was run to its receipt.

    Attributes:
        receipt: its receipt.
        keys: keys of the staged records, in order of arrival.
        requests: what was asked.
    """

    receipt: Receipt
    keys: list[str]
    requests: list[httpx2.Request]

    @property
    def codes(self) -> set[str]:
        """Codes of the findings that weigh something."""
        return {each.code for each in self.receipt.findings.first if each.severity != "note"}

    @property
    def verdict(self) -> tuple[str, str, str]:
        """Traversal, status and scope."""
        receipt = self.receipt
        return receipt.traversal, receipt.coverage_status, receipt.conclusion_scope


def walk(
    source: Mapping[str, Any],
    answer: Answer | None,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    **blocks: Any,
) -> Walked:
    """Run a scan in a folder of its own; without an answer, over the network."""
    requests: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        if answer is None:
            raise ValueError("nothing answers in process; expected the network to be asked")
        return answer(request)

    scan = scan_of(source, **blocks)
    workspace = Workspace(
        find_project(lake=str(folder / "lake"), cwd=folder, environ={}),
        environ=environ or {},
        inner=None if answer is None else httpx2.MockTransport(handle),
        sleep=lambda _: None,
    )
    night = run_scan(scan, workspace=workspace)
    receipt = night.stored.receipt
    table = workspace.store(scan.name, receipt.scan_generation).records()
    rows = table.read(receipt.scan_generation).to_pylist() if table.exists() else []
    rows.sort(key=lambda row: (row["_page"], row["_position"]))
    keys = [json.loads(row["_key"])[0] for row in rows]
    return Walked(receipt=receipt, keys=keys, requests=requests)
