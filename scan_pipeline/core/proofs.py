"""Inclusion and absence: what a third party can check with a trusted root and size.

Both trees of a collection hash bytes to leaves in a strict order: records by their key hash,
partition statements by themselves. So one shape of proof serves both. Inclusion is RFC 9162's
(section 2.1.3, December 2021). Absence shows the two neighbours between which the bytes would
stand, or that it would stand at an edge, or that the tree is empty. A neighbour is shown by its
bytes rather than by its leaf, because only the bytes give a third party both the leaf and the
place in the order; so a proof discloses two records, and goes only to those who may read them.

An absence proof holds as far as the leaves are in order, which a root alone does not show: the
receipt's signer says so, and an audit recomputes it.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal

from scan_pipeline.core.canonical import canonical_json, leaf_hash, parse_exact
from scan_pipeline.core.errors import EvidenceError
from scan_pipeline.core.merkle import EMPTY_ROOT, PARTITION, level_above, node_hash
from scan_pipeline.core.value import record


class ProofError(EvidenceError):
    """A proof does not show what it was given for, or cannot be made."""


class ProofMismatchError(ProofError):
    """A proof leads to another root.

    Attributes:
        expected: the trusted root (32 bytes).
        got: the root the proof leads to (32 bytes).
    """

    def __init__(self, *, expected: bytes, got: bytes) -> None:
        super().__init__(f"expected root {expected.hex()}, the proof leads to {got.hex()}")
        self.expected, self.got = expected, got


@record
class Member:
    """Bytes with their place in a tree.

    Attributes:
        content: what was hashed to the leaf: a record, or a partition's statement.
        index: place among the leaves, from 0.
        path: sibling hashes from the leaf upwards (32 bytes each).
    """

    content: bytes
    index: int
    path: tuple[bytes, ...]


@record
class Absence:
    """The neighbours of what is not there.

    Attributes:
        before: the last one below it; None if it would be the first.
        after: the first one above it; None if it would be the last.
    """

    before: Member | None
    after: Member | None


def inclusion_proof(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """Return the sibling hashes from one leaf up to the root.

    Raises:
        ProofError: there is no leaf at that index.
    """
    if not 0 <= index < len(leaves):
        raise ProofError(f"found index {index}; expected one of {len(leaves)} leaves, from 0")
    path: list[bytes] = []
    level = leaves
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        level, index = level_above(level), index >> 1
    return tuple(path)


def verify_inclusion(
    leaf: bytes, *, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Check that a leaf stands at an index of the tree with this size and root.

    Args:
        leaf: the leaf's hash (32 bytes).
        index: its place, from 0.
        size: leaves in the tree; as trusted as the root, or the index means nothing.
        path: sibling hashes from the leaf upwards.
        root: the trusted root (32 bytes).

    Raises:
        ProofError: the path has the wrong length for this place.
        ProofMismatchError: the path leads to another root.
    """
    if not 0 <= index < size:
        raise ProofError(f"found index {index}; expected one of {size} leaves, from 0")
    got, node, last, used = leaf, index, size - 1, 0
    while last:  # RFC 9162, 2.1.3.2: node is fn, last is sn, both on the level of got
        if node % 2 or node < last:
            if used == len(path):
                raise ProofError(f"found a path of {used} hashes; expected more for {size} leaves")
            got = node_hash(path[used], got) if node % 2 else node_hash(got, path[used])
            used += 1
        node, last = node >> 1, last >> 1
    if used < len(path):
        raise ProofError(f"found a path of {len(path)} hashes; expected {used} for {size} leaves")
    if got != root:
        raise ProofMismatchError(expected=root, got=got)


def absence_proof(
    place: bytes,
    *,
    places: Sequence[bytes],
    leaves: Sequence[bytes],
    content_at: Callable[[int], bytes],
) -> Absence:
    """Return the neighbours between which something would stand.

    Args:
        place: where it would stand, e.g. the key hash of the missing key.
        places: the places of all leaves, strictly ascending.
        leaves: their hashes, in the same order.
        content_at: returns the bytes behind a leaf, by index.

    Raises:
        ProofError: it is there.
    """
    index = bisect_left(places, place)
    if index < len(places) and places[index] == place:
        raise ProofError(f"found it at index {index}; expected it to be absent")

    def member(at: int) -> Member | None:
        if not 0 <= at < len(leaves):
            return None
        return Member(content=content_at(at), index=at, path=inclusion_proof(leaves, at))

    return Absence(before=member(index - 1), after=member(index))


def verify_absence(
    proof: Absence,
    *,
    place: bytes,
    place_of: Callable[[bytes], bytes],
    size: int,
    root: bytes,
) -> None:
    """Check that nothing stands at a place of the ordered tree with this size and root.

    Args:
        proof: the neighbours.
        place: where it would stand, e.g. the key hash of the missing key.
        place_of: derives the place of a leaf from its bytes, e.g. the hash of a record's key.
        size: leaves in the tree, as trusted as the root.
        root: the trusted root (32 bytes).

    Raises:
        ProofError: the neighbours are not adjacent, not at the edge, or not around the place.
        ProofMismatchError: a neighbour is not in the tree, or an empty tree has a root.
    """
    before, after = proof.before, proof.after
    lower = before.index + 1 if before else 0
    upper = after.index if after else size
    if lower != upper:
        raise ProofError(
            f"found neighbours around indexes {lower} to {upper} of {size} leaves; "
            "expected nothing between them"
        )
    for member in (before, after):
        if member:
            verify_inclusion(
                leaf_hash(member.content),
                index=member.index,
                size=size,
                path=member.path,
                root=root,
            )
    if size == 0 and root != EMPTY_ROOT:
        raise ProofMismatchError(expected=EMPTY_ROOT, got=root)
    if before and not place_of(before.content) < place:
        raise ProofError("found a lower neighbour that does not stand below the place")
    if after and not place < place_of(after.content):
        raise ProofError("found an upper neighbour that does not stand above the place")


def partition_place(value: str | int | None) -> bytes:
    """Return where a partition stands in its collection's tree, whatever it holds."""
    return _place(value)


def place_of_partition(statement: bytes) -> bytes:
    """Return `partition_place` of the partition that a statement is about.

    Raises:
        ProofError: the bytes are no partition's statement.
        CanonicalFormError: the bytes are not JSON.
    """
    match parse_exact(statement):
        case [str(definition), str() | int() | Decimal() | None as value, int(), str()] if (
            definition == PARTITION
        ):
            return _place(value)
        case _:
            raise ProofError(f"found no partition's statement; expected a list under {PARTITION}")


def _place(value: str | int | Decimal | None) -> bytes:
    return canonical_json(value) + b","  # a statement from after its constant head to its count
