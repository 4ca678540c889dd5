"""Sealed generations written again without a record: said first, then done, then swept."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import polars as pl

from scan_pipeline.core.amendment import (
    Amendment,
    ErasedPage,
    RedactedRecord,
    ReplacedReceipt,
)
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.core.receipt_statement import parse_statement, receipt_json, statement_bytes
from scan_pipeline.core.value import adapter
from scan_pipeline.stages.erasing import generation as of
from scan_pipeline.stages.erasing.naming import Named
from scan_pipeline.stages.maintaining.dropping import table_of
from scan_pipeline.stages.maintaining.unaltered import Change, rewrite, unaltered
from scan_pipeline.stages.reconcile import partition_by_field
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.receipts import StoredReceipt
from scan_pipeline.store.sweeping import sweep
from scan_pipeline.store.trust import receipt_id, sign

TABLE_OF_SHARD = {FIRST_WALK: "records", SECOND_WALK: "second_walk"}


class Rewriting:
    """Takes a record out of sealed generations, table by table.

    Args:
        scan: name of the scan.
        named: the record.
        because: why; kept in every amendment.
        by: who asked.
        workspace: where.
    """

    def __init__(
        self, scan: str, named: Named, *, because: str, by: str | None, workspace: Workspace
    ) -> None:
        self._scan, self._named, self._workspace = scan, named, workspace
        self._because, self._by = because, by

    def staged(self, receipt: Receipt) -> tuple[RedactedRecord, ...]:
        """Write a generation's rows again without the record; return what stays of it.

        Raises:
            TamperedError: the rows are not what was sealed.
        """
        generation, named = receipt.scan_generation, self._named
        store = self._workspace.store(self._scan, generation)
        contract = contract_of(store.opened()).contract
        by = contract.partition_by
        found = of.records_named(store, named, partition_by=by, key=contract.key)
        redacted = self._known(generation, found)
        for shard, name in TABLE_OF_SHARD.items():
            if any(each.shard == shard for each in found):
                change = partial(of.without_record, named=named)
                self._rewrite(store, receipt, name, change, redacted=redacted)
        if of.bounds_named(store, named):
            bounds = self._bounds(store, by)
            change = partial(of.without_bounds, named=named, bounds=bounds)
            self._rewrite(store, receipt, "partition_summaries", change, redacted=redacted)
        findings = store.findings_table()
        if findings.exists() and any(
            of.mentions(batch, named) for batch in findings.batches(generation)
        ):
            change = partial(of.without_mentions, named=named)
            self._rewrite(store, receipt, "findings", change, redacted=redacted)
        for name in receipt.evidence.keys() - {"pages"}:
            sweep(table_of(store, name), only=(generation,))
        return redacted

    def bodies(self, receipt: Receipt, users: Iterable[Receipt]) -> tuple[set[ErasedPage], bool]:
        """Take out the bodies of the pages that held or name the record, and all tokens.

        Args:
            receipt: of the generation that walked.
            users: receipts whose records came of these pages.

        Returns:
            Pages whose bodies went, and whether all bodies could be looked into.

        Raises:
            TamperedError: the rows are not what was sealed.
        """
        generation = receipt.scan_generation
        store = self._workspace.store(self._scan, generation)
        named, whole = of.pages_named(store, self._named)
        places = [p for user in users for p in self._known(user.scan_generation, ())]
        pages = named | {ErasedPage(shard=each.shard, page=each.page) for each in places}
        gone = of.pages_without_body(store)
        if pages - gone:
            told = sorted(pages, key=lambda each: (each.shard, each.page))
            redacted = self._known(generation, ())
            change = partial(of.without_pages, pages=told)
            self._rewrite(store, receipt, "pages", change, redacted=redacted, pages=told)
        sweep(store.pages(), only=(generation,))
        return pages, whole

    def receipt(self, stored: StoredReceipt) -> str | None:
        """Put a redacted copy in the place of a receipt that names the key; return its id.

        Both the table and the file are looked at: a break may have come between them.
        """
        receipts, trust = self._workspace.receipts(self._scan), self._workspace.trust
        generation = stored.receipt.scan_generation
        filed = receipts.read(generation, trust=trust)
        naming = [each for each in (stored, filed) if self._names(each.receipt)]
        if not naming:
            sweep(receipts.table(), only=(generation,))
            return None
        old = naming[0]
        plain = {
            **self._named.without_in(receipt_json(old.receipt)),
            "redacts": old.receipt.redacts or old.receipt_id,
        }
        receipt: Receipt = adapter(Receipt).validate_python(plain, strict=False)
        payload = statement_bytes(receipt)
        parse_statement(payload)
        new = receipt_id(payload)
        self._announce(
            generation,
            tables={},
            receipts=(ReplacedReceipt(generation=generation, old=old.receipt_id, new=new),),
        )
        signer = signing_signer(
            self._workspace.project, now=self._workspace.clock(), create="never"
        )
        receipts.replace(receipt, envelope=sign(payload, signer=signer), receipt_id=new)
        sweep(receipts.table(), only=(generation,))
        return new

    def is_redacted(self, receipt: Receipt) -> bool:
        """Say whether something was taken out of a generation's records, or its receipt was."""
        return bool(self._known(receipt.scan_generation, ())) or receipt.redacts is not None

    def _names(self, receipt: Receipt) -> bool:
        told = receipt_json(receipt)
        return self._named.without_in(told) != told

    def _known(
        self, generation: str, found: Sequence[RedactedRecord]
    ) -> tuple[RedactedRecord, ...]:
        """Return what stays of the record: as found now, and as said before."""
        notes = self._workspace.amendments(self._scan)
        said = [
            each
            for amendment in notes.of(generation, trust=self._workspace.trust)
            for each in amendment.redacted
            if each.key_hash == self._named.hash.hex()
        ]
        by_place = {(each.shard, each.page, each.position): each for each in (*said, *found)}
        return tuple(by_place[place] for place in sorted(by_place))

    def _bounds(
        self, store: GenerationStore, by: str | None
    ) -> Mapping[str | None, tuple[str, str]]:
        records = store.records()
        partition = pl.col("_key_hash").bin.slice(0, 1).bin.encode("hex")
        if by is not None and records.files(store.generation):
            kind = pl.DataFrame(records.written_schema(store.generation).empty_table())[by].dtype
            partition = partition_by_field(by, kind).cast(pl.String)
        return of.bounds_without(records, store.generation, self._named, partition=partition)

    def _rewrite(
        self,
        store: GenerationStore,
        receipt: Receipt,
        name: str,
        change: Change,
        *,
        redacted: Sequence[RedactedRecord],
        pages: Sequence[ErasedPage] = (),
    ) -> None:
        table, held = table_of(store, name), receipt.evidence[name]
        notes = self._workspace.amendments(self._scan)
        unaltered(name, table, held, notes.of(held.generation, trust=self._workspace.trust))
        rewrite(
            table,
            held.generation,
            change=change,
            announce=lambda told: self._announce(
                held.generation, tables={name: told}, redacted=redacted, pages=pages
            ),
        )

    def _announce(
        self,
        generation: str,
        *,
        tables: Mapping[str, PinnedTableEvidence | None],
        redacted: Sequence[RedactedRecord] = (),
        pages: Sequence[ErasedPage] = (),
        receipts: Sequence[ReplacedReceipt] = (),
    ) -> None:
        at = self._workspace.clock()
        amendment = Amendment(
            amendment_version=1,
            scan=self._scan,
            scan_generation=generation,
            kind="records_redacted",
            made_at=moment(at),
            because=self._because,
            by=self._by,
            tables=tables,
            redacted=tuple(redacted),
            pages=tuple(pages),
            receipts=tuple(receipts),
        )
        signer = signing_signer(self._workspace.project, now=at, create="never")
        self._workspace.amendments(self._scan).write(amendment, signer=signer)
