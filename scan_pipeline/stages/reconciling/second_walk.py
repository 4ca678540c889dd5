"""The second of two walks: its keys and leaf hashes staged, reconciled, held against the first."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

import polars as pl
import pyarrow as pa

from scan_pipeline.core.expectations import Expectations
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.second_walk import SecondWalk, SecondWalkFigures
from scan_pipeline.core.walk_evidence import WalkEvidence
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.reconcile import COLUMNS, MEMORY, ROW_BYTES, Reconciler
from scan_pipeline.stages.reconciling.evidence import moment, total_moved, walk_evidence
from scan_pipeline.stages.records.schema import ResolvedSchema
from scan_pipeline.stages.records.texts import RecordTexts
from scan_pipeline.stages.redactions import KnownRows, Redactions
from scan_pipeline.stages.stage import Staging
from scan_pipeline.stages.walking.walks import SECOND_WALK, second_is_wanted, two_are_declared
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore
from scan_pipeline.store.table_reader import TableReader

_HASHES: Final = ("_key_hash", "_leaf_hash")


def stage_second(
    scan: Scan, *, source: Source, store: GenerationStore, schema: ResolvedSchema
) -> None:
    """Write where each record of the second walk stood, its key, leaf hash and partition.

    Raises:
        TamperedError: a body is not the one that was admitted.
    """
    if not two_are_declared(scan):
        return
    if not second_is_wanted(scan, store.events()) or not store.events(SECOND_WALK):
        return
    staging = Staging(scan, source=source, store=store, schema=schema, shard=SECOND_WALK)
    rows, by = staging.rows(), scan.contract.partition_by
    names = dict.fromkeys(("scan_generation", *([] if by is None else [by]), *COLUMNS))
    layout = pa.schema([rows.schema.field(name) for name in names])
    kept = (batch.select([*names]) for batch in rows)
    store.second_walk(layout).replace_generation(
        pa.RecordBatchReader.from_batches(layout, kept), generation=store.generation, evolve=True
    )


def with_second(
    walk: WalkEvidence,
    scan: Scan,
    *,
    first: Sequence[Event],
    store: GenerationStore,
    workspace: Workspace,
    redactions: Redactions = Redactions(),  # noqa: B008  # a frozen value
) -> WalkEvidence:
    """Return the evidence of the first walk with that of the second, where there was one.

    Everything is computed from the tables read back.

    Args:
        walk: the first walk summed up.
        scan: the scan.
        first: events of the first walk.
        store: the generation's tables.
        workspace: opens the source, of which nothing is asked.
        redactions: records that were erased since.
    """
    if not second_is_wanted(scan, first):
        return walk
    events = store.events(SECOND_WALK)
    if not events:
        return walk
    second, pages = walk_evidence(scan, events), [e for e in events if e.event == "page"]
    figures, noticed = _figures(
        scan, second, pages, store=store, workspace=workspace, redactions=redactions
    )
    noticed = [*second.findings, *noticed]
    if events[0].facts.get("follows") != first[-1].chain.hex():
        noticed.append(finding("chain_broken", expected="the end of the first walk", found="none"))
    walked = bool(pages) or second.traversal == "finished"
    return replace(
        walk,
        findings=(*walk.findings, *map(_told_of_second, noticed)),
        chain_intact=walk.chain_intact and second.chain_intact,
        unrepeated=tuple(sorted({*walk.unrepeated, *second.unrepeated})),
        second=_account(events, pages, second, figures),
        openings_of_second=(second.before if walked else None, second.after),
    )


def differences(
    first: KnownRows, second: KnownRows, *, rows: int, memory: int = MEMORY
) -> tuple[int, int, int]:
    """Count keys that only the first walk brought, only the second, and both with other content.

    Args:
        first: the records.
        second: keys and leaf hashes of the second walk.
        rows: rows of both together.
        memory: bytes one pass may take.
    """
    passes = min(256, max(1, ceil(rows * ROW_BYTES / memory)))
    only_first = only_second = differing = 0
    for number in range(passes):
        low, high = number * 256 // passes, (number + 1) * 256 // passes
        one, other = (_hashes(walk, low, high) for walk in (first, second))
        both = one.join(other, on="_key_hash", how="inner", suffix="_second")
        only_first += one.height - both.height
        only_second += other.height - both.height
        differing += both.filter(pl.col("_leaf_hash") != pl.col("_leaf_hash_second")).height
    return only_first, only_second, differing


def _hashes(walk: KnownRows, low: int, high: int) -> pl.DataFrame:
    """Return the hashes of one range of first key-hash bytes, each key once."""
    first_byte = (
        pl.col("_key_hash").bin.slice(0, 1).bin.reinterpret(dtype=pl.UInt8, endianness="big")
    )
    frames = [
        pl.DataFrame(batch).filter(first_byte.is_between(low, high - 1))
        for batch in walk.batches(_HASHES)
    ]
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(_HASHES, pl.Binary))
    return pl.concat(frames).unique("_key_hash", keep="first")


def _figures(
    scan: Scan,
    walk: WalkEvidence,
    pages: Sequence[Event],
    *,
    store: GenerationStore,
    workspace: Workspace,
    redactions: Redactions,
) -> tuple[SecondWalkFigures | None, Sequence[Finding]]:
    """Reconcile the second walk by itself; what else is expected is held against the first."""
    table, generation = store.second_walk(), store.generation
    rows = sum(page.returned or 0 for page in pages)
    if not table.exists() or (rows and not table.files(generation)):
        return None, ()
    itself = replace(scan, contract=replace(scan.contract, expect=Expectations()))
    source = workspace.source(scan)

    def known(rows_of: TableReader, shard: int) -> KnownRows:
        by = scan.contract.partition_by
        return KnownRows(rows_of, generation, redactions=redactions, shard=shard, partition_by=by)

    theirs = known(table, SECOND_WALK)
    try:
        figures = (
            Reconciler(
                itself,
                walk=walk,
                total_moved=total_moved(scan, pages),
                rows=rows,
                batches=theirs.batches,
                text=RecordTexts(store, source, shard=SECOND_WALK).text,
                last_accepted=None,
                erased=redactions.keys,
            )
            .run()
            .figures
        )
    finally:
        source.close()
    ours = known(store.records(), FIRST_WALK)
    only_first, only_second, differing = differences(ours, theirs, rows=rows + ours.count())
    noticed = list(figures.findings)
    if figures.without_key:
        noticed.append(finding("record_without_key", found=f"{figures.without_key:,} records"))
    told = SecondWalkFigures(
        unique_ids_observed=figures.unique_keys,
        leaves=figures.leaves,
        partitions=figures.partitions,
        root=figures.root,
        only_in_first=only_first,
        only_in_second=only_second,
        differing=differing,
    )
    return told, noticed


def _account(
    events: Sequence[Event],
    pages: Sequence[Event],
    walk: WalkEvidence,
    figures: SecondWalkFigures | None,
) -> SecondWalk:
    return SecondWalk(
        cursor_chain_digest=f"sha256:{events[-1].chain.hex()}",
        observation_started_at=moment(events[0].received_at),
        last_page_at=moment(pages[-1].received_at) if pages else None,
        pages_observed=len(pages),
        records_observed=sum(page.returned or 0 for page in pages),
        bytes_observed=sum(page.body_bytes or 0 for page in pages),
        attempts=sum(page.attempts or 0 for page in pages),
        refused_responses=sum(1 for event in events if event.event == "refused"),
        traversal=walk.traversal,
        stop_reason=walk.stop_reason,
        limits_hit=walk.limits_hit,
        end_signal=walk.end_signal,
        figures=figures,
    )


def _told_of_second(noticed: Finding) -> Finding:
    """Say of a finding that its page is one of the second walk."""
    found = "in the second walk" if noticed.found is None else f"{noticed.found} (second walk)"
    return replace(noticed, found=found)
