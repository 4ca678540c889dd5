"""One generation of one scan: its tables, and what they say of its life."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.reconciliation import PartitionSummary
from scan_pipeline.core.vocabulary import Severity
from scan_pipeline.store.admission import Admission, Committed
from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.derived import DerivedTable
from scan_pipeline.store.events import OPAQUE_COLUMNS, PAGES, Event, read_bodies, read_events
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.receipts import ReceiptStore
from scan_pipeline.store.sealing import Sealer
from scan_pipeline.store.tables import Table, open_table

FINDINGS: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("page", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("expected", pa.string()),
        pa.field("found", pa.string()),
        pa.field("cause", pa.string(), nullable=False),
        pa.field("remedy", pa.string(), nullable=False),
    ]
)
"""One row a finding; `stage` is the stage that noticed it, `number` its order there."""

SUMMARIES: Final = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("partition", pa.string()),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("unique_keys", pa.int64(), nullable=False),
        pa.field("duplicates", pa.int64(), nullable=False),
        pa.field("first_key", pa.string(), nullable=False),
        pa.field("last_key", pa.string(), nullable=False),
        pa.field("leaf_count", pa.int64(), nullable=False),
        pa.field("root", pa.string()),
    ]
)
"""One row a partition that holds records; `partition` as text (an integer by its digits), `root` in
hex."""

FIRST_WALK: Final = 0
"""Shard of the walk whose records are staged."""

GENERATION_FORMAT: Final = "%Y%m%dT%H%M%SZ"


def new_generation(at: datetime) -> str:
    """Return the name of a generation begun at a moment, e.g. `20261130T020000Z`."""
    return at.astimezone(UTC).strftime(GENERATION_FORMAT)


def next_attempt(generation: str) -> str:
    """Return the name of the attempt after this one: `….2` after the first, then `….3`."""
    first, _, number = generation.partition(".")
    return f"{first}.{int(number or 1) + 1}"


class GenerationStore:
    """Reads and writes one generation.

    Args:
        lake: where the tables lie.
        scan: name of the scan.
        generation: name of the generation.
        new_sealer: makes a sealer; one is needed for each thread.
        evidence: generation whose pages are the evidence; another than its own after a restage.
    """

    def __init__(
        self,
        lake: Lake,
        *,
        scan: str,
        generation: str,
        new_sealer: Callable[[], Sealer],
        evidence: str | None = None,
    ) -> None:
        self.lake, self.scan, self.generation = lake, scan, generation
        self.evidence = evidence or generation
        self._new_sealer = new_sealer
        self.receipts = ReceiptStore(lake, scan)

    def sealer(self) -> Sealer:
        """Return a sealer for the calling thread."""
        return self._new_sealer()

    def pages(self) -> Table:
        """Return the table of events."""
        layout = Layout(opaque=OPAQUE_COLUMNS)
        return open_table(self.lake, "evidence", self.scan, "pages", PAGES, layout=layout)

    def records(self, schema: pa.Schema | None = None) -> DerivedTable:
        """Return the table of records; its schema is needed for writing alone.

        Columns may differ from generation to generation; each is read with its own. They are
        packed for speed: written once, they are read to be reconciled, published and analysed.
        """
        layout = Layout(opaque=("_key_hash", "_leaf_hash"), compression="lz4")
        return self._derived("records", schema, layout)

    def findings_table(self) -> DerivedTable:
        """Return the table of findings."""
        return self._derived("findings", FINDINGS)

    def summaries(self) -> DerivedTable:
        """Return the table of partition summaries."""
        return self._derived("partition_summaries", SUMMARIES)

    def is_sealed(self) -> bool:
        """Say whether the generation has its receipt."""
        return self.receipts.has(self.generation)

    def second_walk(self, schema: pa.Schema | None = None) -> DerivedTable:
        """Return the table of the second walk's keys and leaf hashes; see `records`."""
        layout = Layout(opaque=("_key_hash", "_leaf_hash"), compression="lz4")
        return self._derived("second_walk", schema, layout)

    def events(self, shard: int = FIRST_WALK) -> list[Event]:
        """Return the events of a walk in order, without bodies."""
        return read_events(self.pages(), self.evidence, shard=shard)

    def opened(self) -> Event:
        """Return the generation's own open event; after a restage the evidence has another.

        Raises:
            TamperedError: there is none.
        """
        events = read_events(self.pages(), self.generation, shard=FIRST_WALK)
        if not events or events[0].event != "open":
            raise TamperedError("pages", f"{self.scan} {self.generation} has no open event")
        return events[0]

    def bodies(
        self, shard: int = FIRST_WALK, *, past_erased: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (page, body) of a walk, page by page in order; see `read_bodies`."""
        return read_bodies(
            self.pages(),
            scan=self.scan,
            generation=self.evidence,
            shard=shard,
            sealer=self.sealer(),
            past_erased=past_erased,
        )

    def admission(self, *, shard: int) -> Admission:
        """Return the fence for writing events."""
        return Admission(self.pages(), scan=self.scan, generation=self.generation, shard=shard)

    def write_staged_findings(self, findings: Sequence[Finding]) -> None:
        """Replace the generation's findings by those of the records stage, if these are new.

        Where they are known, what later stages found beside them stays.
        """
        self.findings_table().replace_unless(
            self._as_findings([("records", each) for each in findings]),
            generation=self.generation,
            there=lambda: self.read_findings(stage="records") == list(findings),
        )

    def write_findings(self, findings: Sequence[tuple[str, Finding]]) -> None:
        """Replace the generation's findings; each is given with its stage."""
        self.findings_table().replace_generation(
            self._as_findings(findings), generation=self.generation
        )

    def read_findings(self, *, stage: str | None = None) -> list[Finding]:
        """Return the generation's findings in order, of one stage or of all."""
        rows = self._findings_rows()
        return [_finding(row) for row in rows if stage is None or row["stage"] == stage]

    def findings_as_written(self) -> list[dict[str, Any]]:
        """Return the generation's findings in order, with the words they were written with."""
        return [{name: row[name] for name in FINDINGS.names[3:]} for row in self._findings_rows()]

    def write_summaries(self, partitions: Sequence[PartitionSummary]) -> None:
        """Replace the generation's partition summaries."""
        rows = pa.Table.from_pylist(self.as_summaries(partitions), schema=SUMMARIES)
        self.summaries().replace_generation(rows, generation=self.generation)

    def read_summaries(self) -> list[dict[str, Any]]:
        """Return the stored partition summaries as rows, in order of partition."""
        rows = self.summaries().read(self.generation).to_pylist()
        return sorted(rows, key=_by_partition)

    def as_summaries(self, partitions: Sequence[PartitionSummary]) -> list[dict[str, Any]]:
        """Return partition summaries as rows, in order of partition."""
        rows = [
            {
                "scan_generation": self.generation,
                **each.__dict__,
                "partition": None if each.partition is None else str(each.partition),
            }
            for each in partitions
        ]
        return sorted(rows, key=_by_partition)

    def _derived(
        self,
        name: str,
        schema: pa.Schema | None,
        layout: Layout = Layout(),  # noqa: B008  # a frozen value
    ) -> DerivedTable:
        return DerivedTable(
            self.lake.table_uri("staging", self.scan, name),
            schema,
            location=f"staging/{self.scan}/{name}",
            layout=layout,
            sealed=self.is_sealed,
        )

    def _findings_rows(self) -> list[dict[str, Any]]:
        table = self.findings_table()
        if not table.exists():
            return []
        return table.read(self.generation).sort_by("number").to_pylist()

    def _as_findings(self, findings: Sequence[tuple[str, Finding]]) -> pa.Table:
        rows = [
            {
                "scan_generation": self.generation,
                "stage": stage,
                "number": number,
                **each.as_json(),
            }
            for number, (stage, each) in enumerate(findings)
        ]
        return pa.Table.from_pylist(rows, schema=FINDINGS)


def committed(event: Event | None) -> Committed | None:
    """Return what the fence must find as the last row of a walk."""
    if event is None:
        return None
    return Committed(
        seq=event.seq,
        event=event.event,
        cursor_out_digest=event.cursor_out_digest,
        chain=event.chain,
    )


def _finding(row: dict[str, object]) -> Finding:
    severity: Severity = row["severity"]  # pyright: ignore[reportAssignmentType]
    return Finding(
        code=str(row["code"]),
        severity=severity,
        page=row["page"],  # pyright: ignore[reportArgumentType]
        key=row["key"],  # pyright: ignore[reportArgumentType]
        expected=row["expected"],  # pyright: ignore[reportArgumentType]
        found=row["found"],  # pyright: ignore[reportArgumentType]
    )


def _by_partition(row: dict[str, Any]) -> tuple[bool, str]:
    return row["partition"] is not None, row["partition"] or ""
