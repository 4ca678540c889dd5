"""Proofs that a key is in a collection or is not, and forgeries of them."""

import json
from dataclasses import replace

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.key_proofs import KeyProof, ShownAbsence, verify_key_proof
from scan_pipeline.core.proofs import ProofError, ProofMismatchError
from scan_pipeline.core.value import adapter
from scan_pipeline.stages.readers.inclusion import prove_key

NOWHERE = ShownAbsence(before=None, after=None)
BY_HASH = {}
BY_FIELD = {"contract.partition_by": "n"}


@pytest.fixture
def proving(bench):
    def walk(edits=BY_HASH, count=40):
        records = [b'{"id":"t%d","n":%d}' % (n, n % 3) for n in range(count)]
        walked = bench.walk_records([records], edits)
        opened = walked.collection.latest()

        def prove(*key):
            return prove_key(opened, key, scan=walked.scan, workspace=walked.workspace)

        return prove, opened.receipt.merkle

    return walk


def holds(proof, merkle):
    written = adapter(KeyProof).dump_json(proof)
    verify_key_proof(adapter(KeyProof).validate_json(written), merkle=merkle)


@pytest.mark.parametrize("edits", [BY_HASH, BY_FIELD])
@pytest.mark.parametrize("number", [0, 7, 39])
def test_key_that_is_there_is_shown_by_its_record(proving, edits, number):
    prove, merkle = proving(edits)
    proof = prove(f"t{number}")

    assert proof.result == "included"
    assert json.loads(proof.shown[0].record.content)["id"] == f"t{number}"
    holds(proof, merkle)


@pytest.mark.parametrize("edits", [BY_HASH, BY_FIELD])
@pytest.mark.parametrize("key", ["t40", "", "zz", "T1"])
def test_key_that_is_not_there_is_shown_by_its_neighbours(proving, edits, key):
    prove, merkle = proving(edits)
    proof = prove(key)

    assert proof.result == "absent"
    holds(proof, merkle)


def test_absence_where_a_field_partitions_is_shown_in_every_partition(proving):
    prove, merkle = proving(BY_FIELD)
    proof = prove("t40")

    assert len(proof.shown) == merkle.partitions == 3
    with pytest.raises(ProofError, match="expected all 3"):
        holds(replace(proof, shown=proof.shown[:2]), merkle)
    with pytest.raises(ProofError, match="expected all 3"):
        holds(replace(proof, shown=(proof.shown[0],) * 3), merkle)


def test_empty_collection_holds_no_key(proving):
    prove, merkle = proving(count=0)
    proof = prove("t1")

    assert proof.result == "absent"
    holds(proof, merkle)


def test_proof_for_one_key_is_none_for_another(proving):
    prove, merkle = proving()

    with pytest.raises(ProofError):
        holds(replace(prove("t1"), key=("t2",)), merkle)
    with pytest.raises(ProofError):
        holds(replace(prove("t40"), key=("t1",)), merkle)


def test_absence_of_a_key_that_is_there_cannot_be_shown(proving):
    prove, merkle = proving()
    there, not_there = prove("t1"), prove("t40")

    for forged in (
        replace(not_there, key=("t1",)),
        replace(there, result="absent"),
        replace(
            there, result="absent", shown=(), no_partition=ShownAbsence(before=None, after=None)
        ),
        replace(there, result="absent", shown=(), partition_by="n"),
    ):
        with pytest.raises(ProofError):
            holds(forged, merkle)


def test_proof_under_another_root_is_refused(proving):
    prove, merkle = proving()
    proof = prove("t1")

    with pytest.raises(ProofError, match="the proof is about the root"):
        verify_key_proof(proof, merkle=replace(merkle, root="0" * 64))
    with pytest.raises(ProofMismatchError):
        verify_key_proof(replace(proof, root="0" * 64), merkle=replace(merkle, root="0" * 64))


def test_absence_by_another_partitioning_or_key_is_refused(proving):
    """Of a collection by a field, no partition is named as a key hash is, whatever the key."""
    prove, merkle = proving(BY_FIELD)
    proof = prove("t1")
    forged = replace(proof, result="absent", partition_by=None, shown=())

    with pytest.raises(ProofError, match="by key hash"):
        holds(forged, merkle)
    with pytest.raises(ProofError, match="keyed by"):
        holds(replace(proof, key_fields=("n",), key=(1,)), merkle)


def test_record_that_was_edited_in_a_proof_is_found_out(proving):
    prove, merkle = proving()
    proof = prove("t1")
    record = replace(proof.shown[0].record, content='{"id":"t1","n":9}')

    with pytest.raises(ProofMismatchError):
        holds(replace(proof, shown=(replace(proof.shown[0], record=record),)), merkle)


def test_key_of_another_length_is_refused(proving):
    prove, _ = proving()

    with pytest.raises(ContractError, match="2 values"):
        prove("t1", "t2")
