"""Prove that a proven collection holds a key, or that it does not."""

from collections.abc import Sequence
from typing import Final

import polars as pl

from scan_pipeline.core.canonical import key_bytes, key_hash, leaf_hash
from scan_pipeline.core.errors import ContractError, TamperedError
from scan_pipeline.core.key_proofs import InPartition, KeyProof, ShownAbsence, ShownMember
from scan_pipeline.core.merkle import PartitionRoot, hash_partition
from scan_pipeline.core.proofs import Member, absence_proof, inclusion_proof, partition_place
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.reconcile import partition_by_field
from scan_pipeline.stages.reconciling.partition_roots import partition_roots
from scan_pipeline.stages.records.texts import RecordTexts
from scan_pipeline.stages.unlock import VerifiedCollection
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import FIRST_WALK

_DIGESTS: Final = ("_key_hash", "_leaf_hash", "_page", "_position")


def prove_key(
    opened: VerifiedCollection, key: Sequence[str | int], *, scan: Scan, workspace: Workspace
) -> KeyProof:
    """Return a proof that a third party checks with the receipt alone.

    A proof of absence shows the neighbours, two records for each partition the key could stand in:
    give it to those who may read them.

    Args:
        opened: the collection.
        key: values of the key fields.
        scan: its contract.
        workspace: where its tables lie.

    Raises:
        ContractError: the key has not as many values as the contract has key fields.
        TamperedError: the tables do not give the receipt's root.
    """
    contract = scan.contract
    if len(key) != len(contract.key):
        raise ContractError(f"found a key of {len(key)} values; expected {', '.join(contract.key)}")
    receipt = opened.receipt
    by = contract.partition_by
    kind = None if by is None else opened.frame().collect_schema()[by]
    held = partition_roots(receipt, kind=kind, workspace=workspace)
    place = key_hash(key_bytes(key))
    rows = _rows(opened, scan)
    found = rows.filter(pl.col("_key_hash") == place)
    store = workspace.store(
        scan.name, receipt.scan_generation, evidence=receipt.evidence["pages"].generation
    )
    texts = RecordTexts(store, workspace.source(scan))
    if found.height:
        chosen = [each for each in held if each.value == found["_partition"][0]]
    elif contract.partition_by is None:
        chosen = [each for each in held if each.value == hash_partition(place)]
    else:
        chosen = list(held)
    shown = tuple(_in_partition(each, held, rows=rows, place=place, texts=texts) for each in chosen)
    nowhere = None
    if not chosen:
        nowhere = ShownAbsence.of(
            absence_proof(
                partition_place(hash_partition(place)),
                places=[partition_place(each.value) for each in held],
                leaves=[leaf_hash(each.statement()) for each in held],
                content_at=lambda at: held[at].statement(),
            )
        )
    return KeyProof(
        scan=scan.name,
        scan_generation=receipt.scan_generation,
        receipt_id=opened.receipt_id,
        root=str(receipt.merkle.root),
        partitions=len(held),
        key_fields=contract.key,
        key=tuple(key),
        partition_by=contract.partition_by,
        result="included" if found.height else "absent",
        shown=shown,
        no_partition=nowhere,
    )


def _rows(opened: VerifiedCollection, scan: Scan) -> pl.DataFrame:
    """Return partition, place and leaf of every record, in order of key hash.

    Of an erased record these are known still: without them no proof of another would come out.
    """
    frame = opened.frame()
    by = scan.contract.partition_by
    kept = frame.select(*_DIGESTS, *([] if by is None else [by])).collect()
    schema = kept.to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    erased = opened.redactions.rows(schema, shard=FIRST_WALK, partition_by=by)
    whole = pl.concat([kept, *(pl.DataFrame(batch).cast(kept.schema) for batch in erased)])
    if by is None:
        partition = pl.col("_key_hash").bin.slice(0, 1).bin.encode("hex")
    else:
        partition = partition_by_field(by, whole.schema[by])
    rows = whole.select(*_DIGESTS, partition.alias("_partition"))
    return rows.unique("_key_hash", keep="first", maintain_order=True).sort("_key_hash")


def _in_partition(
    partition: PartitionRoot,
    held: Sequence[PartitionRoot],
    *,
    rows: pl.DataFrame,
    place: bytes,
    texts: RecordTexts,
) -> InPartition:
    """Return what one partition shows of a key."""
    here = rows.filter(pl.col("_partition").eq_missing(pl.lit(partition.value)))
    places, leaves = here["_key_hash"].to_list(), here["_leaf_hash"].to_list()
    index = held.index(partition)

    def content(at: int) -> bytes:
        text = texts.text(here["_page"][at], here["_position"][at])
        if leaf_hash(text) != leaves[at]:
            raise TamperedError("records", f"the record of page {here['_page'][at]} is another")
        return text

    stated = Member(
        content=partition.statement(),
        index=index,
        path=inclusion_proof([leaf_hash(each.statement()) for each in held], index),
    )
    if place in places:
        at = places.index(place)
        member = Member(content=content(at), index=at, path=inclusion_proof(leaves, at))
        return InPartition(partition=ShownMember.of(stated), record=ShownMember.of(member))
    absent = absence_proof(place, places=places, leaves=leaves, content_at=content)
    return InPartition(partition=ShownMember.of(stated), absent=ShownAbsence.of(absent))
