"""A generation's partitions as they are stored, once they give the root of its receipt."""

import polars as pl

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.merkle import PartitionRoot, collection_root
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.workspace import Workspace


def partition_roots(
    receipt: Receipt, *, kind: pl.DataType | None, workspace: Workspace
) -> tuple[PartitionRoot, ...]:
    """Return the partitions of a generation in the order of its tree.

    Args:
        receipt: the generation's.
        kind: type of the column that partitions it; None for the default, the key hash.
        workspace: where its tables lie.

    Raises:
        TamperedError: there is no root, or they do not give it.
    """
    rows = workspace.store(receipt.scan, receipt.scan_generation).read_summaries()
    numbers = kind is not None and kind.is_integer()
    held = tuple(
        PartitionRoot(
            value=int(row["partition"])
            if numbers and row["partition"] is not None
            else row["partition"],
            leaf_count=int(row["leaf_count"]),
            root=bytes.fromhex(row["root"]),
        )
        for row in rows
        if row["root"] is not None
    )
    folded = collection_root(held).hex()
    if folded != receipt.merkle.root:
        raise TamperedError(
            "partition_summaries",
            f"{receipt.scan_generation}: the partitions give the root {folded}; expected "
            f"{receipt.merkle.root}",
        )
    return tuple(sorted(held, key=PartitionRoot.statement))
