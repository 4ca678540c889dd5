"""The tree `scan-pipeline/merkle/v1`: RFC 9162 (section 2.1, December 2021) over leaf hashes.

A leaf is SHA-256(0x00 || bytes), a node SHA-256(0x01 || left || right), the empty tree
SHA-256 of nothing; a tree of n leaves splits at the largest power of two below n. Pairing
neighbours level by level, and passing an odd last one up unchanged, gives that same tree
with a loop instead of a recursion.

A collection is a tree of trees: one tree for each partition, its leaves ordered by key hash,
and one over the partitions, ordered by the bytes of their statements.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice
from types import NoneType
from typing import Final

from scan_pipeline.core.canonical import canonical_json, leaf_hash
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.value import record

DEFINITION: Final = "scan-pipeline/merkle/v1"
PARTITION: Final = "scan-pipeline/partition/v1"
HASH_SIZE: Final = 32  # bytes
EMPTY_ROOT: Final = sha256(b"").digest()


class TreeError(EvidenceError):
    """What was given cannot be the leaves or the partitions of a tree."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 || left || right) (32 bytes)."""
    return sha256(b"\x01" + left + right).digest()


def tree_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes in the given order (32 bytes).

    Raises:
        TreeError: a leaf is not 32 bytes long.
    """
    tree = TreeAccumulator()
    tree.extend(leaves)
    return tree.root()


def level_above(level: Sequence[bytes]) -> list[bytes]:
    """Return the next level of a tree; an odd last node goes up unchanged."""
    digest = sha256
    above = [
        digest(b"\x01" + left + right).digest()
        for left, right in zip(level[::2], level[1::2], strict=False)
    ]
    if len(level) % 2:
        above.append(level[-1])
    return above


class TreeAccumulator:
    """A tree that grows on the right, in the memory of one chunk and O(log n) roots.

    Leaves wait until a chunk of 2^chunk_levels is whole; it is folded to one root, and two
    neighbouring roots over equally many leaves become one, as a binary counter carries. What
    remains are the roots of the perfect subtrees of n, from the largest down, which is where
    RFC 9162 splits. The chunk never shows in the result.

    Attributes:
        size: leaves so far.
    """

    __slots__ = ("_chunk", "_peaks", "_waiting", "size")

    def __init__(self, *, chunk_levels: int = 17) -> None:
        self.size = 0
        self._chunk = 1 << chunk_levels
        self._waiting: list[bytes] = []
        self._peaks: list[tuple[int, bytes]] = []  # (leaves below, root), the larger first

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes on the right, in order.

        Raises:
            TreeError: a leaf is not 32 bytes long; all before its chunk were taken.
        """
        coming = iter(leaves)
        while part := list(islice(coming, self._chunk - len(self._waiting))):
            if strange := set(map(len, part)) - {HASH_SIZE}:
                raise TreeError(
                    f"found leaves of {sorted(strange)} bytes; expected hashes of {HASH_SIZE}"
                )
            self._waiting += part
            self.size += len(part)
            if len(self._waiting) == self._chunk:
                self._carry(_fold(self._waiting))
                self._waiting = []

    def root(self) -> bytes:
        """Return the root over all leaves so far (32 bytes); more may follow."""
        peaks = [root for _, root in self._peaks]
        if self._waiting:
            peaks.append(_fold(self._waiting))
        if not peaks:
            return EMPTY_ROOT
        root = peaks.pop()
        while peaks:
            root = node_hash(peaks.pop(), root)
        return root

    def _carry(self, root: bytes) -> None:
        below = self._chunk
        while self._peaks and self._peaks[-1][0] == below:
            root = node_hash(self._peaks.pop()[1], root)
            below *= 2
        self._peaks.append((below, root))


@record
class PartitionRoot:
    """One partition of a collection, and the tree over its records.

    Attributes:
        value: what the partition's records have in common; None where the field is null.
        leaf_count: records in it, at least 1.
        root: its tree's root (32 bytes).
    """

    value: str | int | None
    leaf_count: int
    root: bytes

    def statement(self) -> bytes:
        """Return the bytes that are hashed to the partition's leaf.

        Raises:
            TreeError: the value, count or root cannot be a partition's.
        """
        if type(self.value) not in {str, int, NoneType}:
            raise TreeError(
                f"found a partition by a {type(self.value).__name__}; "
                "expected a string, an integer or null"
            )
        if self.leaf_count < 1:
            raise TreeError(
                f"found a partition of {self.leaf_count} records; expected at least 1: leave it out"
            )
        if len(self.root) != HASH_SIZE:
            raise TreeError(f"found a root of {len(self.root)} bytes; expected {HASH_SIZE}")
        return canonical_json([PARTITION, self.value, self.leaf_count, self.root.hex()])


def hash_partition(key_hash: bytes) -> str:
    """Return the default partition of a key: the first byte of its hash, two hex digits.

    As text in lower case, so that partitions stand in the order of the key hashes.
    """
    return key_hash[:1].hex()


def partition_leaf(value: str | int | None, *, leaf_count: int, root: bytes) -> bytes:
    """Return the leaf of a partition in its collection's tree (32 bytes).

    Raises:
        TreeError: the value, count or root cannot be a partition's.
    """
    return leaf_hash(PartitionRoot(value=value, leaf_count=leaf_count, root=root).statement())


def collection_root(partitions: Iterable[PartitionRoot]) -> bytes:
    """Return the root over a collection's partitions, given in any order (32 bytes).

    Raises:
        TreeError: a partition is empty, malformed, or there twice.
    """
    given = tuple(partitions)
    statements = {canonical_json(each.value): each.statement() for each in given}
    if len(statements) < len(given):
        raise TreeError("found a partition twice; expected each value once")
    return tree_root(leaf_hash(statement) for statement in sorted(statements.values()))


def _fold(level: Sequence[bytes]) -> bytes:
    while len(level) > 1:
        level = level_above(level)
    return level[0]
