"""A case becomes a scan file and a scripted source, and is run to its receipt and its gate."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scan_pipeline.core.errors import CancelledError, GateClosedError, ScanPipelineError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import Night, run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.cases.scripts import Script

HERE = Path(__file__).parent
LIVE = "records_encountered_in_live_traversal"

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Expected:
    """What must come of a replay.

    Attributes:
        kind: `complete`, or the case's word for what goes wrong.
        ids: keys that are kept, in order of first arrival.
        facts: figures beside, e.g. `pages`, `requests`, `generations`, `columns`, `signal`.
    """

    kind: str
    ids: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """One scan of a case.

    Attributes:
        name: the case's id, with a part where it holds several scans.
        attributes: the scan file.
        script: the source, in process; None where the scan's protocol reaches it otherwise.
        expected: what must come of it.
        environ: secrets.
        manifest: keys known from elsewhere, one JSON value a line, written to a file that the scan
            file names as `MANIFEST`.
        cancel_after: number of requests after which the walk is cancelled, None for never.
    """

    name: str
    attributes: Mapping[str, Any]
    script: Script | None
    expected: Expected
    environ: Mapping[str, str] = field(default_factory=dict)
    manifest: Sequence[str] = ()
    cancel_after: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a replay.

    Attributes:
        refused: why the scan file was refused before anything was asked, None where it was not.
        night: what the run came to.
        ids: keys of the staged records, in order of first arrival.
        columns: the staged records' own columns.
        whole: whether the gate opens for a whole collection.
        partial: keys it opens as a live traversal, None where it stays closed.
        audit_agrees: whether the audit computes the same figures.
        slept: waits, in seconds.
    """

    refused: str | None = None
    night: Night | None = None
    ids: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()
    whole: bool = False
    partial: tuple[str, ...] | None = None
    audit_agrees: bool = True
    slept: tuple[float, ...] = ()

    @property
    def receipt(self) -> Receipt:
        if self.night is None:
            raise ValueError(f"there is no receipt: {self.refused}")
        return self.night.stored.receipt

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the findings that weigh something, of all attempts."""
        if self.night is None:
            return frozenset()
        receipts = [self.night.stored.receipt, *(each.receipt for each in self.night.earlier)]
        found = (each for receipt in receipts for each in receipt.findings.first)
        return frozenset(each.code for each in found if each.severity != "note")


def load(name: str) -> list[Case]:
    """Read one of the two files of cases."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def field_case(identity: str) -> Case:
    """Return one case of the reports."""
    return next(each for each in load("field_cases.jsonl") if each["id"] == identity)


def run(
    replay: Replay,
    *,
    folder: Path,
    workspace_with: Callable[..., Workspace],
    audited: bool = True,
) -> Outcome:
    """Run a replay through adapter, engine, tables and gate.

    Args:
        replay: what to run.
        folder: where its manifest may be written.
        workspace_with: makes a workspace of the given `environ`, `inner` and `sleep`.
        audited: whether the audit computes the receipt again.
    """
    slept: list[float] = []
    manifest = folder / "manifest.jsonl"
    manifest.write_text("".join(f"{line}\n" for line in replay.manifest), encoding="utf-8")
    text = json.dumps(replay.attributes).replace('"MANIFEST"', json.dumps(str(manifest)))
    try:
        scan = parse_scan(json.loads(text))
    except ScanPipelineError as error:
        return Outcome(refused=str(error))
    workspace = workspace_with(environ=replay.environ, inner=replay.script, sleep=slept.append)

    def check_cancelled() -> None:
        after = replay.cancel_after
        if after is not None and replay.script and len(replay.script.asked) >= after:
            raise CancelledError("the case cancels its walk here")

    night = run_scan(scan, workspace=workspace, check_cancelled=check_cancelled)
    generation = night.stored.receipt.scan_generation
    rows = _rows(scan, generation, workspace)
    collection = Collection(scan, workspace=workspace)
    return Outcome(
        night=night,
        ids=_distinct(rows),
        columns=_columns(scan, generation, workspace),
        whole=_opens_whole(collection),
        partial=_opened_partial(collection, generation),
        audit_agrees=not audited or Audit(scan.name, generation, workspace=workspace).run().agrees,
        slept=tuple(slept),
    )


def scan_file(name: str, source: Mapping[str, Any], **contract: Any) -> dict[str, Any]:
    """Return a scan file over a live source, the least that a user could write."""
    operation = contract.pop("operation", {})
    kept = {"key": ["id"], "consistency": "live", "accept": {"scope": LIVE}, **contract}
    scan_name = "case_" + "".join(c if c.isalnum() else "_" for c in name.lower())
    return {"name": scan_name, "source": dict(source), "contract": kept, "operation": operation}


def _rows(scan: Scan, generation: str, workspace: Workspace) -> list[str]:
    table = workspace.store(scan.name, generation).records()
    if not table.exists():
        return []
    frame = table.read(generation).to_pylist()
    frame.sort(key=lambda row: (row["_page"], row["_position"]))
    return [row["_key"] for row in frame]


def _columns(scan: Scan, generation: str, workspace: Workspace) -> frozenset[str]:
    table = workspace.store(scan.name, generation).records()
    names = table.read(generation).column_names if table.exists() else []
    return frozenset(names) - {each for each in names if each.startswith("_")} - {"scan_generation"}


def _opens_whole(collection: Collection) -> bool:
    try:
        collection.latest(at_least="corroborated")
    except GateClosedError:
        return False
    return True


def _opened_partial(collection: Collection, generation: str) -> tuple[str, ...] | None:
    try:
        partial = collection.partial(generation, accept=LIVE)
    except GateClosedError:
        return None
    frame = partial.labelled_frame().sort("_page", "_position").collect()
    return _distinct(frame["_key"].to_list())


def _distinct(keys: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(json.loads(key)[0]) for key in keys if key is not None))
