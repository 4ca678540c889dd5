"""Taking a sealed generation's bodies or records out: said first, then done, then swept.

A break anywhere leaves a lake that reads right: before the commit the rows are as they were sealed,
after it they are as the amendment says, and files that no version names are read by nobody. Doing
it again completes it.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from scan_pipeline.core.amendment import Amendment, AmendmentKind
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.stages.maintaining.unaltered import rewrite, unaltered
from scan_pipeline.stages.reconciling.evidence import moment
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import SEALED_COLUMNS
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.held_now import held_now
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.sweeping import sweep
from scan_pipeline.store.tables import Table

OF_RECORDS: Final = ("records", "second_walk", "partition_summaries", "findings")
"""Tables that go together; ledger and receipt stay."""


def table_of(store: GenerationStore, name: str) -> Table:
    """Return a generation's table by the name that receipts give it."""
    match name:
        case "pages":
            return store.pages()
        case "records":
            return store.records()
        case "second_walk":
            return store.second_walk()
        case "partition_summaries":
            return store.summaries()
        case _:
            return store.findings_table()


class Dropping:
    """Takes out what a policy no longer keeps, generation by generation.

    Args:
        scan: name of the scan.
        workspace: where.
        because: the policy in words.
    """

    def __init__(self, scan: str, *, workspace: Workspace, because: str) -> None:
        self._scan, self._workspace, self._because = scan, workspace, because

    def bodies(self, held: PinnedTableEvidence) -> int:
        """Take out the page bodies and tokens of a generation; the ledger's other columns stay.

        Args:
            held: the pages as a receipt pins them.

        Returns:
            Bytes of files that are gone; 0 where they were out already.

        Raises:
            TamperedError: the rows are not what was sealed.
        """
        store = self._workspace.store(self._scan, held.generation)
        table = store.pages()
        notes = self._workspace.amendments(self._scan)
        told = notes.of(held.generation, trust=self._workspace.trust)
        now = held_now("pages", table, held, told)
        if any(each.kind == "bodies_dropped" for each in now.amendments):
            sweep(table, only=(held.generation,))
            return 0
        unaltered("pages", table, held, told)
        before = _bytes(table, held.generation)
        rewrite(
            table,
            held.generation,
            change=without_bodies,
            announce=lambda told: self.announce(
                held.generation, "bodies_dropped", tables={"pages": told}
            ),
        )
        sweep(table, only=(held.generation,))
        return max(0, before - _bytes(table, held.generation))

    def records(self, receipt: Receipt) -> int:
        """Take out the records, findings and summaries of a receipt's generation.

        Returns:
            Bytes of files that are gone.

        Raises:
            TamperedError: the rows are not what was sealed.
        """
        store = self._workspace.store(self._scan, receipt.scan_generation)
        tables = {
            name: table_of(store, name)
            for name in OF_RECORDS
            if name in receipt.evidence and receipt.evidence[name].rows
        }
        left = {n: t for n, t in tables.items() if t.files(receipt.scan_generation)}
        notes = self._workspace.amendments(self._scan)
        told = notes.of(receipt.scan_generation, trust=self._workspace.trust)
        begun = any(each.kind == "records_dropped" for each in told)
        for name, table in left.items():
            unaltered(name, table, receipt.evidence[name], told)
        gone = 0
        if left and not begun:
            self.announce(
                receipt.scan_generation, "records_dropped", tables=dict.fromkeys(tables, None)
            )
        for table in left.values():
            gone += _bytes(table, receipt.scan_generation)
            table.rewrite(lambda _: None, generation=receipt.scan_generation)
        for table in tables.values():
            sweep(table, only=(receipt.scan_generation,))
        return gone

    def announce(
        self,
        generation: str,
        kind: AmendmentKind,
        *,
        tables: Mapping[str, PinnedTableEvidence | None],
    ) -> None:
        """Sign and file what is about to be done."""
        at = self._workspace.clock()
        amendment = Amendment(
            amendment_version=1,
            scan=self._scan,
            scan_generation=generation,
            kind=kind,
            made_at=moment(at),
            because=self._because,
            tables=tables,
        )
        signer = signing_signer(self._workspace.project, now=at, create="never")
        self._workspace.amendments(self._scan).write(amendment, signer=signer)


def without_bodies(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return events without their sealed columns."""
    columns = [
        pa.nulls(batch.num_rows, field.type) if field.name in SEALED_COLUMNS else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _bytes(table: Table, generation: str) -> int:
    return sum(file.size for file in table.files(generation))
