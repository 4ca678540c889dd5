"""Whether a collection holds a key, shown to someone who trusts its root and nothing else.

A key that is there is shown by its record, its place in its partition's tree, and the partition's
place in the collection's. One that is not there is shown absent from each partition it could stand
in: the one of its key hash, or, where a field partitions the collection, every one there is.

The trees are those of RFC 9162 (section 2.1, December 2021); see `proofs` and `merkle`.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from scan_pipeline.core.canonical import key_bytes, key_hash, leaf_hash, parse_exact
from scan_pipeline.core.merkle import PartitionRoot, hash_partition
from scan_pipeline.core.proofs import (
    Absence,
    Member,
    ProofError,
    partition_place,
    place_of_partition,
    verify_absence,
    verify_inclusion,
)
from scan_pipeline.core.receipt import MerkleEvidence
from scan_pipeline.core.value import record

PROOF_VERSION: Final = "scan-pipeline/key-proof/v1"

Hex: TypeAlias = Annotated[str, Field(pattern=r"^([0-9a-f]{64})$")]


@record
class ShownMember:
    """A leaf, its bytes as text, and its path to the root.

    Attributes:
        content: what was hashed: a record or a partition's statement, as UTF-8.
        index: place among the leaves, from 0.
        path: sibling hashes from the leaf upwards, hex.
    """

    content: str
    index: int
    path: tuple[Hex, ...]

    @classmethod
    def of(cls, member: Member) -> "ShownMember":
        """Return a member in the form that is written."""
        path = tuple(each.hex() for each in member.path)
        return cls(content=member.content.decode(), index=member.index, path=path)

    def member(self) -> Member:
        """Return it as it is checked."""
        path = tuple(bytes.fromhex(each) for each in self.path)
        return Member(content=self.content.encode(), index=self.index, path=path)


@record
class ShownAbsence:
    """The neighbours of what is not there; None at an edge."""

    before: ShownMember | None
    after: ShownMember | None

    @classmethod
    def of(cls, absence: Absence) -> "ShownAbsence":
        """Return an absence in the form that is written."""
        sides = (absence.before, absence.after)
        before, after = (None if side is None else ShownMember.of(side) for side in sides)
        return cls(before=before, after=after)

    def absence(self) -> Absence:
        """Return it as it is checked."""
        before, after = (
            None if side is None else side.member() for side in (self.before, self.after)
        )
        return Absence(before=before, after=after)


@record
class InPartition:
    """One partition, its place in the collection, and what it shows of the key.

    Attributes:
        partition: its statement and place in the collection's tree.
        record: the record, where it is there.
        absent: its neighbours, where it is not.
    """

    partition: ShownMember
    record: ShownMember | None = None
    absent: ShownAbsence | None = None


@record
class KeyProof:
    """A proof that a collection holds a key, or that it does not.

    Attributes:
        scan: the scan.
        scan_generation: its generation.
        receipt_id: the receipt that vouches for the root.
        root: the collection's root, hex.
        partitions: how many partitions the collection has.
        key_fields: the fields that name a record, as the contract has them.
        key: their values.
        partition_by: the field that partitions the collection; None for the key hash.
        result: whether the key is there.
        shown: the partitions that show it.
        no_partition: where its partition would stand, if there is none.
    """

    scan: str
    scan_generation: str
    receipt_id: str
    root: Hex
    partitions: int
    key_fields: tuple[str, ...]
    key: tuple[str | int, ...]
    partition_by: str | None
    result: Literal["included", "absent"]
    shown: tuple[InPartition, ...] = ()
    no_partition: ShownAbsence | None = None
    proof_version: Literal["scan-pipeline/key-proof/v1"] = PROOF_VERSION


def verify_key_proof(proof: KeyProof, *, merkle: MerkleEvidence) -> None:
    """Check a proof against the tree of a receipt that is trusted.

    Args:
        proof: as it was given.
        merkle: what that receipt says of its tree.

    Raises:
        ProofError: it does not show what it says, or is about another tree.
        ProofMismatchError: it leads to another root.
    """
    said = (proof.root, proof.partitions, proof.key_fields, proof.partition_by)
    trusted_tree = (merkle.root, merkle.partitions, merkle.key_fields, merkle.partition_by)
    if said != trusted_tree:
        raise ProofError(
            f"the proof is about the root {proof.root} of {proof.partitions} partitions by "
            f"{proof.partition_by or 'key hash'}, keyed by {list(proof.key_fields)}; expected "
            f"{merkle.root} of {merkle.partitions} by {merkle.partition_by or 'key hash'}, keyed "
            f"by {list(merkle.key_fields)}"
        )
    partitions = proof.partitions
    if len(proof.key) != len(proof.key_fields):
        raise ProofError(f"found {len(proof.key)} values for {len(proof.key_fields)} key fields")
    place = key_hash(key_bytes(proof.key))
    trusted = bytes.fromhex(proof.root)
    stated = [
        _partition(each.partition, root=trusted, partitions=partitions) for each in proof.shown
    ]
    if proof.result == "included":
        if len(proof.shown) != 1 or proof.shown[0].record is None:
            raise ProofError("expected one partition that shows the record")
        _included(proof, proof.shown[0].record.member(), stated[0], place)
        return
    expected = hash_partition(place)
    if proof.partition_by is None and not proof.shown:
        if proof.no_partition is None:
            raise ProofError("expected the neighbours of the partition that is not there")
        verify_absence(
            proof.no_partition.absence(),
            place=partition_place(expected),
            place_of=place_of_partition,
            size=partitions,
            root=trusted,
        )
        return
    _covers(proof, stated, expected)
    for shown, partition in zip(proof.shown, stated, strict=True):
        if shown.absent is None:
            raise ProofError("expected the neighbours of the record that is not there")
        verify_absence(
            shown.absent.absence(),
            place=place,
            place_of=lambda content: _place(content, proof.key_fields),
            size=partition.leaf_count,
            root=partition.root,
        )


def _included(proof: KeyProof, member: Member, partition: PartitionRoot, place: bytes) -> None:
    if _place(member.content, proof.key_fields) != place:
        raise ProofError("the record has another key; expected the one that was asked for")
    verify_inclusion(
        leaf_hash(member.content),
        index=member.index,
        size=partition.leaf_count,
        path=member.path,
        root=partition.root,
    )


def _covers(proof: KeyProof, stated: Sequence[PartitionRoot], expected: str) -> None:
    """Refuse a proof of absence that leaves out a partition the key could stand in."""
    values = [each.value for each in stated]
    if proof.partition_by is None:
        if values != [expected]:
            raise ProofError(f"found the partitions {values}; expected {expected}, of the key hash")
    elif len({shown.partition.index for shown in proof.shown}) != proof.partitions:
        raise ProofError(
            f"found {len(proof.shown)} partitions; expected all {proof.partitions}: the key could "
            "stand in any"
        )


def _partition(shown: ShownMember, *, root: bytes, partitions: int) -> PartitionRoot:
    """Return what a partition states of itself, once it is found in the collection."""
    member = shown.member()
    verify_inclusion(
        leaf_hash(member.content),
        index=member.index,
        size=partitions,
        path=member.path,
        root=root,
    )
    match parse_exact(member.content):
        case [str(), str() | int() | None as value, int(leaf_count), str(partition_root)]:
            stated = PartitionRoot(
                value=value, leaf_count=leaf_count, root=bytes.fromhex(partition_root)
            )
        case _:
            raise ProofError("found no partition's statement")
    if stated.statement() != member.content:
        raise ProofError("found a partition's statement that is not in canonical form")
    return stated


def _place(content: bytes, key_fields: Sequence[str]) -> bytes:
    """Return where a record stands in its partition: the hash of its key."""
    match parse_exact(content):
        case dict(members):
            values = [members.get(field) for field in key_fields]
        case _:
            raise ProofError("found a record that is no object")
    plain = [each for each in values if isinstance(each, str) or type(each) is int]
    if len(plain) != len(values):
        raise ProofError("found a record without a readable key")
    return key_hash(key_bytes(plain))
