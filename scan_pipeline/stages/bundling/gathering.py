"""What the lake still holds of a generation's proof, held against its receipt."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import polars as pl

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.bundling.manifest import LeftOut
from scan_pipeline.stages.reconciling.evidence import check_chain
from scan_pipeline.stages.reconciling.partition_roots import partition_roots
from scan_pipeline.stages.run import contract_of
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.receipts import StoredReceipt

Level: TypeAlias = Literal["receipt", "ledger", "partitions", "leaves", "bytes"]
"""How deep an audit of a bundle could look; see the guide."""

COUNTS: Final = ("records", "unique_keys", "duplicates")
"""Figures of a partition in a bundle; its first and last key are left out, being records' own."""

_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


@record
class Gathered:
    """What the lake still holds of a generation's proof."""

    events: Sequence[Event]
    second: Sequence[Event]
    contract: Scan | None
    facts: Mapping[str, Any]
    summaries: Sequence[Mapping[str, Any]]
    left_out: tuple[LeftOut, ...]

    @property
    def level(self) -> Level:
        """How deep an audit of this can look, records apart."""
        if not self.events:
            return "receipt"
        lacking = {each.part for each in self.left_out}
        return "ledger" if "partition_summaries" in lacking else "partitions"


def gather(stored: StoredReceipt, store: GenerationStore, workspace: Workspace) -> Gathered:
    """Look at what is left of a generation, and hold it against the receipt.

    Raises:
        TamperedError: it is not what the receipt is about.
    """
    receipt, left_out = stored.receipt, list[LeftOut]()
    events = store.events() if store.pages().exists() else []
    contract, facts = None, dict[str, Any]()
    second = list[Event]()
    if events:
        _same_chain(events, receipt.cursor_chain_digest)
        if receipt.second_walk is not None:
            second = store.events(SECOND_WALK)
            _same_chain(second, receipt.second_walk.cursor_chain_digest)
        opened = store.opened()
        contract = contract_of(opened)
        facts = {name: opened.facts[name] for name in ("contract", "schema_fingerprint")}
    else:
        why = "its rows were removed from the lake"
        left_out += [LeftOut(part="ledger", why=why), LeftOut(part="contract", why=why)]
    summaries = list[dict[str, Any]]()
    if receipt.merkle.root is None:
        why = "the receipt has no root, since two versions of a record conflict"
        left_out.append(LeftOut(part="partition_summaries", why=why))
    elif receipt.merkle.partitions and not _rows(store):
        left_out.append(LeftOut(part="partition_summaries", why="they are gone from the lake"))
    else:
        summaries = _summaries(receipt, store, workspace)
    return Gathered(
        events=events,
        second=second,
        contract=contract,
        facts=facts,
        summaries=summaries,
        left_out=tuple(left_out),
    )


def _same_chain(events: Sequence[Event], signed: str) -> None:
    if (found := f"sha256:{check_chain(events).hex()}") != signed:
        raise TamperedError("pages", f"the events give {found}; expected {signed}")


def _rows(store: GenerationStore) -> list[dict[str, Any]]:
    return store.read_summaries() if store.summaries().exists() else []


def _summaries(
    receipt: Receipt, store: GenerationStore, workspace: Workspace
) -> list[dict[str, Any]]:
    """Return the summaries with the values of their partitions in canonical JSON.

    The lake has the values as text, and the records beside them tell what they are. Where those are
    gone the root tells: only one reading gives it.

    Raises:
        TamperedError: no reading does.
    """
    if not receipt.merkle.partitions:
        return []
    try:
        roots = partition_roots(receipt, kind=None, workspace=workspace)
    except TamperedError:
        if any(_NUMBER.fullmatch(row["partition"] or "0") is None for row in _rows(store)):
            raise
        roots = partition_roots(receipt, kind=pl.Int64(), workspace=workspace)
    counts = {row["partition"]: row for row in _rows(store)}
    return [
        {
            **{name: counts[_text(each.value)][name] for name in COUNTS},
            "partition": canonical_json(each.value).decode(),
            "leaf_count": each.leaf_count,
            "root": each.root.hex(),
        }
        for each in roots
    ]


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)
