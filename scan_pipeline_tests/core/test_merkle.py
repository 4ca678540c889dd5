"""The tree against RFC 9162's recursion, published roots and vectors made without this code."""

import json
import random
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.core.canonical import CanonicalFormError, key_hash, leaf_hash
from scan_pipeline.core.merkle import (
    EMPTY_ROOT,
    PartitionRoot,
    TreeAccumulator,
    TreeError,
    collection_root,
    hash_partition,
    node_hash,
    partition_leaf,
    tree_root,
)

VECTORS = Path(__file__).parent.parent / "vectors"
TREE = json.loads((VECTORS / "tree.json").read_text(encoding="ascii"))

LEAVES = st.lists(st.binary(min_size=32, max_size=32), max_size=40)
PARTITIONS = st.dictionaries(
    st.none() | st.text(max_size=4) | st.integers(), st.integers(1, 9), max_size=9
)


def numbered(size: int) -> list[bytes]:
    return [leaf_hash(str(number).encode()) for number in range(size)]


def mth(leaves: list[bytes]) -> bytes:
    """RFC 9162, section 2.1.1, as it reads."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def partition_roots(counts: dict) -> list[PartitionRoot]:
    return [
        PartitionRoot(value=value, leaf_count=count, root=tree_root(numbered(count)))
        for value, count in counts.items()
    ]


def test_roots_are_those_that_certificate_transparency_published() -> None:
    published = TREE["certificate_transparency"]
    leaves = [leaf_hash(bytes.fromhex(each)) for each in published["inputs"]]

    found = [tree_root(leaves[:size]).hex() for size in range(len(leaves) + 1)]

    assert found == published["roots"]


def test_root_of_every_size_is_the_vectors() -> None:
    """Sizes 0 to 70, and one below, at and above a whole chunk."""
    leaves = numbered(2**17 + 1)

    found = {case["size"]: tree_root(leaves[: case["size"]]).hex() for case in TREE["roots"]}

    assert found == {case["size"]: case["root"] for case in TREE["roots"]}


def test_accumulator_gives_the_root_of_every_prefix() -> None:
    tree = TreeAccumulator(chunk_levels=2)
    leaves = numbered(70)

    for size, leaf in enumerate(leaves, start=1):
        tree.extend([leaf])
        assert (tree.size, tree.root()) == (size, mth(leaves[:size]))


@given(LEAVES, st.lists(st.integers(0, 40), max_size=6), st.integers(0, 4))
def test_neither_chunks_nor_pieces_show_in_the_root(
    leaves: list[bytes], cuts: list[int], chunk_levels: int
) -> None:
    tree = TreeAccumulator(chunk_levels=chunk_levels)
    edges = [0, *sorted(cuts), len(leaves)]

    for start, stop in pairwise(edges):
        tree.extend(iter(leaves[start:stop]))

    assert (tree.size, tree.root()) == (len(leaves), mth(leaves))


def test_empty_tree_is_the_hash_of_nothing() -> None:
    assert TreeAccumulator().root() == tree_root([]) == EMPTY_ROOT == sha256(b"").digest()


@given(LEAVES.filter(bool), st.data())
def test_any_changed_leaf_changes_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    bit = data.draw(st.integers(0, 255))
    changed = (int.from_bytes(leaves[index], "big") ^ 1 << bit).to_bytes(32, "big")

    assert tree_root([*leaves[:index], changed, *leaves[index + 1 :]]) != tree_root(leaves)


@given(LEAVES, st.randoms())
def test_any_other_order_changes_the_root(leaves: list[bytes], dice: random.Random) -> None:
    shuffled = leaves.copy()
    dice.shuffle(shuffled)

    assert (tree_root(shuffled) == tree_root(leaves)) == (shuffled == leaves)


@given(LEAVES.filter(bool), st.data())
def test_a_dropped_or_doubled_leaf_changes_the_root(
    leaves: list[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))

    assert tree_root(leaves[:index] + leaves[index + 1 :]) != tree_root(leaves)
    assert tree_root([*leaves[:index], leaves[index], *leaves[index:]]) != tree_root(leaves)


def test_a_node_is_no_leaf() -> None:
    """A tree of two never has the root of a one-record tree over the same bytes."""
    left, right = numbered(2)
    assert leaf_hash(left + right) != tree_root([left, right]) == node_hash(left, right)


@pytest.mark.parametrize("leaf", [b"", b"record", bytes(31), bytes(33)], ids=len)
def test_what_is_not_a_hash_is_no_leaf(leaf: bytes) -> None:
    tree = TreeAccumulator()
    with pytest.raises(TreeError, match=f"found leaves of .{len(leaf)}. bytes; expected"):
        tree.extend([bytes(32), leaf])
    assert tree.size == 0


@pytest.mark.parametrize("case", TREE["collections"], ids=lambda case: str(len(case["partitions"])))
def test_collection_is_the_vectors(case: dict) -> None:
    partitions = [
        PartitionRoot(
            value=each["value"], leaf_count=each["leaf_count"], root=bytes.fromhex(each["root"])
        )
        for each in case["partitions"]
    ]

    assert [each.statement().decode() for each in partitions] == [
        each["statement"] for each in case["partitions"]
    ]
    assert [
        partition_leaf(each.value, leaf_count=each.leaf_count, root=each.root).hex()
        for each in partitions
    ] == [each["leaf"] for each in case["partitions"]]
    assert collection_root(partitions).hex() == case["root"]


@given(PARTITIONS, st.randoms())
def test_partitions_are_ordered_by_their_statements(counts: dict, dice: random.Random) -> None:
    partitions = partition_roots(counts)
    shuffled = partitions.copy()
    dice.shuffle(shuffled)

    expected = mth([leaf_hash(each) for each in sorted(each.statement() for each in partitions)])

    assert collection_root(shuffled) == collection_root(iter(partitions)) == expected


def test_a_value_is_not_its_text() -> None:
    texts, numbers = partition_roots({"1": 2, "null": 1}), partition_roots({1: 2, None: 1})
    assert collection_root(texts) != collection_root(numbers)


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        (partition_roots({"eu": 1}) * 2, "twice"),
        (partition_roots({"eu": 1}) + partition_roots({"eu": 2}), "twice"),
        ([PartitionRoot(value="eu", leaf_count=0, root=EMPTY_ROOT)], "leave it out"),
        ([PartitionRoot(value="eu", leaf_count=1, root=b"short")], "5 bytes"),
        ([PartitionRoot(value=True, leaf_count=1, root=EMPTY_ROOT)], "by a bool"),
        ([PartitionRoot(value=1.5, leaf_count=1, root=EMPTY_ROOT)], "by a float"),
    ],
)
def test_malformed_partitions_are_refused(partitions: list[PartitionRoot], message: str) -> None:
    with pytest.raises(TreeError, match=message):
        collection_root(partitions)


def test_partition_by_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(CanonicalFormError, match="lone surrogate"):
        partition_leaf("\ud800", leaf_count=1, root=EMPTY_ROOT)


def test_default_partitions_stand_in_the_order_of_key_hashes() -> None:
    hashes = sorted(key_hash(b'["%d"]' % number) for number in range(1000))

    partitions = [hash_partition(each) for each in hashes]

    assert partitions == sorted(partitions)
    assert hash_partition(b"\x0a" + bytes(31)) == "0a"
