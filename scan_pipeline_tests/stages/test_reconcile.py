"""What arrived, in figures: counts, gaps, repeats, conflicts and expectations, from the tables."""

import json
import random
from hashlib import sha256

import pytest

from scan_pipeline.core.canonical import canonical_json, key_bytes, key_hash, leaf_hash
from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages import reconcile
from scan_pipeline.stages.reconcile import Reconciler
from scan_pipeline.stages.reconciling.evidence import walk_evidence

WHOLE = ("verified", "all_records_in_snapshot", True)
FAILED = ("failed", "observed_pages_only", False)


def records(*numbers, **members):
    return [json.dumps({"id": f"r-{n}", "n": n, **members}).encode() for n in numbers]


def root_of(texts, *, partition_of):
    """The collection root, computed by the definition and by nothing of ours but the leaves."""

    def tree(leaves):
        if not leaves:
            return sha256(b"").digest()
        if len(leaves) == 1:
            return leaves[0]
        split = 1 << (len(leaves) - 1).bit_length() - 1
        return sha256(b"\x01" + tree(leaves[:split]) + tree(leaves[split:])).digest()

    parts = {}
    for text in set(texts):
        record = json.loads(text)
        hashed = key_hash(key_bytes([record["id"]]))
        parts.setdefault(partition_of(record, hashed), []).append((hashed, leaf_hash(text)))
    leaves = []
    for value, found in parts.items():
        root = tree([leaf for _, leaf in sorted(found)])
        facts = ["scan-pipeline/partition/v1", value, len(found), root.hex()]
        leaves.append(canonical_json(facts))
    return tree([sha256(b"\x00" + each).digest() for each in sorted(leaves)]).hex()


def test_root_is_the_one_of_the_definition(bench):
    texts = records(*range(40))

    walked = bench.walk_records([texts[:25], texts[25:]])

    assert walked.receipt.merkle.root == root_of(
        texts, partition_of=lambda _, hashed: f"{hashed[0]:02x}"
    )


def test_root_by_a_field_is_the_one_of_the_definition(bench):
    texts = [json.dumps({"id": f"r-{n}", "n": n % 3 or None}).encode() for n in range(20)]

    walked = bench.walk_records([texts], {"contract.partition_by": "n"})

    assert walked.receipt.merkle.partitions == 3
    assert walked.receipt.merkle.root == root_of(texts, partition_of=lambda record, _: record["n"])


@pytest.mark.parametrize(
    ("kind", "value", "partition"),
    [
        ("int64", "7", "7"),
        ("bool", "true", "true"),
        ("decimal", "1.5", "1.500000000"),
        ("timestamp", '"2026-08-29T09:18:00Z"', "2026-08-29 09:18:00.000000+00:00"),
        ("int64", "null", None),
    ],
)
def test_partition_may_be_by_any_plain_value(bench, kind, value, partition):
    schema = [{"name": "id", "type": "string", "nullable": False}, {"name": "n", "type": kind}]
    edits = {"record_schema": schema, "contract.partition_by": "n"}

    walked = bench.walk_records([[b'{"id":"a","n":%b}' % value.encode()]], edits)
    store = walked.workspace.store("things", walked.generation)

    assert walked.verdict == WHOLE
    assert [row["partition"] for row in store.read_summaries()] == [partition]


def test_root_does_not_depend_on_order_pages_or_passes(bench, monkeypatch):
    texts = records(*range(60))
    plain = bench.walk_records([texts]).receipt.merkle

    monkeypatch.setattr(reconcile, "ROW_BYTES", reconcile.MEMORY // 4)
    shuffled = texts.copy()
    random.Random(7).shuffle(shuffled)
    passes = bench.walk_records([shuffled[:13], [], shuffled[13:]]).receipt.merkle

    assert passes == plain


def test_figures_do_not_depend_on_passes(bench, monkeypatch):
    """Repeats, conflicts and gaps are the same found in one pass or in many."""
    pages = [records(1, 2, 3), records(3, 4), records(2, 7, extra=1)]
    expect = {"contract.expect.id_sequence": {"field": "id", "prefix": "r-", "last": 7}}

    def figures():
        receipt = bench.walk_records(pages, expect).receipt
        return (
            receipt.coverage_status,
            receipt.missing_id_ranges,
            receipt.merkle,
            [(f.code, f.page, f.key, f.expected, f.found) for f in receipt.findings.first],
        )

    once = figures()
    monkeypatch.setattr(reconcile, "MEMORY", 1)

    assert sorted(map(str, figures())) == sorted(map(str, once))
    assert once[1] == ("r-5..r-6",)


def test_equal_content_in_other_bytes_is_one_record(bench):
    """Bytes decide first; where they differ, the canonical form does."""
    one = b'{"id":"a","n":1}'
    other = b'{ "n": 1, "id": "\\u0061" }'
    edits = {"contract.delivery": "at_least_once", "contract.expect.count": 1}

    walked = bench.walk_records([[one], [other]], edits, total=1)

    assert walked.verdict == WHOLE
    assert (walked.receipt.duplicate_ids, walked.receipt.conflicting_ids) == (1, 0)
    assert walked.receipt.merkle.root == root_of([one], partition_of=lambda _, h: f"{h[0]:02x}")


@pytest.mark.parametrize(
    "other",
    [b'{"id":"a","n":2}', b'{"id":"a","n":1,"x":null}', b'{"id":"a","n":1,"n":1}'],
    ids=["value", "member", "doubled member"],
)
def test_other_content_is_a_conflict_however_delivery_is_declared(bench, other):
    edits = {"contract.delivery": "at_least_once", "contract.accept.nonconforming": 1}

    walked = bench.walk_records([[b'{"id":"a","n":1}'], [other]], edits, total=1)
    told = [f for f in walked.receipt.findings.first if f.code == "conflicting_versions"]

    assert walked.verdict == FAILED
    assert (walked.receipt.conflicting_ids, walked.receipt.merkle.root) == (1, None)
    assert [(f.page, f.key, f.found) for f in told] == [(2, '["a"]', "several on pages [1, 2]")]


def test_key_tells_text_from_number(bench):
    mixed = {"record_schema": [{"name": "id", "type": "json", "nullable": False}]}

    walked = bench.walk_records([[b'{"id":1}', b'{"id":"1"}']], mixed)

    assert walked.verdict == WHOLE
    assert walked.receipt.unique_ids_observed == 2


@pytest.mark.parametrize(
    ("numbers", "verdict", "codes"),
    [
        ((1, 2, 3), WHOLE, set()),
        ((1, 3), FAILED, {"count_missed", "ids_missing"}),
        ((1, 2, 3, 4), FAILED, {"count_missed", "ids_beyond_sequence"}),
    ],
)
def test_id_sequence_up_to_the_count(bench, numbers, verdict, codes):
    sequence = {"field": "id", "prefix": "r-", "first": 1, "last": "count"}

    walked = bench.walk_records(
        [records(*numbers)], {"contract.expect.id_sequence": sequence}, total=3
    )

    assert walked.verdict == verdict
    assert walked.codes == codes


def test_ids_beyond_the_sequence_wait_for_the_end(bench):
    """A whole-collection expectation is not evaluated before the walk has finished."""
    edits = {
        "contract.expect.id_sequence": {"field": "id", "prefix": "r-", "last": 1},
        "contract.limits": {"pages": 1},
    }

    walked = bench.walk_records([records(1, 2), records(3)], edits)

    assert walked.verdict[0] == "unknown"
    assert walked.results["id_sequence"] == "not_evaluated"
    assert walked.codes == {"limit_reached"}


@pytest.fixture(scope="module")
def reconciled(shared_bench, things):
    """Reconciles records that were walked once under one contract after another."""
    nights = {}

    def under(pages, edits, *, schema=None):
        known = repr((pages, schema))
        if known not in nights:
            columns = {"record_schema": schema} if schema else {}
            nights[known] = shared_bench.walk_records(pages, columns)
        night = nights[known]
        store = night.workspace.store(night.scan.name, night.generation)
        rows, scan = store.records().read(night.generation), things(edits)
        return Reconciler(
            scan,
            walk=walk_evidence(scan, store.events()),
            total_moved=False,
            rows=rows.num_rows,
            batches=lambda columns: iter(rows.select(columns).to_batches()),
            text=lambda *_: b"",
            last_accepted=None,
        ).run()

    return under


def outcome(found, name):
    """Return the result of one expectation and the codes it was told by."""
    (told,) = (each for each in found.figures.expectations if each.name == name)
    return told.result, {each.code for each in found.figures.findings}


MET = ("met", set())
NO_COUNT = {"source.count": ...}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (['"r-1"', '"r-2"'], MET),
        (['["r-1"]', "", '["r-2"]', '"r-2"'], MET),
        (['"r-1"'], ("missed", {"manifest_missed"})),
        (['"r-1"', '"r-2"', '"r-3"'], ("missed", {"manifest_missed"})),
        (['"r-1"', '"r-3"'], ("missed", {"manifest_missed"})),
        ([], ("missed", {"manifest_missed"})),
    ],
)
def test_manifest_names_every_key(reconciled, tmp_path, keys, expected):
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text("\n".join(keys), encoding="utf-8")

    found = reconciled([records(1, 2)], {"contract.expect.manifest": str(manifest)})

    assert outcome(found, "manifest") == expected


def test_manifest_is_a_denominator_of_its_own(bench, tmp_path):
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text('"r-1"\n"r-2"\n', encoding="utf-8")
    edits = {**NO_COUNT, "contract.expect.manifest": str(manifest)}

    whole = bench.walk_records([records(1, 2)], edits)
    part = bench.walk_records([records(1)], edits)

    assert (whole.verdict, whole.receipt.records_expected) == (WHOLE, 2)
    assert (part.verdict, part.codes) == (FAILED, {"manifest_missed"})


@pytest.mark.parametrize("text", ["r-1", "1.5", '{"id":1}', "[]", None])
def test_manifest_that_is_none_is_a_fault_of_the_contract(reconciled, tmp_path, text):
    manifest = tmp_path / "manifest.jsonl"
    if text is not None:
        manifest.write_text(text, encoding="utf-8")

    with pytest.raises(ContractError, match="JSON key a line"):
        reconciled([records(1, 2)], {"contract.expect.manifest": str(manifest)})


def test_source_root_is_a_denominator_of_its_own(bench):
    texts = records(1, 2, 3)
    root = root_of(texts, partition_of=lambda _, hashed: f"{hashed[0]:02x}")
    edits = {**NO_COUNT, "contract.expect.source_root": root}

    whole = bench.walk_records([texts], edits)
    part = bench.walk_records([texts[:2]], edits)

    assert whole.verdict == WHOLE
    assert (part.verdict, part.codes) == (FAILED, {"source_root_missed"})


@pytest.mark.parametrize(
    ("counts", "result"),
    [
        ({"1": 2, "2": 1}, "met"),
        ({"1": 2, "2": 1, "3": 0}, "met"),
        ({"1": 2}, "missed"),
        ({"1": 1, "2": 2}, "missed"),
        ({"1": 2, "2": 1, "3": 1}, "missed"),
    ],
)
def test_partition_counts_may_stand_in_the_contract(reconciled, counts, result):
    texts = [b'{"id":"a","n":1}', b'{"id":"b","n":1}', b'{"id":"c","n":2}']
    edits = {"contract.partition_by": "n", "contract.expect.partition_counts": counts}

    told, codes = outcome(reconciled([texts], edits), "partition_counts")

    assert told == result
    assert codes == ({"partition_count_missed"} if result == "missed" else set())


EVERY = "contract.expect.every_record"


@pytest.mark.parametrize(
    ("value", "found"),
    [({"n": 1}, 0), ({"n": 2}, 2), ({"n": None}, 2), ({"n": "1"}, 2), ({"n": True}, 2),
     ({"id": "a"}, 1), ({"id": 1}, 2)],
)  # fmt: skip
def test_every_record_has_the_value_that_a_filter_promises(reconciled, value, found):
    """A value of another type is never equal: `1` is neither `"1"` nor true."""
    figures = reconciled([[b'{"id":"a","n":1}', b'{"id":"b","n":1}']], {EVERY: value})
    told = [each for each in figures.figures.findings if each.code == "filter_missed"]

    assert len(told) == found
    assert outcome(figures, "every_record")[0] == ("missed" if found else "met")


@pytest.mark.parametrize(
    ("value", "result"), [({"x": "eu"}, "met"), ({"x": "us"}, "missed"), ({"n": 1}, "met")]
)
def test_filter_is_held_against_what_is_readable_of_a_record(reconciled, value, result):
    odd = b'{"id":"a","n":1.5,"x":"eu"}'
    schema = [
        {"name": "id", "type": "string", "nullable": False},
        {"name": "n", "type": "int64", "nullable": False},
        {"name": "x", "type": "string", "nullable": False},
    ]

    found = reconciled([[odd]], {"record_schema": schema, EVERY: value}, schema=schema)

    assert outcome(found, "every_record")[0] == result


SWING = {"contract.expect.swing": {"records": 0.1}}


def test_swing_is_held_against_the_last_accepted_generation(bench):
    first = bench.walk_records([records(*range(20))], SWING)
    assert (first.verdict, first.results["swing"]) == (WHOLE, "not_evaluated")

    def next_night(*numbers):
        scan, workspace = first.scan, first.workspace
        served = bench.walk_records([records(*numbers)], SWING, project=workspace.project)
        assert served.scan == scan
        return served

    near = next_night(*range(22))
    far = next_night(*range(25))
    after = next_night(*range(24))

    assert (near.verdict, near.results["swing"]) == (WHOLE, "met")
    assert (far.verdict[0], far.codes) == ("unknown", {"swing_exceeded"})
    assert far.results == {"source_count": "met", "swing": "missed"}
    assert (after.verdict, after.results["swing"]) == (WHOLE, "met")


BOUND = {
    "contract.consistency": "high_water_mark",
    "source.high_water_mark": {"url": "http://source.test/mark", "at": "total", "send_as": "to"},
}


@pytest.mark.parametrize(
    ("kind", "values", "codes"),
    [
        ("int64", ["1", "2", "3"], set()),
        ("int64", ["1", "2", "4"], {"beyond_high_water_mark"}),
        ("decimal", ["1", "2.5", "3.1"], {"beyond_high_water_mark"}),
        ("float64", ["1", "2.5", "3.5"], {"beyond_high_water_mark"}),
        ("timestamp", ['"2026-08-29T09:18:00Z"'] * 3, {"reported_invalid"}),
    ],
)
def test_bound_is_held_against_the_field_in_its_own_type(bench, kind, values, codes):
    """The mark of these tests is 3, the number that the source reports."""
    schema = [{"name": "id", "type": "string", "nullable": False}, {"name": "n", "type": kind}]
    texts = [b'{"id":"%d","n":%b}' % (n, v.encode()) for n, v in enumerate(values)]

    walked = bench.walk_records(
        [texts], {**BOUND, "source.high_water_mark.field": "n", "record_schema": schema}
    )

    assert walked.receipt.high_water_mark == "3"
    assert walked.codes == codes
