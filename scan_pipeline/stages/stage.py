"""Second stage: the records of the admitted pages, typed, each with its key and leaf."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.source import Removal, Source
from scan_pipeline.stages.records.admitted_pages import AdmittedPage, PageGroup, open_page
from scan_pipeline.stages.records.freed_memory import keep_freed_memory
from scan_pipeline.stages.records.inferred_schema import columns_of, named_columns, with_columns
from scan_pipeline.stages.records.keys import digests_array, key_column, key_column_hashes, key_of
from scan_pipeline.stages.records.layout import records_schema
from scan_pipeline.stages.records.model_checks import ModelChecks
from scan_pipeline.stages.records.parsing import Parsed, RecordParser
from scan_pipeline.stages.records.places import Places
from scan_pipeline.stages.records.schema import ResolvedSchema
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore

TOLD_FIELDS: Final = 100
"""Fields without a column that are told one by one, at most; each beyond them is counted."""

BATCH_BYTES: Final = 4 * 2**20
"""Body bytes that are parsed at once."""


@record
class Staged:
    """What the stage found.

    Attributes:
        records: rows written.
        nonconforming: rows the schema refuses.
        findings: one a thing noticed.
    """

    records: int
    nonconforming: int
    findings: tuple[Finding, ...]


class Staging:
    """Turns the admitted pages of one generation into records.

    Args:
        scan: the scan.
        source: knows how to take a body apart; nothing is asked of it.
        store: the generation's tables.
        schema: the resolved record schema.
        shard: the walk whose pages they are.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        source: Source,
        store: GenerationStore,
        schema: ResolvedSchema,
        shard: int = FIRST_WALK,
    ) -> None:
        self._scan, self._source, self._store = scan, source, store
        self._schema, self._shard = schema, shard
        self._checks = ModelChecks(schema)
        self._in_rounds = scan.source.checkpoint is not None
        # What a collection comes to after a round is made of the texts: they are kept.
        self._keeps_text = schema.columns is None or self._in_rounds
        self._infers = schema.columns is None
        self._items = {event.page: event for event in store.events(shard) if event.event == "page"}
        self._findings: list[Finding] = []
        self._as_json: frozenset[str] = frozenset()
        self._unknown: Counter[str] = Counter()
        self._untold = self._nonconforming = self._records = 0

    def run(self) -> Staged:
        """Write the generation's records, replacing what an earlier attempt left.

        Raises:
            TamperedError: a body is not the one that was admitted.
        """
        rows = self.rows()
        table = self._store.records(rows.schema)
        table.replace_generation(rows, generation=self._store.generation, evolve=True)
        self._findings += self._without_column()
        return Staged(
            records=self._records,
            nonconforming=self._nonconforming,
            findings=tuple(self._findings),
        )

    def rows(self) -> pa.RecordBatchReader:
        """Return the walk's records as rows, read as they are asked for; raises as `run`."""
        keep_freed_memory()
        schema = self._with_columns()
        self._as_json = schema.as_json
        layout = records_schema(columns_of(schema), in_rounds=self._in_rounds)
        batches = self._batches(RecordParser(schema), layout)
        return pa.RecordBatchReader.from_batches(layout, batches)

    def _with_columns(self) -> ResolvedSchema:
        """Return the schema with columns, inferring them from all pages where none are declared."""
        return with_columns(
            self._schema,
            pages=(self._kept(body) for _, body in self._store.bodies(self._shard)),
            named=named_columns(self._scan),
            key=self._scan.contract.key,
        )

    def _kept(self, body: bytes) -> Sequence[bytes]:
        """Return the records of a body but those that say that one was removed."""
        records = self._source.records(body)
        removals = self._source.removals(records)
        return [each for row, each in enumerate(records) if row not in removals]

    def _without_column(self) -> list[Finding]:
        """Tell the fields that have no column, each once, as far as they are few enough."""
        named = {"keep": "unknown_field", "reject": "new_field"}[self._scan.contract.new_fields]
        code = "field_without_column" if self._infers else named
        told = [
            finding(code, found=f"{name} in {rows} records")
            for name, rows in sorted(self._unknown.items())
        ]
        if self._untold:
            told.append(finding(code, found=f"{self._untold} members under further names"))
        return told

    def _count_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._unknown or len(self._unknown) < TOLD_FIELDS:
                self._unknown[name] += 1
            else:
                self._untold += 1

    def _batches(self, parser: RecordParser, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
        pages: list[AdmittedPage] = []
        size = 0
        for page, body in self._store.bodies(self._shard):
            event = self._items.get(page)
            digest = None if event is None else event.items_digest
            pages.append(open_page(page, body, source=self._source, items_digest=digest))
            size += len(body)
            if size >= BATCH_BYTES:
                yield from self._batch(pages, parser, layout)
                pages, size = [], 0
        yield from self._batch(pages, parser, layout)

    def _batch(
        self, pages: list[AdmittedPage], parser: RecordParser, layout: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        group = PageGroup(pages, source=self._source)
        self._findings += self._beside(pages)
        rows = group.rows
        if not rows:
            return
        parsed = parser.parse_lines(group.lines, rows=rows, records=lambda: group.texts)
        places, removals = Places((each.page, each.rows) for each in pages), group.removals()
        refused = self._refuse(parsed, removals, places)
        refused |= self._check(parsed.columns, refused | removals.keys(), places)
        keys = self._keys(parsed.columns, refused, group, places)
        self._findings += self._inside(group, keys, places)
        kept = range(rows) if self._keeps_text else refused
        columns = {
            **dict(zip(parsed.columns.column_names, parsed.columns.columns, strict=True)),
            "scan_generation": pa.repeat(pa.scalar(self._store.generation), rows),
            "_page": places.page_column(),
            "_position": places.position_column(),
            "_key": keys,
            "_key_hash": key_column_hashes(keys),
            "_leaf_hash": digests_array(group.leaves),
            "_conforming": _only(rows, except_for=refused),
            "_extra": _sparse(
                rows, {row: text for row, text in parsed.extra.items() if row not in removals}
            ),
            "_raw": _sparse(rows, {row: _shown(group.texts[row]) for row in kept}),
            "_removed": _sparse(rows, {row: each.reason for row, each in removals.items()}),
        }
        self._records += rows
        self._nonconforming += sum(1 for row in refused if keys[row].is_valid)
        yield from pa.table([columns[name] for name in layout.names], schema=layout).to_batches()

    def _beside(self, pages: list[AdmittedPage]) -> list[Finding]:
        """Return what the source's facts let us see in pages beside their records."""
        return [
            finding(each.code, page=page.page, expected=each.expected, found=each.found)
            for page in pages
            for each in page.beside
        ]

    def _inside(self, group: PageGroup, keys: pa.Array, places: Places) -> list[Finding]:
        """Return what the source's facts let us see inside the records."""
        return [
            finding(
                each.code,
                page=places.page(each.row),
                key=keys[each.row].as_py(),
                expected=each.expected,
                found=each.found,
            )
            for each in group.noticed()
        ]

    def _refuse(self, parsed: Parsed, removals: Mapping[int, Removal], places: Places) -> set[int]:
        """Return the rows that the schema refuses; it says nothing of what was removed."""
        refused: set[int] = set()
        for each in parsed.refused:
            if each.row in removals:
                continue
            refused.add(each.row)
            self._findings.append(
                finding(
                    "nonconforming",
                    page=places.page(each.row),
                    expected=f"{each.column or 'record'}: {each.expected}",
                    found=each.found,
                )
            )
        told = [row for row in parsed.extra if row not in removals]
        for row in told:
            self._count_unknown(json.loads(parsed.extra[row]))
        # Told once a field, and not once a record.
        return refused | {*(told if self._scan.contract.new_fields == "reject" else ())}

    def _check(self, columns: pa.Table, refused: set[int], places: Places) -> set[int]:
        """Hold the parsed rows against the model's checks; return the rows it refuses."""
        failed: set[int] = set()
        for each in self._checks.failed(columns, refused=refused):
            failed.add(each.row)
            self._findings.append(
                finding(
                    "nonconforming",
                    page=places.page(each.row),
                    expected=f"{each.column}: {each.check}",
                    found="a value that fails it",
                )
            )
        return failed

    def _keys(
        self, columns: pa.Table, refused: set[int], group: PageGroup, places: Places
    ) -> pa.Array:
        """Take keys from the columns, and from the text where a record was refused."""
        fields = self._scan.contract.key
        # A column of JSON text shows no types: `true`, `2.5` and `[2]` would pass for keys.
        typed = self._as_json.isdisjoint(fields)
        keys = key_column(columns, fields) if typed else None
        removals = group.removals()
        if keys is not None and keys.null_count == 0 and not refused and not removals:
            return keys
        known: list[str | None] = keys.to_pylist() if keys is not None else [None] * group.rows
        for row, text in enumerate(group.texts):
            removal = removals.get(row)
            if known[row] is not None and row not in refused and removal is None:
                continue
            known[row] = key_of(text, fields)
            if removal is not None and removal.key is not None:
                known[row] = removal.key_by(fields)
            if known[row] is None:
                self._findings.append(
                    finding(
                        "record_without_key",
                        page=places.page(row),
                        expected=f"{'+'.join(fields)}: text or integer",
                        found=f"none in record {places.position(row) + 1} of its page",
                    )
                )
        return pa.array(known, pa.string())


def nothing_staged(
    scan: Scan, store: GenerationStore, *, schema: ResolvedSchema, why: Finding
) -> Staged:
    """Stage no record of pages that none can be staged of; the receipt says why."""
    declared = schema.columns if why.code == "evidence_altered" else None
    layout = records_schema(declared or pa.schema([]), in_rounds=scan.source.checkpoint is not None)
    none = pa.RecordBatchReader.from_batches(layout, [])
    store.records(layout).replace_generation(none, generation=store.generation, evolve=True)
    return Staged(records=0, nonconforming=0, findings=(why,))


def _only(rows: int, *, except_for: set[int]) -> pa.Array:
    if not except_for:
        return pa.repeat(pa.scalar(value=True), rows)
    return pa.array([row not in except_for for row in range(rows)])


def _sparse(rows: int, texts: Mapping[int, str]) -> pa.Array:
    if not texts:
        return pa.nulls(rows, pa.string())
    return pa.array([texts.get(row) for row in range(rows)], pa.string())


def _shown(text: bytes) -> str:
    return text.decode(errors="replace")
