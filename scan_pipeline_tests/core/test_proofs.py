"""Inclusion and absence: true ones verify, and no tampered one does."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import canonical_json, key_bytes, key_hash, leaf_hash, parse_exact
from scan_pipeline.core.merkle import EMPTY_ROOT, PartitionRoot, collection_root, tree_root
from scan_pipeline.core.proofs import (
    Absence,
    Member,
    ProofError,
    ProofMismatchError,
    absence_proof,
    inclusion_proof,
    partition_place,
    place_of_partition,
    verify_absence,
    verify_inclusion,
)

VECTORS = Path(__file__).parent.parent / "vectors"
PROOFS = json.loads((VECTORS / "proofs.json").read_text(encoding="ascii"))


def numbered(size: int) -> list[bytes]:
    return [leaf_hash(str(number).encode()) for number in range(size)]


def place_of_record(record: bytes) -> bytes:
    match parse_exact(record):
        case {"id": str(name)}:
            return key_hash(key_bytes([name]))
    raise ProofError("no id")


def member(case: dict | None) -> Member | None:
    return case and Member(
        content=case["content"].encode(),
        index=case["index"],
        path=tuple(map(bytes.fromhex, case["path"])),
    )


def population(names: set[str]) -> list[bytes]:
    return sorted((canonical_json({"id": name}) for name in names), key=place_of_record)


def prove_absence(name: str, records: list[bytes]) -> Absence:
    return absence_proof(
        key_hash(key_bytes([name])),
        places=[place_of_record(record) for record in records],
        leaves=[leaf_hash(record) for record in records],
        content_at=records.__getitem__,
    )


def check_absence(proof: Absence, name: str, records: list[bytes]) -> None:
    verify_absence(
        proof,
        place=key_hash(key_bytes([name])),
        place_of=place_of_record,
        size=len(records),
        root=tree_root(map(leaf_hash, records)),
    )


@pytest.mark.parametrize(
    "case", PROOFS["inclusion"], ids=lambda case: f"{case['index']} of {case['size']}"
)
def test_path_is_the_vectors_and_leads_to_the_root(case: dict) -> None:
    leaves = numbered(case["size"])
    path = tuple(map(bytes.fromhex, case["path"]))

    assert inclusion_proof(leaves, case["index"]) == path
    verify_inclusion(
        leaves[case["index"]],
        index=case["index"],
        size=case["size"],
        path=path,
        root=bytes.fromhex(case["root"]),
    )


def test_every_leaf_of_every_small_tree_is_provable_at_its_place_alone() -> None:
    for size in range(1, 20):
        leaves = numbered(size)
        root = tree_root(leaves)
        for index, leaf in enumerate(leaves):
            path = inclusion_proof(leaves, index)
            verify_inclusion(leaf, index=index, size=size, path=path, root=root)
            for other in range(size + 1):
                if other != index:
                    with pytest.raises(ProofError):
                        verify_inclusion(leaf, index=other, size=size, path=path, root=root)


@given(st.integers(1, 200), st.data())
def test_tampered_inclusion_is_refused(size: int, data: st.DataObject) -> None:
    leaves = numbered(size)
    index = data.draw(st.integers(0, size - 1))
    path, root = inclusion_proof(leaves, index), tree_root(leaves)
    spoil = data.draw(st.integers(0, len(path)))
    wrong = bytes(32)

    with pytest.raises(ProofMismatchError) as refused:
        verify_inclusion(wrong, index=index, size=size, path=path, root=root)
    assert (refused.value.expected, refused.value.got != root) == (root, True)
    with pytest.raises(ProofMismatchError):
        verify_inclusion(leaves[index], index=index, size=size, path=path, root=wrong)
    with pytest.raises(ProofError, match="found a path of"):
        verify_inclusion(leaves[index], index=index, size=size, path=(*path, wrong), root=root)
    if spoil < len(path):
        spoilt = (*path[:spoil], wrong, *path[spoil + 1 :])
        with pytest.raises(ProofMismatchError):
            verify_inclusion(leaves[index], index=index, size=size, path=spoilt, root=root)
        cut = path[:spoil] + path[spoil + 1 :]
        with pytest.raises(ProofError, match="expected more"):
            verify_inclusion(leaves[index], index=index, size=size, path=cut, root=root)


@pytest.mark.parametrize(("index", "size"), [(0, 0), (3, 3), (-1, 3)])
def test_index_outside_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ProofError, match="expected one of"):
        inclusion_proof(numbered(size), index)
    with pytest.raises(ProofError, match="expected one of"):
        verify_inclusion(bytes(32), index=index, size=size, path=(), root=bytes(32))


@pytest.mark.parametrize(
    "case", PROOFS["absence"], ids=lambda case: f"{case['key']} of {case['size']}"
)
def test_absence_of_the_vectors_verifies(case: dict) -> None:
    verify_absence(
        Absence(before=member(case["before"]), after=member(case["after"])),
        place=key_hash(case["key"].encode()),
        place_of=place_of_record,
        size=case["size"],
        root=bytes.fromhex(case["root"]),
    )


@given(st.sets(st.text(max_size=3), max_size=20), st.text(max_size=3))
def test_absent_key_is_provable_and_a_present_one_is_not(names: set[str], name: str) -> None:
    records = population(names)
    if name in names:
        with pytest.raises(ProofError, match="expected it to be absent"):
            prove_absence(name, records)
    else:
        check_absence(prove_absence(name, records), name, records)


@given(st.sets(st.text(max_size=3), min_size=1, max_size=20), st.data())
def test_no_two_neighbours_hide_a_present_key(names: set[str], data: st.DataObject) -> None:
    """Whatever true members a prover shows, a key that is there is not shown to be absent."""
    records = population(names)
    name = data.draw(st.sampled_from(sorted(names)))
    leaves = [leaf_hash(record) for record in records]
    shown = st.none() | st.integers(0, len(records) - 1).map(
        lambda at: Member(content=records[at], index=at, path=inclusion_proof(leaves, at))
    )
    forged = Absence(before=data.draw(shown), after=data.draw(shown))

    with pytest.raises(ProofError):
        check_absence(forged, name, records)


@given(st.sets(st.text(max_size=3), min_size=2, max_size=20), st.text(max_size=3), st.data())
def test_tampered_absence_is_refused(names: set[str], name: str, data: st.DataObject) -> None:
    assume(name not in names)
    records = population(names)
    proof = prove_absence(name, records)
    side = data.draw(st.sampled_from([s for s in ("before", "after") if getattr(proof, s)]))
    neighbour = getattr(proof, side)

    for spoilt in (
        None,
        replace(neighbour, content=canonical_json({"id": name})),
        replace(neighbour, content=neighbour.content + b" "),
        replace(neighbour, index=neighbour.index + 1),
        replace(neighbour, path=neighbour.path[:-1]),
    ):
        with pytest.raises(ProofError):
            check_absence(replace(proof, **{side: spoilt}), name, records)


def test_empty_tree_lacks_everything_and_nothing_else_does() -> None:
    nobody = Absence(before=None, after=None)

    check_absence(nobody, "ada", [])
    with pytest.raises(ProofError, match="around indexes 0 to 1"):
        check_absence(nobody, "ada", population({"bob"}))
    with pytest.raises(ProofMismatchError):
        verify_absence(nobody, place=bytes(32), place_of=place_of_record, size=0, root=bytes(32))


def test_neighbours_on_the_wrong_side_are_refused() -> None:
    """Two true and adjacent members prove nothing about a key beyond them."""
    records = population({"ada", "bob", "cleo"})
    first, middle, last = (
        Member(content=record, index=at, path=inclusion_proof([*map(leaf_hash, records)], at))
        for at, record in enumerate(records)
    )
    (above,) = (json.loads(record)["id"] for record in records[2:])
    (below,) = (json.loads(record)["id"] for record in records[:1])

    with pytest.raises(ProofError, match="upper neighbour"):
        check_absence(Absence(before=first, after=middle), above, records)
    with pytest.raises(ProofError, match="lower neighbour"):
        check_absence(Absence(before=middle, after=last), below, records)


@given(
    st.sets(st.none() | st.text(max_size=3) | st.integers(-(10**25), 10**25), max_size=12),
    st.none() | st.text(max_size=3) | st.integers(-(10**25), 10**25),
)
def test_absent_partition_is_provable_by_the_same_proof(values: set, value: object) -> None:
    partitions = [
        PartitionRoot(value=each, leaf_count=count, root=EMPTY_ROOT)
        for count, each in enumerate(values, start=1)
    ]
    statements = sorted(partition.statement() for partition in partitions)
    places = [place_of_partition(statement) for statement in statements]
    assert places == sorted(places)

    assume(value not in values)
    proof = absence_proof(
        partition_place(value),
        places=places,
        leaves=[leaf_hash(statement) for statement in statements],
        content_at=statements.__getitem__,
    )

    verify_absence(
        proof,
        place=partition_place(value),
        place_of=place_of_partition,
        size=len(statements),
        root=collection_root(partitions),
    )


@pytest.mark.parametrize(
    "content",
    [b"{}", b"[]", b'["other","eu",1,"00"]', b'["scan-pipeline/partition/v1",[],1,"00"]'],
)
def test_other_bytes_are_no_partition(content: bytes) -> None:
    with pytest.raises(ProofError, match="no partition's statement"):
        place_of_partition(content)
