"""The `current` table of a scan of rounds: what its source holds, as far as the rounds go.

It is the scan's published table, so that whoever opens it without knowing of rounds counts right.
Each version names, in its commit, every receipt that its rows rest on, and a signed pin names its
files and the same receipts (`pins`): one that none holds for is spoilt. A version is one commit: a
break leaves the one before, which names fewer receipts, and the rounds that it lacks are laid over
it the next time; a round that it names is never laid over it again. What rests on a receipt that no
longer stands is made anew, from the baseline on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from scan_pipeline.core.column_names import GENERATION as GENERATED
from scan_pipeline.core.errors import TamperedError, WriterConflictError
from scan_pipeline.core.rounds import worth_of
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.records.inferred_schema import columns_of, named_columns, with_columns
from scan_pipeline.stages.records.model_checks import ModelChecks
from scan_pipeline.stages.records.parsing import RecordParser
from scan_pipeline.stages.records.schema import ResolvedSchema, resolve_schema
from scan_pipeline.stages.syncing.lineage import newest_lineage
from scan_pipeline.stages.syncing.pins import CurrentPins
from scan_pipeline.stages.syncing.state import Before, State
from scan_pipeline.stages.unlock import LABELS
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.published_table import (
    GENERATION,
    RECEIPT_ID,
    RESTS_ON,
    open_published,
)
from scan_pipeline.store.receipts import StoredReceipt

UNDER: Final = "scan_pipeline.typed_under"
"""Member of a commit's metadata: what the columns were typed under."""

ATTEMPTS: Final = 3
"""How often rounds are laid together before another process that does so too is an error."""

PIECE: Final = 16_384
"""Records that are parsed at once."""

_OURS: Final = (
    pa.field("_key", pa.string()),
    pa.field("_conforming", pa.bool_()),
    pa.field("_extra", pa.string()),
    pa.field("_raw", pa.string()),
)
"""Beside a record's own columns: its key, what no column holds, and its whole text, of which the
next version is made."""


@record
class Laid:
    """Rounds that a table has laid together already.

    Attributes:
        rounds: how many, from the baseline on.
        before: what they came to.
        under: what its columns were typed under; see `_typed_under`.
    """

    rounds: int
    before: Before
    under: str | None


def publish_current(scan: Scan, *, workspace: Workspace, anew: bool = False) -> str | None:
    """Let the current table hold what the newest rounds that hold together come to.

    Args:
        scan: the scan.
        workspace: where.
        anew: whether it is made from the baseline on, whatever is there.

    Returns:
        The generation of the last of them, where the table was written; None where it was not.

    Raises:
        TamperedError: the records of a round are not those that were sealed.
        ContractError: the record schema cannot be resolved.
        ConfigurationError: there is no key to sign with.
        WriterConflictError: other processes lay rounds together again and again.
    """
    for _ in range(ATTEMPTS):
        with suppress(WriterConflictError):  # another process laid rounds together meanwhile
            return _laid_or_anew(scan, workspace=workspace, anew=anew)
    return _laid_or_anew(scan, workspace=workspace, anew=anew)


def _laid_or_anew(scan: Scan, *, workspace: Workspace, anew: bool) -> str | None:
    """Lay rounds over a table; one that is spoilt is made anew, for the rounds hold all of it."""
    try:
        return _publish(scan, workspace=workspace, anew=anew)
    except TamperedError:
        if anew:
            raise
        return _publish(scan, workspace=workspace, anew=True)


def _publish(scan: Scan, *, workspace: Workspace, anew: bool) -> str | None:
    lineage = newest_lineage(scan, workspace=workspace)
    published = open_published(workspace.lake, scan.name)
    at = published.open_if_there()
    held, pins = named_receipts(at), CurrentPins(scan.name, workspace=workspace)
    if lineage is None:
        if held:
            _withdraw(scan, workspace=workspace)
        return None
    if at is not None and held == lineage.receipt_ids and not anew:
        pins.check(published, at=at, rests_on=held)
        published.sweep()  # what a break may have left
        return None
    laid = None
    if at is not None and held and held == lineage.receipt_ids[: len(held)] and not anew:
        # What is laid over a table is signed with it: so nothing that is not ours may be in it.
        pins.check(published, at=at, rests_on=held, contents=True)
        last = lineage.rounds[len(held) - 1].receipt.scan_generation
        before = Before(table=published, generation=last, at=at)
        laid = Laid(rounds=len(held), before=before, under=_told(at, UNDER))
    rows = current_rows(scan, lineage.rounds, workspace=workspace, laid=laid)
    table = open_published(workspace.lake, scan.name, rows.schema)
    tip = lineage.tip
    table.replace_all(
        rows,
        generation=tip.receipt.scan_generation,
        metadata={
            RECEIPT_ID: tip.receipt_id,
            GENERATION: tip.receipt.scan_generation,
            RESTS_ON: json.dumps(lineage.receipt_ids),
            **_typed_under(scan),
        },
        at=at,
        announce=pins.announcing(
            published,
            at=at,
            held=held,
            generation=tip.receipt.scan_generation,
            rests_on=lineage.receipt_ids,
        ),
    )
    table.sweep()
    workspace.lake.remove_word(workspace.lake.published_uri(scan.name))
    return tip.receipt.scan_generation


def rests_on(scan: str, *, workspace: Workspace) -> tuple[str, ...]:
    """Return the ids of the receipts that the current table rests on, none where there is none."""
    return named_receipts(open_published(workspace.lake, scan).open_if_there())


def named_receipts(at: DeltaTable | None) -> tuple[str, ...]:
    """Return the ids of the receipts that a version says it rests on, none where there is none."""
    told = _told(at, RESTS_ON)
    return () if told is None else tuple(json.loads(told))


def _told(at: DeltaTable | None, name: str) -> str | None:
    told = None if at is None else at.history(1)[0].get(name)
    return None if told is None else str(told)


def _typed_under(scan: Scan) -> dict[str, str]:
    """Return what says how a text becomes columns, where a schema is declared; else nothing.

    Rows that were typed under the same need not be typed again.
    """
    schema = resolve_schema(scan.record_schema)
    if schema.columns is None:
        return {}
    return {UNDER: f"{schema.fingerprint} new_fields={scan.contract.new_fields}"}


def current_rows(
    scan: Scan,
    rounds: Sequence[StoredReceipt],
    *,
    workspace: Workspace,
    laid: Laid | None = None,
) -> pa.RecordBatchReader:
    """Return what rounds come to, as rows that are read as they are asked for.

    Args:
        scan: the scan.
        rounds: their receipts, the baseline's first.
        workspace: where their records lie.
        laid: the first of them as they are laid together already; None for none.

    Raises:
        TamperedError: the records of a round are not those that were sealed.
    """
    state = State(
        scan,
        rounds if laid is None else rounds[laid.rounds :],
        before=None if laid is None else laid.before,
        workspace=workspace,
    )
    schema = with_columns(
        resolve_schema(scan.record_schema),
        pages=(texts for _, texts in state.records()),
        named=named_columns(scan),
        key=scan.contract.key,
    )
    told = {GENERATED: rounds[-1].receipt.scan_generation, **_labels(rounds)}
    layout = _layout(schema, told)
    rejects_new = scan.contract.new_fields == "reject"
    under = None if laid is None else laid.under
    as_typed = under is not None and under == _typed_under(scan).get(UNDER)
    typed = _typed(state, schema, layout, told, rejects_new=rejects_new, as_typed=as_typed)
    return pa.RecordBatchReader.from_batches(layout, typed)


def _labels(rounds: Sequence[StoredReceipt]) -> dict[str, str]:
    """Return what every row must say where not every round is verified; nothing else."""
    worth = worth_of([each.receipt for each in rounds])
    if worth.is_proven:
        return {}
    values = (rounds[-1].receipt_id, worth.status, worth.scope)
    return dict(zip(LABELS, values, strict=True))


def _layout(schema: ResolvedSchema, told: Mapping[str, str]) -> pa.Schema:
    generation = pa.field(GENERATED, pa.string(), nullable=False)
    own = [pa.field(each.name, each.type) for each in columns_of(schema)]
    labels = [pa.field(name, pa.string()) for name in told if name != GENERATED]
    return pa.schema([generation, *own, *_OURS, *labels])


def _typed(
    state: State,
    schema: ResolvedSchema,
    layout: pa.Schema,
    told: Mapping[str, str],
    *,
    rejects_new: bool,
    as_typed: bool,
) -> Iterator[pa.RecordBatch]:
    parser, checks = RecordParser(schema), ModelChecks(schema)
    pieces = state.records()
    if as_typed:
        yield from _as_typed(state, layout, told)
        pieces = iter([state.changed()])
    for all_keys, all_texts in pieces:
        for start in range(0, len(all_keys), PIECE):
            keys, texts = all_keys[start : start + PIECE], all_texts[start : start + PIECE]
            parsed = parser.parse(texts)
            refused = {each.row for each in parsed.refused}
            refused |= {each.row for each in checks.failed(parsed.columns, refused=refused)}
            refused |= {*(parsed.extra if rejects_new else ())}
            rows = range(len(keys))
            columns = {
                **dict(zip(parsed.columns.column_names, parsed.columns.columns, strict=True)),
                **{name: pa.repeat(pa.scalar(value), len(keys)) for name, value in told.items()},
                "_key": pa.array(keys, pa.string()),
                "_conforming": pa.array([row not in refused for row in rows], pa.bool_()),
                "_extra": pa.array([parsed.extra.get(row) for row in rows], pa.string()),
                "_raw": pa.array([text.decode() for text in texts], pa.string()),
            }
            named = [columns[name] for name in layout.names]
            yield from pa.table(named, schema=layout).to_batches()


def _as_typed(state: State, layout: pa.Schema, told: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that no round speaks of as they are in the table before, told anew."""
    kept = [name for name in layout.names if name not in told]
    for batch in state.untouched(kept):
        columns = dict(zip(kept, batch.columns, strict=True))
        columns |= {name: pa.repeat(pa.scalar(value), len(batch)) for name, value in told.items()}
        arrays = [columns[field.name].cast(field.type) for field in layout]
        yield pa.RecordBatch.from_arrays(arrays, schema=layout)


def _withdraw(scan: Scan, *, workspace: Workspace) -> None:
    workspace.lake.withdraw(
        workspace.lake.published_uri(scan.name),
        word=f"The table of {scan.name} held what its rounds came to. One that it rested on was "
        "judged again and is no longer accepted, and no rounds are left that hold together. The "
        f"next accepted baseline is published here. See: scan-pipeline generations {scan.name}\n",
    )
