"""Audit: every figure of a receipt computed again from what is left, naming what disagrees."""

from collections.abc import Sequence
from typing import Any

from scan_pipeline.core.amendment import Amendment, amended_words
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.contract_digests import ContractDigests, contract_digests
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.receipt_statement import predicate_of, receipt_json
from scan_pipeline.core.reconciliation import Reconciliation, no_figures
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.second_walk import SecondWalk
from scan_pipeline.stages.acknowledged import acknowledged_in
from scan_pipeline.stages.auditing.members import (
    copied,
    is_redacted,
    members,
    noticed,
    of_records,
    summed,
)
from scan_pipeline.stages.auditing.pins import check_pins
from scan_pipeline.stages.auditing.report import AuditCheck, AuditReport, Checks, Level
from scan_pipeline.stages.auditing.rows import (
    check_bodies,
    check_leaves,
    check_published,
    name_of,
)
from scan_pipeline.stages.certify import all_findings, make_receipt
from scan_pipeline.stages.pipeline import Pipeline
from scan_pipeline.stages.reconciling.evidence import check_chain
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore
from scan_pipeline.store.receipts import StoredReceipt

__all__ = ["Audit", "AuditCheck", "AuditReport"]


class Audit:
    """Audits one generation.

    Args:
        scan: name of the scan.
        generation: which one.
        workspace: where.
    """

    def __init__(self, scan: str, generation: str, *, workspace: Workspace) -> None:
        self._scan, self._generation, self._workspace = scan, generation, workspace
        self._checks = Checks()
        self._signed = dict[str, Any]()
        self._amendments: tuple[Amendment, ...] = ()
        self._redactions = Redactions()

    def run(self) -> AuditReport:
        """Compute everything again; a disagreement is a result, not an exception.

        Raises:
            GateClosedError: the generation has no receipt.
            ConfigurationError: no trust file says whom to believe.
        """
        stored = self._signature()
        if stored is None:
            return self._report(None, "receipt")
        receipt, checks = stored.receipt, self._checks
        evidence = receipt.evidence["pages"].generation
        store = self._workspace.store(self._scan, self._generation, evidence=evidence)
        checks.guard("receipts of the generation", lambda: self._one_receipt(store, stored))
        pins = check_pins(store, receipt, workspace=self._workspace, checks=checks)
        gone, self._amendments = pins.gone, pins.amendments
        self._redactions = Redactions.of(pins.amendments)
        events = None if "pages" in gone else checks.guard("events", store.events)
        if not events:
            return self._report(stored, "receipt")
        checks.guard("chain", lambda: self._chain(receipt.cursor_chain_digest, events))
        returned = sum(e.returned or 0 for e in events if e.event == "page")
        checks.compare("records returned", receipt.records_observed, returned)
        scan = checks.guard("contract", lambda: contract_of(store.opened()))
        if scan is None:
            return self._report(stored, "ledger")
        opened = checks.guard(
            "bodies",
            lambda: check_bodies(
                store, events, self._workspace.source(scan), checks, redactions=self._redactions
            ),
        )
        if receipt.second_walk is not None:
            self._second_walk(scan, store, receipt.second_walk, staged="records" not in gone)
        if "records" in gone:
            checks.guard("ledger", lambda: self._ledger(scan, store, events, receipt))
            return self._report(stored, "ledger")
        redactions = self._redactions
        checks.guard(
            "records by page", lambda: check_leaves(store, events, checks, redactions=redactions)
        )
        checks.guard("figures", lambda: self._figures(scan, store, events, receipt))
        checks.guard("published", lambda: check_published(stored, scan, self._workspace, checks))
        return self._report(stored, "records" if opened is False else "bodies")

    def _signature(self) -> StoredReceipt | None:
        try:
            receipts = self._workspace.receipts(self._scan)
            stored = receipts.read(self._generation, trust=self._workspace.trust)
            payload = self._workspace.trust.verify(receipts.envelope(self._generation)).payload
            self._signed = predicate_of(payload)
        except TamperedError as error:
            self._checks.disagree(error.what, error, expected="as signed")
            return None
        self._checks.agree("signature", f"of the trusted key {stored.key_id}")
        return stored

    def _chain(self, signed: str, events: list[Event], *, shard: int = FIRST_WALK) -> None:
        found = f"sha256:{check_chain(events).hex()}"
        self._checks.compare(name_of("chain", shard), signed, found)

    def _second_walk(
        self, scan: Scan, store: GenerationStore, signed: SecondWalk, *, staged: bool
    ) -> None:
        checks, shard, events = self._checks, SECOND_WALK, store.events(SECOND_WALK)
        checks.guard(
            name_of("chain", shard),
            lambda: self._chain(signed.cursor_chain_digest, events, shard=shard),
        )
        source = self._workspace.source(scan)
        for_bodies = name_of("bodies", shard)
        redactions = self._redactions
        checks.guard(
            for_bodies,
            lambda: check_bodies(store, events, source, checks, shard=shard, redactions=redactions),
        )
        if staged:
            checks.guard(
                name_of("records by page", shard),
                lambda: check_leaves(store, events, checks, shard=shard, redactions=redactions),
            )

    def _one_receipt(self, store: GenerationStore, stored: StoredReceipt) -> None:
        expected = store.receipts.expected_row(stored)
        self._checks.compare(
            "receipts of the generation", [expected], store.receipts.rows(self._generation)
        )

    def _ledger(
        self, scan: Scan, store: GenerationStore, events: list[Event], receipt: Receipt
    ) -> None:
        """Compute what the events alone tell; name what would need the records."""
        told = members(self._signed)
        digests = self._digests(scan, store, ())
        found = self._computed(
            scan, store, events, figures=no_figures(), digests=digests, staged=()
        )
        self._compare_each(
            {name: value for name, value in told.items() if not of_records(name)},
            {name: value for name, value in found.items() if not of_records(name)},
        )
        for name in filter(of_records, told):
            self._checks.leave(name, "no record is left", expected=told[name])
        self._checks.leave("findings", "no record is left", expected=receipt.findings.digest)

    def _figures(
        self, scan: Scan, store: GenerationStore, events: list[Event], receipt: Receipt
    ) -> None:
        """Compute every member of the receipt from events and records."""
        checks, staged = self._checks, store.read_findings(stage="records")
        pipeline = self._pipeline(scan, store)
        walk = pipeline.walk(events)
        last = next((e.expected for e in receipt.expectations if e.name == "swing"), None)
        reconciled = pipeline.reconcile(
            walk, events, last_accepted=last if isinstance(last, int) else None
        )
        figures, digests = reconciled.figures, self._digests(scan, store, staged)
        found = self._computed(scan, store, events, figures=figures, digests=digests, staged=staged)
        self._compare_each(members(self._signed), found)
        checks.guard(
            "partition summaries",
            lambda: checks.compare(
                "partition summaries",
                summed(store.read_summaries(), self._redactions),
                summed(store.as_summaries(reconciled.partitions), self._redactions),
            ),
        )
        written = store.findings_as_written()
        if self._redactions:
            # Their pin holds them; what was digested named the record.
            checks.leave("stored findings", self._redactions.word())
        else:
            checks.compare(
                "stored findings",
                (receipt.findings.total, receipt.findings.digest),
                (len(written), f"sha256:{digest_of(written).hex()}"),
            )
        checks.compare(
            "findings",
            [noticed(each, self._redactions) for each in store.read_findings()],
            [noticed(each, self._redactions) for each in all_findings(scan, walk, staged, figures)],
        )

    def _compare_each(self, signed: dict[str, Any], found: dict[str, Any]) -> None:
        """Hold the receipt's members against those computed now.

        A receipt of before says nothing of members that came later; it would not have been read if
        one of the others were missing. Of one that named an erased key nothing can be computed.
        """
        checks = self._checks
        later = found.keys() - signed.keys()
        for name in sorted(later):
            checks.leave(name, "the receipt was signed before it had this member")
        unnamed = {name for name, value in signed.items() if not is_redacted(value)}
        if self._redactions:
            unnamed.discard("round.removed_ids")  # nobody can tell what an erased record said
        for name in sorted(signed.keys() - unnamed):
            checks.leave(name, "it named an erased record", expected=signed[name])
        checks.compare_each(
            {name: value for name, value in signed.items() if name in unnamed},
            {name: value for name, value in found.items() if name in unnamed},
        )

    def _pipeline(self, scan: Scan, store: GenerationStore) -> Pipeline:
        return Pipeline(
            scan,
            self._generation,
            workspace=self._workspace,
            evidence=store.evidence,
            redactions=self._redactions,
        )

    def _digests(
        self, scan: Scan, store: GenerationStore, staged: Sequence[Finding]
    ) -> ContractDigests:
        """Return the contract's digests, with the schema that the records were held against."""
        changed = next((each.found for each in staged if each.code == "schema_changed"), None)
        fingerprint = changed or str(store.opened().facts["schema_fingerprint"])
        return contract_digests(scan, schema_fingerprint=fingerprint)

    def _computed(
        self,
        scan: Scan,
        store: GenerationStore,
        events: list[Event],
        *,
        figures: Reconciliation,
        digests: ContractDigests,
        staged: Sequence[Finding],
    ) -> dict[str, Any]:
        pipeline = self._pipeline(scan, store)
        receipt = make_receipt(
            scan,
            generation=self._generation,
            events=events,
            walk=pipeline.walk(events),
            figures=figures,
            findings=staged,
            digests=digests,
            pinned={},
            clock=self._workspace.clock,
            acknowledgement=acknowledged_in(
                store.opened().facts, self._scan, workspace=self._workspace
            ),
        )
        return members(receipt_json(receipt))

    def _report(self, stored: StoredReceipt | None, level: Level) -> AuditReport:
        return AuditReport(
            scan=self._scan,
            generation=self._generation,
            receipt_id=None if stored is None else stored.receipt_id,
            level=level,
            checks=tuple(self._checks.made),
            coverage_status=None if stored is None else stored.receipt.coverage_status,
            amendments=(*amended_words(self._amendments), *copied(stored)),
        )
