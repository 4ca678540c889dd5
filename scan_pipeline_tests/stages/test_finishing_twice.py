"""Two processes finish one closed generation: one receipt, and what it pins stays as it lies."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from scan_pipeline.core.errors import WriterConflictError
from scan_pipeline.core.findings import finding
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.receipts import ReceiptStore
from scan_pipeline_tests.conftest import Bench
from scan_pipeline_tests.stages.crashes import check_generation, receipts_of

GENERATION = "20261130T020000Z"
SMALL = 300


@pytest.fixture
def workspace(bench: Bench) -> Workspace:
    return bench.workspace(bench.registry(size=SMALL))


@pytest.fixture
def closed(bench: Bench, workspace: Workspace) -> Callable[..., Pipeline]:
    """Returns pipelines of a generation whose walk is closed; each as its own process has it."""
    scan = bench.scan()
    Pipeline(scan, GENERATION, workspace=workspace).pages()

    def pipeline(other: Workspace | None = None) -> Pipeline:
        return Pipeline(scan, GENERATION, workspace=other or workspace)

    return pipeline


class Interrupted(Workspace):
    """Lets another process work just before the receipt is written, its pins long taken."""

    def __init__(self, like: Workspace, meanwhile: Callable[[], None]) -> None:
        super().__init__(like.project, environ=like.environ, clock=like.clock, sleep=like.sleep)
        self._inner, self._meanwhile = like._inner, meanwhile

    def store(self, scan: str, generation: str, **named: Any) -> GenerationStore:
        store = super().store(scan, generation, **named)
        store.receipts = InterruptedReceipts(self, scan, self._meanwhile)
        return store


class InterruptedReceipts(ReceiptStore):
    def __init__(self, workspace: Workspace, scan: str, meanwhile: Callable[[], None]) -> None:
        super().__init__(workspace.lake, scan)
        self._meanwhile = meanwhile

    def write(self, *arguments: Any, **named: Any) -> None:
        self._meanwhile()
        super().write(*arguments, **named)


def stage_again(pipeline: Pipeline) -> None:
    pipeline.records()
    pipeline.reconciliation()


def files(pipeline: Pipeline) -> list[tuple[str, ...]]:
    store = pipeline.store
    tables = (store.pages(), store.records(), store.summaries(), store.findings_table())
    return [tuple(file.path for file in table.files(GENERATION)) for table in tables]


def test_stages_done_again_leave_every_file_where_it_lies(closed) -> None:
    one, other = closed(), closed()
    stage_again(one)
    before = files(one)

    stage_again(other)

    assert files(one) == before
    assert all(before[:3])


def test_a_second_process_between_pins_and_receipt_breaks_nothing(
    closed, workspace: Workspace
) -> None:
    second = closed()
    first = closed(Interrupted(workspace, lambda: stage_again(second)))
    stage_again(first)

    first.receipt()

    check_generation(workspace, "customers", GENERATION)


def test_a_second_process_between_the_records_and_their_findings_breaks_nothing(
    bench: Bench, workspace: Workspace
) -> None:
    """Findings of the records stage alone never take the place of all findings."""
    scan = bench.scan(
        {
            "record_schema": [
                {"name": name, "type": "string"} for name in ("customer_id", "region")
            ],
            "contract.expect": {},
        }
    )
    first, second = (Pipeline(scan, GENERATION, workspace=workspace) for _ in range(2))
    first.pages()
    stage_again(first)
    assert "unknown_field" in {each.code for each in first.store.read_findings()}
    before = files(first)

    second.records()

    assert files(first) == before
    first.receipt()
    assert Audit(scan.name, GENERATION, workspace=workspace).run().agrees


def test_the_second_receipt_is_refused(closed, workspace: Workspace) -> None:
    second = closed()
    stage_again(second)
    first = closed(Interrupted(workspace, second.receipt))
    stage_again(first)

    with pytest.raises(WriterConflictError):
        first.receipt()

    assert receipts_of(workspace, "customers") == [GENERATION]
    check_generation(workspace, "customers", GENERATION)


def test_other_rows_never_replace_sealed_ones(closed) -> None:
    """A process of another version, still at work on a generation that was sealed meanwhile."""
    pipeline = closed()
    store = pipeline.store
    pipeline.records()
    pipeline.receipt()
    before = files(pipeline)

    with pytest.raises(WriterConflictError, match="sealed"):
        store.write_staged_findings([finding("abandoned")])
    with pytest.raises(WriterConflictError, match="sealed"):
        store.write_summaries([])

    assert files(pipeline) == before


def test_a_repaired_file_does_not_refuse_the_receipt_it_repairs(
    closed, workspace: Workspace
) -> None:
    """Another process sees the committed receipt without its file, and writes it first."""

    class Repairing(ReceiptStore):
        def _file(self, generation: str, envelope: bytes) -> None:
            ReceiptStore(workspace.lake, "customers").repair(generation)
            super()._file(generation, envelope)

    pipeline = closed()
    stage_again(pipeline)
    store = pipeline.store
    store.receipts = Repairing(workspace.lake, "customers")
    other = closed(Holding(workspace, store))

    stored = other.receipt()

    assert stored.receipt.scan_generation == GENERATION
    check_generation(workspace, "customers", GENERATION)


class Holding(Workspace):
    """Hands out one store."""

    def __init__(self, like: Workspace, held: GenerationStore) -> None:
        super().__init__(like.project, environ=like.environ, clock=like.clock, sleep=like.sleep)
        self._inner, self._held = like._inner, held

    def store(self, *_: Any, **__: Any) -> GenerationStore:
        return self._held


@pytest.mark.long
def test_runs_at_once_end_with_one_receipt_a_generation(bench: Bench, workspace: Workspace) -> None:
    """Each run either ends with a receipt or stops before another writer; all audits agree."""
    scan, ended = bench.scan({"operation": {"commit_pages": 1}}), []

    def run() -> None:
        try:
            ended.append(run_scan(scan, workspace=workspace).stored.receipt.accepted)
        except WriterConflictError:
            ended.append(None)

    for _ in range(5):
        threads = [threading.Thread(target=run) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert len(ended) == 15
    assert True in ended
    assert False not in ended
    generations = workspace.receipts(scan.name).generations()
    assert receipts_of(workspace, scan.name) == sorted(generations)
    for generation in generations:
        audit = Audit(scan.name, generation, workspace=workspace).run()
        assert audit.agrees, audit.disagreements
