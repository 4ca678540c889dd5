"""The stages of one generation in order, each on what the one before left in the lake."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Final

from scan_pipeline.core.contract_digests import ContractDigests, contract_digests
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.findings import finding
from scan_pipeline.core.receipt import ReceiptAcknowledgement
from scan_pipeline.core.receipt_statement import parse_statement, statement_bytes
from scan_pipeline.core.reconciliation import Reconciliation
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.walk_evidence import WalkEvidence
from scan_pipeline.stages.certify import all_findings, make_receipt
from scan_pipeline.stages.enumerate import Enumeration, Progress
from scan_pipeline.stages.naming import check_is_newest
from scan_pipeline.stages.publish import publish
from scan_pipeline.stages.reconcile import Reconciled, Reconciler
from scan_pipeline.stages.reconciling.evidence import total_moved, walk_evidence
from scan_pipeline.stages.reconciling.last_accepted import last_accepted_records
from scan_pipeline.stages.reconciling.not_reconcilable import (
    is_not_reconcilable,
    not_reconciled,
    why_not_reconciled,
    why_not_staged,
)
from scan_pipeline.stages.reconciling.second_walk import stage_second, with_second
from scan_pipeline.stages.records.schema import ResolvedSchema, resolve_schema
from scan_pipeline.stages.records.texts import RecordTexts
from scan_pipeline.stages.redactions import KnownRows, Redactions
from scan_pipeline.stages.stage import Staged, Staging, nothing_staged
from scan_pipeline.stages.syncing.beginning import beginning_of
from scan_pipeline.stages.walking.connector_checks import unchecked
from scan_pipeline.stages.walking.contract_check import check_contract
from scan_pipeline.stages.walking.walks import SECOND_WALK, is_over, walks_due
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.pinning import PinnedTable, pin
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.trust import receipt_id, sign

COMPACT_ABOVE: Final = 32
"""Files of one generation above which they are rewritten into few; below, reading is as fast."""


def never_cancelled() -> None:
    """Let a walk go on."""


class Pipeline:
    """The stages of one generation.

    Args:
        scan: what is enumerated.
        generation: the generation that is worked on.
        workspace: where.
        evidence: generation whose pages are the evidence; another than its own after a restage.
        redactions: records that were erased since; what stays of them counts in the figures.
    """

    def __init__(
        self,
        scan: Scan,
        generation: str,
        *,
        workspace: Workspace,
        evidence: str | None = None,
        redactions: Redactions = Redactions(),  # noqa: B008  # a frozen value
    ) -> None:
        self.scan, self.generation, self._redactions = scan, generation, redactions
        self._workspace = workspace
        self._evidence = evidence or generation
        self._read: tuple[list[Event], WalkEvidence, Reconciled] | None = None

    @cached_property
    def schema(self) -> ResolvedSchema:
        """The record schema as it is now.

        Raises:
            ContractError: it cannot be resolved.
        """
        return resolve_schema(self.scan.record_schema)

    @cached_property
    def digests(self) -> ContractDigests:
        """Digests of the contract's blocks; raises as `schema`."""
        return contract_digests(self.scan, schema_fingerprint=self.schema.fingerprint)

    @property
    def store(self) -> GenerationStore:
        """The generation's tables."""
        return self._workspace.store(self.scan.name, self.generation, evidence=self._evidence)

    def is_sealed(self) -> bool:
        """Say whether the generation has its receipt; its stages then write nothing more."""
        return self.store.is_sealed()

    def pages(
        self,
        *,
        restart_of: str | None = None,
        check_cancelled: Callable[[], None] = never_cancelled,
        interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        progress: Progress = lambda _: None,
        sleep: Callable[[float], None] | None = None,
    ) -> list[Event]:
        """Enumerate the source, or take up a walk that broke off, and close the generation.

        Returns:
            The generation's events.

        Raises:
            WriterConflictError: another writer holds the generation.
            ConfigurationError: a key or secret is missing.
            ContractError: the record schema cannot be resolved, the contract cannot be held, or
                the lake knows a newer generation than one that would begin.
        """
        store = self.store
        if store.is_sealed() or is_over(self.scan, store):
            return store.events()
        check_contract(self.scan, self.schema)
        if not store.events():
            check_is_newest(self.scan.name, self.generation, workspace=self._workspace)
        self._workspace.begin(self.scan.name)
        beginning = beginning_of(self.scan, store, workspace=self._workspace)
        for shard, after in walks_due(self.scan, store):
            source = self._workspace.source(self.scan, sleep=sleep)
            try:
                Enumeration(
                    self.scan,
                    source=source,
                    store=store,
                    digests=self.digests,
                    schema_fingerprint=self.schema.fingerprint,
                    clock=self._workspace.clock,
                    check_cancelled=check_cancelled,
                    interruptions=interruptions,
                    progress=progress,
                    unchecked=unchecked(
                        self.scan,
                        source.adapter,
                        generation=self.generation,
                        workspace=self._workspace,
                    ),
                    shard=shard,
                    after=after,
                    beginning=beginning,
                ).run(restart_of=restart_of)
            finally:
                source.close()
        table = store.pages()
        if len(table.files(self.generation)) > COMPACT_ABOVE:
            table.compact(self.generation)
        return store.events()

    def records(self) -> Staged | None:
        """Stage the admitted pages; None where the generation is sealed already."""
        store = self.store
        if store.is_sealed():
            return None
        schema, source = self.schema, self._workspace.source(self.scan)
        try:
            staged = Staging(self.scan, source=source, store=store, schema=schema).run()
            stage_second(self.scan, source=source, store=store, schema=schema)
        except ScanPipelineError as error:
            staged = nothing_staged(self.scan, store, schema=schema, why=why_not_staged(error))
        finally:
            source.close()
        begun_with = store.opened().facts["schema_fingerprint"]
        if begun_with != self.schema.fingerprint:
            changed = finding("schema_changed", expected=begun_with, found=self.schema.fingerprint)
            staged = replace(staged, findings=(*staged.findings, changed))
        store.write_staged_findings(staged.findings)
        return staged

    def reconciliation(self) -> Reconciled:
        """Reconcile the staged records; the summaries and findings are written with it."""
        self._read = self._read_back()
        return self._read[-1]

    def receipt(
        self,
        *,
        supersedes: str | None = None,
        acknowledgement: ReceiptAcknowledgement | None = None,
    ) -> StoredReceipt:
        """Certify the generation, once, and publish it where it is accepted.

        Raises:
            WriterConflictError: another writer certified it first, with another receipt.
        """
        store, trust = self.store, self._workspace.trust
        if store.is_sealed():
            store.receipts.repair(self.generation)
            return store.receipts.read(self.generation, trust=trust)
        events, walk, reconciled = self._read or self._read_back()
        self._read = None
        receipt = make_receipt(
            self.scan,
            generation=self.generation,
            events=events,
            walk=walk,
            figures=reconciled.figures,
            findings=store.read_findings(stage="records"),
            digests=self.digests,
            pinned=self._pins(store),
            clock=self._workspace.clock,
            supersedes=supersedes,
            acknowledgement=acknowledgement,
        )
        now: datetime = self._workspace.clock()
        signer = signing_signer(self._workspace.project, now=now, create="never")
        payload = statement_bytes(receipt)
        parse_statement(payload)  # what cannot be read back must not be written once for ever
        store.receipts.write(
            receipt,
            envelope=sign(payload, signer=signer),
            receipt_id=receipt_id(payload),
            at=now,
        )
        return store.receipts.read(self.generation, trust=trust)

    def published(self) -> bool:
        """Let the published table follow the receipts; say whether it now holds this one."""
        return publish(self.scan, workspace=self._workspace) == self.generation

    def walk(self, events: list[Event]) -> WalkEvidence:
        """Sum up the walk; where the records stage found a body altered, its chain is broken."""
        store = self.store
        walk, staged = walk_evidence(self.scan, events), store.read_findings(stage="records")
        walk = with_second(
            walk,
            self.scan,
            first=events,
            store=store,
            workspace=self._workspace,
            redactions=self._redactions,
        )
        altered = any(each.code == "evidence_altered" for each in staged)
        return replace(walk, chain_intact=False) if altered else walk

    def reconcile(
        self, walk: WalkEvidence, events: list[Event], *, last_accepted: int | None
    ) -> Reconciled:
        """Compute the figures from the tables as they are now, writing nothing.

        Args:
            walk: the walk summed up.
            events: its events.
            last_accepted: number of records of the last accepted generation before this one.
        """
        store = self.store
        if is_not_reconcilable(store.read_findings(stage="records")):
            return not_reconciled(events)
        rows = KnownRows(
            store.records(),
            self.generation,
            redactions=self._redactions,
            shard=FIRST_WALK,
            partition_by=self.scan.contract.partition_by,
        )
        source = self._workspace.source(self.scan)
        texts = RecordTexts(store, source)
        try:
            return Reconciler(
                self.scan,
                walk=walk,
                total_moved=total_moved(self.scan, [e for e in events if e.event == "page"]),
                rows=rows.count(),
                batches=rows.batches,
                text=texts.text,
                last_accepted=last_accepted,
                erased=self._redactions.keys,
            ).run()
        finally:
            source.close()

    def _read_back(self) -> tuple[list[Event], WalkEvidence, Reconciled]:
        """Read the tables back: the walk, and its records reconciled and written down."""
        store = self.store
        events = store.events()
        walk = self.walk(events)
        earlier = last_accepted_records(
            self.scan, evidence=self._evidence, workspace=self._workspace
        )
        try:
            reconciled = self.reconcile(walk, events, last_accepted=earlier)
        except ScanPipelineError as error:
            why = why_not_reconciled(error)
            if store.is_sealed():
                raise
            store.write_staged_findings([*store.read_findings(stage="records"), why])
            reconciled = not_reconciled(events)
        if not store.is_sealed():
            store.write_summaries(reconciled.partitions)
            self._write_findings(store, walk, reconciled.figures)
        return events, walk, reconciled

    def _pins(self, store: GenerationStore) -> dict[str, tuple[str, str, PinnedTable]]:
        tables = {
            "pages": (store.pages(), self._evidence),
            "records": (store.records(), self.generation),
            "partition_summaries": (store.summaries(), self.generation),
            "findings": (store.findings_table(), self.generation),
        }
        if store.second_walk().exists() and store.events(SECOND_WALK):
            tables["second_walk"] = (store.second_walk(), self.generation)
        return {
            name: (table.location, generation, pin(table, generation))
            for name, (table, generation) in tables.items()
        }

    def _write_findings(
        self, store: GenerationStore, walk: WalkEvidence, figures: Reconciliation
    ) -> None:
        """Write every finding in the order in which the receipt digests them."""
        staged = store.read_findings(stage="records")
        told = all_findings(self.scan, walk, staged, figures)
        first, second = len(walk.findings), len(walk.findings) + len(staged)
        stages = [*["pages"] * first, *["records"] * len(staged)]
        stages += ["reconciliation"] * (len(told) - second)
        store.write_findings(list(zip(stages, told, strict=True)))
