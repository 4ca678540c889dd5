"""A generation's partitions as they are stored, once they give the root of its receipt."""

from scan_pipeline.core.canonical import parse_exact
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.merkle import PartitionRoot, collection_root
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.workspace import Workspace


def partition_roots(receipt: Receipt, *, workspace: Workspace) -> tuple[PartitionRoot, ...]:
    """Return the partitions of a generation in the order of its tree.

    Raises:
        TamperedError: there is no root, or they do not give it.
    """
    rows = workspace.store(receipt.scan, receipt.scan_generation).read_summaries()
    held = tuple(
        PartitionRoot(
            value=_value(str(row["partition"])),
            leaf_count=int(row["leaf_count"]),
            root=bytes.fromhex(row["root"] or ""),
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


def _value(partition: str) -> str | int | None:
    value = parse_exact(partition.encode())
    if value is None or isinstance(value, str) or type(value) is int:
        return value
    raise TamperedError(
        "partition_summaries", f"found the partition {partition}; expected text, a number or null"
    )
