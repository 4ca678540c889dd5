"""What a scan of rounds comes to, opened for reading by what its rounds prove."""

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from scan_pipeline.core.contract_digests import scope_digest
from scan_pipeline.core.coverage import satisfies
from scan_pipeline.core.errors import GateClosedError, TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.rounds import Worth, current_statement, worth_of
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.redactions import Redactions
from scan_pipeline.stages.shelf import Shelf
from scan_pipeline.stages.standing import Standing, observed_at, what_became
from scan_pipeline.stages.syncing.current import current_rows, named_receipts
from scan_pipeline.stages.syncing.lineage import newest_lineage
from scan_pipeline.stages.syncing.pins import CurrentPins
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.published_table import PublishedTable, open_published
from scan_pipeline.store.receipts import StoredReceipt, Untrusted
from scan_pipeline.store.row_comparison import RowComparison


@record
class CurrentCollection:
    """What the rounds of a scan come to; made by `open_current` alone.

    Attributes:
        table: where the rows lie.
        at: the version that was held against its pin; once it is replaced, its rows are gone.
        rounds: the receipts they rest on, the baseline's first.
        standing: how old the last of them is, and what became of newer ones.
        redacted: what was erased of them since, in words; None for nothing.
    """

    table: PublishedTable
    at: DeltaTable
    rounds: tuple[StoredReceipt, ...]
    standing: Standing
    redacted: str | None

    @property
    def receipt(self) -> Receipt:
        """The receipt of the last round."""
        return self.rounds[-1].receipt

    @property
    def receipt_id(self) -> str:
        """Its id."""
        return self.rounds[-1].receipt_id

    @property
    def receipt_ids(self) -> tuple[str, ...]:
        """Ids of all receipts that the rows rest on, the baseline's first."""
        return tuple(each.receipt_id for each in self.rounds)

    @property
    def worth(self) -> Worth:
        """What the rounds are worth together."""
        return worth_of([each.receipt for each in self.rounds])

    def arrow(self) -> pa.Table:
        """Return one row a record; on each its worth where that is less than verified."""
        return self.table.read(self.receipt.scan_generation, at=self.at)

    def batches(self, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the same rows in batches, of some columns or of all."""
        yield from self.table.batches(self.receipt.scan_generation, columns=columns, at=self.at)

    def frame(self) -> pl.LazyFrame:
        """Return the same rows as a LazyFrame."""
        return pl.DataFrame(self.arrow()).lazy()

    def word(self) -> str:
        """Return what may be said of it, as one sentence."""
        batches = self.batches(columns=("_conforming",))
        records = sum(batch.num_rows for batch in batches)
        said = current_statement([each.receipt for each in self.rounds], records=records)
        return said if self.redacted is None else f"{said[:-1]}; {self.redacted}."


def open_current(
    scan: Scan,
    *,
    workspace: Workspace,
    accept: ConclusionScope | None = None,
    contents: bool = False,
) -> CurrentCollection:
    """Open what the newest rounds of a scan that hold together come to.

    Args:
        scan: the contract the reader means.
        workspace: where the tables lie.
        accept: the least scope the reader is content with; None for rounds that are all verified.
        contents: whether the files are hashed, and the rows made again from the sealed rounds and
            compared.

    Raises:
        GateClosedError: no rounds hold together, or they do not say as much.
        TamperedError: the rows rest on other receipts than they may, or are others, or no signed
            pin names the files.
    """
    lineage = newest_lineage(scan, workspace=workspace)
    if lineage is None:
        raise GateClosedError(
            scan=scan.name, generation=None, reason="no baseline is accepted; expected one: run it"
        )
    table = open_published(workspace.lake, scan.name)
    at = table.open_if_there()
    held = named_receipts(at)
    if at is None or not held:
        reason = "its rounds are not laid together yet; expected a table of them: run it again"
        raise GateClosedError(scan=scan.name, generation=None, reason=reason)
    if held != lineage.receipt_ids[: len(held)]:
        raise TamperedError(
            "published",
            f"the table of {scan.name} rests on receipts that no longer hold together; expected "
            f"those of its rounds. Run it again: it is made anew",
        )
    rounds = lineage.rounds[: len(held)]
    _check_worth(worth_of([each.receipt for each in rounds]), rounds[-1].receipt, accept=accept)
    pins = CurrentPins(scan.name, workspace=workspace)
    pins.check(table, at=at, rests_on=held, contents=contents)
    opened = CurrentCollection(
        table=table,
        at=at,
        rounds=rounds,
        standing=_standing(scan, rounds[-1], workspace),
        redacted=_redacted(rounds, workspace),
    )
    if contents and not is_as_sealed(scan, opened, workspace=workspace):
        raise TamperedError("published", f"the table of {scan.name} has other rows than its rounds")
    return opened


def is_as_sealed(scan: Scan, opened: CurrentCollection, *, workspace: Workspace) -> bool:
    """Say whether a current table holds what its sealed rounds come to, made again.

    Raises:
        TamperedError: the records of a round are not those that were sealed.
    """
    generation = opened.receipt.scan_generation
    rows = current_rows(scan, opened.rounds, workspace=workspace)
    # Under another record schema the texts are the same, and no column else need be.
    same = opened.table.written_schema(generation, at=opened.at).equals(rows.schema)
    names = rows.schema.names if same else ["_key", "_raw"]
    comparison = RowComparison(opened.batches(columns=names))
    for batch in rows:
        comparison.take(batch.select(names))
    return comparison.equal()


def _check_worth(worth: Worth, tip: Receipt, *, accept: ConclusionScope | None) -> None:
    if accept is None and worth.is_proven:
        return
    if accept is not None and satisfies(
        worth.status, worth.scope, wish_status="unknown", wish_scope=accept
    ):
        return
    wanted = f"at least {accept}" if accept else "every round verified"
    raise GateClosedError(
        scan=tip.scan,
        generation=tip.scan_generation,
        reason=f"its weakest round is {worth.status}, {worth.scope}; expected {wanted}",
    )


def _redacted(rounds: Sequence[StoredReceipt], workspace: Workspace) -> str | None:
    """Say what was erased of rounds since they were sealed."""
    notes = workspace.amendments(rounds[0].receipt.scan)
    told = [
        each
        for stored in rounds
        for each in notes.of(stored.receipt.scan_generation, trust=workspace.trust)
    ]
    found = Redactions.of(told)
    return found.word() if found else None


def _standing(scan: Scan, tip: StoredReceipt, workspace: Workspace) -> Standing:
    """Say how old the last round is, and what became of newer ones."""
    newer, scope = list[tuple[str, str]](), scope_digest(scan)
    for each in Shelf(scan.name, workspace=workspace).newest_first():
        if isinstance(each, Untrusted):
            newer.append((each.generation, f"has no receipt: {each.reason}"))
        elif each.receipt_id == tip.receipt_id:
            break
        elif each.receipt.scope_digest == scope:
            newer.append((each.receipt.scan_generation, what_became(each.receipt)))
    return Standing(
        opened=tip.receipt.scan_generation,
        read_at=observed_at(tip.receipt),
        now=workspace.clock(),
        newer=tuple(reversed(newer)),
        schedule=scan.schedule,
    )
