"""Audit: every figure of a receipt computed again from what is left, naming what disagrees."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeVar

from scan_pipeline.core.canonical import items_digest, leaf_hashes
from scan_pipeline.core.contract import Scan, contract_digests
from scan_pipeline.core.coverage import WalkEvidence, accepted, judge
from scan_pipeline.core.errors import (
    ConfigurationError,
    ContractError,
    EvidenceError,
    ScanPipelineError,
    TamperedError,
)
from scan_pipeline.core.findings import findings_digest
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.core.value import record
from scan_pipeline.stages.certify import all_findings
from scan_pipeline.stages.evidence import check_chain, walk_evidence
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reconcile import Reconciled
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.pinning import PinnedFile, PinnedTable, verify_pin
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.tables import Table

T = TypeVar("T")

Level = Literal["bodies", "records", "ledger", "receipt"]
"""How deep an audit could look: page bodies, staged records, events alone, or the receipt alone."""


@record
class AuditCheck:
    """One thing that was computed again.

    Attributes:
        name: what, e.g. `records`, `chain`, `root`.
        agrees: None where it could not be computed at the level that is left.
        expected: what the receipt says.
        found: what was computed.
    """

    name: str
    agrees: bool | None
    expected: str
    found: str


@record
class AuditReport:
    """What an audit came to; `agrees` only where nothing disagrees."""

    scan: str
    generation: str
    receipt_id: str | None
    level: Level
    checks: tuple[AuditCheck, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing disagrees."""
        return all(each.agrees is not False for each in self.checks)

    @property
    def disagreements(self) -> tuple[AuditCheck, ...]:
        """What disagrees."""
        return tuple(each for each in self.checks if each.agrees is False)


class Audit:
    """Audits one generation.

    Args:
        scan: name of the scan.
        generation: which one.
        workspace: where.
    """

    def __init__(self, scan: str, generation: str, *, workspace: Workspace) -> None:
        self._scan, self._generation, self._workspace = scan, generation, workspace
        self._checks: list[AuditCheck] = []

    def run(self) -> AuditReport:
        """Compute everything again; a disagreement is a result, not an exception.

        Raises:
            GateClosedError: the generation has no receipt.
            ConfigurationError: no trust file says whom to believe.
        """
        stored = self._signature()
        if stored is None:
            return self._report(None, "receipt")
        receipt = stored.receipt
        pages = receipt.evidence["pages"]
        store = self._workspace.store(self._scan, self._generation, evidence=pages.generation)
        self._one_receipt(store)
        self._pins(store, receipt)
        events = self._guarded("events", store.events)
        if not events:
            return self._report(stored, "receipt")
        self._chain(events, receipt)
        scan = self._contract(store, events, receipt)
        level: Level = "ledger"
        records = store.records() if store.records().exists() else None
        if records is not None:
            level = "records"
            self._leaves(records, events)
        if self._bodies(store, scan, events):
            level = "bodies"
        if records is not None:
            self._guarded("reconciliation", lambda: self._figures(scan, store, events, receipt))
        return self._report(stored, level)

    def _signature(self) -> StoredReceipt | None:
        try:
            receipts = self._workspace.receipts(self._scan)
            stored = receipts.read(self._generation, trust=self._workspace.trust)
        except TamperedError as error:
            self._checks.append(
                AuditCheck(name=error.what, agrees=False, expected="as signed", found=str(error))
            )
            return None
        self._checks.append(
            AuditCheck(
                name="signature",
                agrees=True,
                expected="a trusted key",
                found=stored.key_id,
            )
        )
        return stored

    def _one_receipt(self, store: GenerationStore) -> None:
        def look() -> None:
            envelope = store.receipts.envelope(self._generation)
            self._check(
                "receipts of the generation", [envelope], store.receipts.committed(self._generation)
            )

        self._guarded("receipts of the generation", look)

    def _pins(self, store: GenerationStore, receipt: Receipt) -> None:
        tables: Mapping[str, Callable[[], Table]] = {
            "pages": store.pages,
            "contract": store.pages,
            "records": store.records,
            "partition_summaries": store.summaries,
            "findings": store.findings_table,
        }
        for name, held in receipt.evidence.items():

            def verify(name: str = name, held: PinnedTableEvidence = held) -> None:
                verify_pin(tables[name](), held.generation, pinned_table(held), contents=True)
                self._checks.append(
                    AuditCheck(
                        name=f"files of {name}",
                        agrees=True,
                        expected=held.files_digest,
                        found=held.files_digest,
                    )
                )

            self._guarded(f"files of {name}", verify)

    def _chain(self, events: list[Event], receipt: Receipt) -> None:
        pages = [event for event in events if event.event == "page"]

        def link() -> None:
            self._check("chain", receipt.cursor_chain_digest, f"sha256:{check_chain(events).hex()}")

        self._guarded("chain", link)
        counted = {
            "pages": (receipt.pages_observed, len(pages)),
            "bytes": (receipt.bytes_observed, sum(e.body_bytes or 0 for e in pages)),
            "refused responses": (
                receipt.refused_responses,
                sum(1 for e in events if e.event == "refused"),
            ),
            "empty pages": (receipt.empty_pages, sum(1 for e in pages if not e.returned)),
            "records returned": (receipt.records_observed, sum(e.returned or 0 for e in pages)),
        }
        for name, (expected, found) in counted.items():
            self._check(name, expected, found)

    def _contract(self, store: GenerationStore, events: list[Event], receipt: Receipt) -> Scan:
        """Return the contract the generation was judged under, its digests compared."""
        own = events[0]
        if store.evidence != self._generation:
            own = self._workspace.store(self._scan, self._generation).events()[0]
        scan = contract_of(own)
        digests = contract_digests(scan, schema_fingerprint=own.facts["schema_fingerprint"])
        self._check("scope digest", receipt.scope_digest, digests.scope)
        self._check("judgement digest", receipt.judgement_digest, digests.judgement)
        self._check("operation digest", receipt.operation_digest, digests.operation)
        return scan

    def _leaves(self, records: Table, events: list[Event]) -> None:
        """Hold the staged leaves against the items digest of each page."""
        admitted = {event.page: event.items_digest for event in events if event.event == "page"}

        def compare() -> None:
            seen = set[int]()
            for page, leaves in _by_page(records, self._generation):
                seen.add(page)
                if items_digest(leaves) != admitted.get(page):
                    raise TamperedError("records", f"the records of page {page} are not its own")
            empty = items_digest(())
            for page, digest in admitted.items():
                if page not in seen and digest != empty:
                    raise TamperedError("records", f"page {page} has no records; expected some")
            self._check("records by page", "as admitted", "as admitted")

        self._guarded("records by page", compare)

    def _bodies(self, store: GenerationStore, scan: Scan, events: list[Event]) -> bool:
        """Open every body and hold it against its digests; say whether that was possible."""
        admitted = {event.page: event for event in events if event.event == "page"}

        def compare() -> bool:
            source, seen = self._workspace.source(scan), 0
            try:
                for page, body in store.bodies():
                    event = admitted.get(page)
                    leaves = leaf_hashes(source.records(body))
                    if event is None or sha256(body).digest() != event.body_digest:
                        raise TamperedError(
                            "pages", f"the body of page {page} is not the admitted one"
                        )
                    if items_digest(leaves) != event.items_digest:
                        raise TamperedError("pages", f"the records of page {page} are not its own")
                    seen += 1
            finally:
                source.close()
            self._check("bodies", len(admitted), seen)
            return True

        try:
            return bool(self._guarded("bodies", compare))
        except ConfigurationError as error:
            self._checks.append(
                AuditCheck(name="bodies", agrees=None, expected="the data key", found=str(error))
            )
            return False

    def _figures(
        self, scan: Scan, store: GenerationStore, events: list[Event], receipt: Receipt
    ) -> None:
        pipeline = Pipeline(
            scan, self._generation, workspace=self._workspace, evidence=store.evidence
        )
        walk = walk_evidence(scan, events)
        reconciled = pipeline.reconcile(walk, events)
        figures = reconciled.figures
        computed = {
            "records": (receipt.records_observed, figures.records),
            "unique keys": (receipt.unique_ids_observed, figures.unique_keys),
            "duplicates": (receipt.duplicate_ids, figures.duplicate_ids),
            "conflicts": (receipt.conflicting_ids, figures.conflicting_ids),
            "nonconforming": (receipt.extraction.nonconforming, figures.nonconforming),
            "leaves": (receipt.merkle.leaves, figures.leaves),
            "root": (receipt.merkle.root, figures.root),
            "missing ids": (
                receipt.missing_id_ranges,
                figures.missing_id_ranges[: len(receipt.missing_id_ranges) or None],
            ),
            "expectations": (
                [each.result for each in receipt.expectations],
                [each.result for each in figures.expectations],
            ),
        }
        for name, (expected, found) in computed.items():
            self._check(name, expected, found)
        self._summaries(store, reconciled)
        self._judgement(scan, store, walk, reconciled, receipt)

    def _summaries(self, store: GenerationStore, reconciled: Reconciled) -> None:
        stored = store.read_summaries()
        self._check("partition summaries", stored, store.as_summaries(reconciled.partitions))

    def _judgement(
        self,
        scan: Scan,
        store: GenerationStore,
        walk: WalkEvidence,
        reconciled: Reconciled,
        receipt: Receipt,
    ) -> None:
        figures = reconciled.figures
        judgement = judge(scan, walk, figures)
        self._check("coverage status", receipt.coverage_status, judgement.status)
        self._check("conclusion scope", receipt.conclusion_scope, judgement.scope)
        self._check(
            "accepted",
            receipt.accepted,
            accepted(scan, judgement, nonconforming=figures.nonconforming),
        )
        staged = store.read_findings(stage="records")
        told = all_findings(scan, walk, staged, figures)
        self._check("findings", receipt.findings.digest, findings_digest(told))
        self._check(
            "stored findings", receipt.findings.digest, findings_digest(store.read_findings())
        )

    def _check(self, name: str, expected: Any, found: Any) -> None:
        self._checks.append(
            AuditCheck(
                name=name, agrees=expected == found, expected=_short(expected), found=_short(found)
            )
        )

    def _guarded(self, name: str, look: Callable[[], T]) -> T | None:
        """Look, and turn what cannot be read as it was sealed into a disagreement."""
        try:
            return look()
        except (ConfigurationError, ContractError):
            raise
        except EvidenceError as error:
            self._disagree(name, error)
        except (ScanPipelineError, OSError, ValueError, KeyError) as error:
            self._disagree(name, error)
        return None

    def _disagree(self, name: str, error: Exception) -> None:
        self._checks.append(
            AuditCheck(name=name, agrees=False, expected="as sealed", found=str(error))
        )

    def _report(self, stored: StoredReceipt | None, level: Level) -> AuditReport:
        return AuditReport(
            scan=self._scan,
            generation=self._generation,
            receipt_id=None if stored is None else stored.receipt_id,
            level=level,
            checks=tuple(self._checks),
        )


def pinned_table(held: PinnedTableEvidence) -> PinnedTable:
    """Return a receipt's pin as the store knows it."""
    return PinnedTable(
        location=held.table,
        version=held.version,
        rows=held.rows,
        files_digest=held.files_digest,
        files=tuple(
            PinnedFile(path=each.path, size=each.size, sha256=each.sha256) for each in held.files
        ),
    )


def _by_page(records: Table, generation: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield each page's leaves in order of position; rows of a page stand together."""
    page: int | None = None
    leaves: list[bytes] = []
    columns = ("_page", "_leaf_hash")
    for batch in records.batches(generation, columns=columns):
        for number, leaf in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):
            if number != page:
                if page is not None:
                    yield page, leaves
                page, leaves = number, []
            leaves.append(leaf)
    if page is not None:
        yield page, leaves


def _short(value: Any) -> str:
    text = str(value)
    return (
        text if len(text) <= 200 else f"{text[:150]}... ({sha256(text.encode()).hexdigest()[:12]})"
    )
