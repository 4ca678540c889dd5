"""Second stage: the records of the admitted pages, typed, each with its key and leaf."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl
import pyarrow as pa
from pandera.api.polars.container import DataFrameSchema
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from scan_pipeline.core.canonical import items_digest, leaf_hashes
from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import ContractError, ProtocolError, TamperedError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.value import record
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.parsing import Parsed, RecordParser, infer_columns
from scan_pipeline.stages.record_keys import key_column, key_column_hashes, key_of
from scan_pipeline.stages.record_schema import ResolvedSchema
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore

BATCH_BYTES: Final = 16 * 2**20
"""Body bytes that are parsed at once."""

OURS: Final = pa.schema(
    [
        pa.field("_page", pa.int64()),
        pa.field("_position", pa.int32()),
        pa.field("_key", pa.string()),
        pa.field("_key_hash", pa.binary()),
        pa.field("_leaf_hash", pa.binary()),
        pa.field("_conforming", pa.bool_()),
        pa.field("_extra", pa.string()),
        pa.field("_raw", pa.string()),
    ]
)
"""What stands beside a record's own columns.

`_page` from 1 and `_position` from 0 say where it came; `_key` is its canonical key, None where it
has none; `_extra` holds unknown fields and `_raw` the whole text of a record that does not conform,
as JSON.
"""


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


def records_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of the records table: the partition, the record's columns, then ours."""
    generation = pa.field("scan_generation", pa.string(), nullable=False)
    own = [pa.field(each.name, each.type) for each in columns]
    return pa.schema([generation, *own, *OURS])


class Staging:
    """Turns the admitted pages of one generation into records.

    Args:
        scan: the scan.
        source: knows how to take a body apart; nothing is asked of it.
        store: the generation's tables.
        schema: the resolved record schema.
    """

    def __init__(
        self, scan: Scan, *, source: Source, store: GenerationStore, schema: ResolvedSchema
    ) -> None:
        self._scan, self._source, self._store = scan, source, store
        self._schema = schema
        self._model = _model(schema)
        self._items = {event.page: event for event in store.events() if event.event == "page"}
        self._findings: list[Finding] = []
        self._unknown: Counter[str] = Counter()
        self._nonconforming = self._records = 0

    def run(self) -> Staged:
        """Write the generation's records, replacing what an earlier attempt left.

        Raises:
            TamperedError: a body is not the one that was admitted.
        """
        schema = self._with_columns()
        parser = RecordParser(schema)
        layout = records_schema(_columns(schema))
        batches = self._batches(parser, layout)
        table = self._store.records(layout)
        table.replace_generation(
            pa.RecordBatchReader.from_batches(layout, batches),
            generation=self._store.generation,
            evolve=True,
        )
        for name, rows in sorted(self._unknown.items()):
            self._findings.append(finding("unknown_field", found=f"{name} in {rows} records"))
        return Staged(
            records=self._records,
            nonconforming=self._nonconforming,
            findings=tuple(self._findings),
        )

    def _with_columns(self) -> ResolvedSchema:
        """Return the schema with columns, inferring them from all pages where none are declared."""
        if self._schema.columns is not None:
            return self._schema
        columns = infer_columns(self._source.records(body) for _, body in self._store.bodies())
        as_json = frozenset(
            field.name for field in columns if (field.metadata or {}).get(b"as") == b"json"
        )
        unseen = [name for name in self._named() if name not in columns.names]
        plain = pa.schema(
            [
                *(pa.field(field.name, field.type) for field in columns),
                *(pa.field(name, pa.string()) for name in unseen),
            ]
        )
        return ResolvedSchema(
            columns=plain,
            optional=frozenset(plain.names),
            as_json=as_json,
            model=None,
            fingerprint=self._schema.fingerprint,
        )

    def _named(self) -> list[str]:
        """Return the fields the contract speaks of, which are columns whether a record has them."""
        contract, bound = self._scan.contract, self._scan.source.high_water_mark
        named = [contract.partition_by, *(contract.expect.every_record or {})]
        named.append(None if bound is None else bound.field)
        return [name for name in dict.fromkeys(named) if name is not None]

    def _batches(self, parser: RecordParser, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
        group: list[tuple[int, Sequence[bytes]]] = []
        size = 0
        for page, body in self._store.bodies():
            group.append((page, self._admitted(page, body)))
            size += len(body)
            if size >= BATCH_BYTES:
                yield from self._batch(group, parser, layout)
                group, size = [], 0
        if group:
            yield from self._batch(group, parser, layout)

    def _admitted(self, page: int, body: bytes) -> Sequence[bytes]:
        try:
            return self._source.records(body)
        except ProtocolError as error:
            raise TamperedError("body", f"page {page} is no longer a page: {error}") from error

    def _batch(
        self,
        group: list[tuple[int, Sequence[bytes]]],
        parser: RecordParser,
        layout: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        texts = [text for _, records in group for text in records]
        if not texts:
            return
        pages = [page for page, records in group for _ in records]
        positions = [n for _, records in group for n in range(len(records))]
        leaves = leaf_hashes(texts)
        self._check_items(group, leaves)
        parsed = parser.parse(texts)
        refused = self._refuse(parsed, pages)
        refused |= self._validate(parsed.columns, refused, pages)
        keys = self._keys(parsed, refused, texts, list(zip(pages, positions, strict=True)))
        hashes = key_column_hashes(keys)
        conforming = [row not in refused for row in range(len(texts))]
        columns = {
            **dict(zip(parsed.columns.column_names, parsed.columns.columns, strict=True)),
            "scan_generation": pa.repeat(pa.scalar(self._store.generation), len(texts)),
            "_page": pages,
            "_position": pa.array(positions, pa.int32()),
            "_key": keys,
            "_key_hash": hashes,
            "_leaf_hash": leaves,
            "_conforming": conforming,
            "_extra": [parsed.extra.get(row) for row in range(len(texts))]
            if parsed.extra
            else pa.nulls(len(texts), pa.string()),
            "_raw": [_shown(texts[row]) if row in refused else None for row in range(len(texts))]
            if refused
            else pa.nulls(len(texts), pa.string()),
        }
        self._records += len(texts)
        self._nonconforming += sum(1 for row in refused if keys[row].is_valid)
        yield from (
            pa.table([columns[name] for name in layout.names], schema=layout)
            .combine_chunks()
            .to_batches()
        )

    def _check_items(self, group: list[tuple[int, Sequence[bytes]]], leaves: list[bytes]) -> None:
        """Hold the leaves against the digests that were admitted with the pages."""
        start = 0
        for page, records in group:
            stop = start + len(records)
            admitted: Event | None = self._items.get(page)
            if admitted is None or items_digest(leaves[start:stop]) != admitted.items_digest:
                raise TamperedError(
                    "body", f"the records of page {page} are not those that were admitted"
                )
            start = stop

    def _refuse(self, parsed: Parsed, pages: list[int]) -> set[int]:
        refused: set[int] = set()
        for each in parsed.refused:
            refused.add(each.row)
            self._findings.append(
                finding(
                    "nonconforming",
                    page=pages[each.row],
                    expected=f"{each.column or 'record'}: {each.expected}",
                    found=each.found,
                )
            )
        for text in parsed.extra.values():
            self._unknown.update(json.loads(text).keys())
        return refused

    def _validate(self, columns: pa.Table, refused: set[int], pages: list[int]) -> set[int]:
        """Hold the parsed rows against the model's checks; return the rows it refuses.

        The depth is set here, since an environment variable may lower it, and the frame is eager,
        since a lazy one is checked for its columns only (pandera 0.35).
        """
        if self._model is None or not columns.num_rows:
            return set()
        frame = pl.DataFrame(columns)
        if refused:
            frame = frame.with_row_index("_row").filter(~pl.col("_row").is_in(list(refused)))
            rows, frame = frame["_row"].to_list(), frame.drop("_row")
        else:
            rows = None
        failed: set[int] = set()
        with config_context(
            validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA
        ):
            try:
                self._model.validate(frame, lazy=True)
            except SchemaErrors as errors:
                for case in errors.failure_cases.iter_rows(named=True):
                    row = case["index"]
                    if row is None:
                        raise ContractError(
                            f"record_schema refuses a frame as a whole ({case['check']}); expected "
                            "checks that name rows: uniqueness is held against all records, by key"
                        ) from errors
                    row = row if rows is None else rows[row]
                    failed.add(row)
                    self._findings.append(
                        finding(
                            "nonconforming",
                            page=pages[row],
                            expected=f"{case['column']}: {case['check']}",
                            found="a value that fails it",
                        )
                    )
        return failed

    def _keys(
        self,
        parsed: Parsed,
        refused: set[int],
        texts: list[bytes],
        places: list[tuple[int, int]],
    ) -> pa.Array:
        keys = key_column(parsed.columns, self._scan.contract.key) if not refused else None
        if keys is not None and keys.null_count == 0:
            return keys
        found: list[str | None] = []
        for text, (page, position) in zip(texts, places, strict=True):
            key = key_of(text, self._scan.contract.key)
            if key is None:
                self._findings.append(
                    finding(
                        "record_without_key",
                        page=page,
                        expected=f"{'+'.join(self._scan.contract.key)}: text or integer",
                        found=f"none in record {position + 1} of its page",
                    )
                )
            found.append(key)
        return pa.array(found, pa.string())


def _model(schema: ResolvedSchema) -> DataFrameSchema | None:
    """Return the model's schema; a column that a record may lack is null where it does."""
    if schema.model is None:
        return None
    lacking = {name: {"nullable": True} for name in schema.optional}
    return schema.model.to_schema().update_columns(lacking)


def _columns(schema: ResolvedSchema) -> pa.Schema:
    if schema.columns is None:
        raise ValueError("columns are inferred before the layout is made")
    return schema.columns


def _shown(text: bytes) -> str:
    return text.decode(errors="replace")
