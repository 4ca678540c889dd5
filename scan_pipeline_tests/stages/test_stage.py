"""Records as they are staged: typed, keyed, hashed, and told apart where they do not conform."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scan_pipeline.core.canonical import key_hash, leaf_hash
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.simulator.population import population
from scan_pipeline.stages.records.layout import OURS
from scan_pipeline.stages.records.schema import resolve_schema
from scan_pipeline.stages.stage import Staging

WHOLE = ("verified", "all_records_in_snapshot", True)
TRAPS = [
    b'{"id":"exact","n":9223372036854775807}',
    b'{"id":"beyond","n":9223372036854775808}',
    b'{"id":"fraction","n":1.9}',
    b'{"id":"truth","n":true}',
    b'{"id":"text","n":"12"}',
    b'{"id":"doubled","n":1,"n":2}',
    b'{"id":"surrogate","n":1,"x":"\\ud800"}',
    b'{"id":"late","n":7,"x":{"y":1.50}}',
    b'{"id":"null","n":null}',
    b'{"id":"missing"}',
]


def staged(walked):
    """Return the staged rows by the id that is in their key."""
    rows = (
        walked.workspace.store(walked.scan.name, walked.generation)
        .records()
        .read(walked.generation)
    )
    return {row["_key"].split('"')[1]: row for row in rows.to_pylist()}


def test_each_trap_is_an_exact_value_or_a_nonconforming_record(bench):
    walked = bench.walk_records([TRAPS[:6], TRAPS[6:]], {"contract.accept.nonconforming": 6})
    rows = staged(walked)

    assert walked.verdict == WHOLE
    assert walked.receipt.extraction.nonconforming == 6
    assert {name for name, row in rows.items() if not row["_conforming"]} == {
        "beyond",
        "fraction",
        "truth",
        "text",
        "doubled",
        "surrogate",
    }
    assert {name: row["n"] for name, row in rows.items() if row["n"] is not None} == {
        "exact": 2**63 - 1,
        "late": 7,
    }
    assert rows["late"]["_extra"] == '{"x":{"y":1.5}}'
    assert walked.notes == {"nonconforming", "unknown_field"}


def test_row_knows_where_it_came_from_and_what_it_was(bench):
    walked = bench.walk_records([TRAPS[:6], TRAPS[6:]], {"contract.accept.nonconforming": 6})
    rows = staged(walked)

    assert [(row["_page"], row["_position"]) for row in rows.values()] == [
        (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 0), (2, 1), (2, 2), (2, 3)
    ]  # fmt: skip
    for (name, row), text in zip(rows.items(), TRAPS, strict=True):
        assert row["_leaf_hash"] == leaf_hash(text)
        assert row["_key_hash"] == key_hash(b'["%b"]' % name.encode())
        assert row["_raw"] == (None if row["_conforming"] else text.decode())


def test_findings_name_page_field_and_what_was_found(bench):
    walked = bench.walk_records([TRAPS[:2], TRAPS[2:3]])
    told = [(f.page, f.expected, f.found) for f in walked.receipt.findings.first]

    assert told == [
        (1, "n: int64", "a value that int64 does not hold: OverflowError"),
        (2, "n: int64", "a number"),
    ]


def test_own_columns_come_last_and_are_ours(bench):
    walked = bench.walk_records([TRAPS[:1]])
    columns = walked.collection.latest().arrow().column_names

    assert columns == ["scan_generation", "id", "n", *OURS.names]


def test_inferred_columns_hold_every_record(bench):
    pages = [
        [b'{"id":1,"a":"x","b":1.5}', b'{"id":2,"a":null,"b":[1]}'],
        [b'{"id":3,"late":true,"_key":"not ours"}'],
    ]

    walked = bench.walk_records(pages, {"record_schema": ...})
    rows = walked.collection.latest().frame().select("id", "a", "b", "late", "_extra").collect()

    assert walked.verdict == WHOLE
    assert rows.rows() == [
        (1, "x", "1.5", None, None),
        (2, None, "[1]", None, None),
        (3, None, None, True, '{"_key":"not ours"}'),
    ]


def test_inferred_columns_of_no_record_are_none(bench, opens):
    walked = bench.walk_records([[]], {"record_schema": ..., "contract.partition_by": "region"})

    assert walked.verdict == WHOLE
    assert walked.opens == opens(whole=0, partial=0, published=0)


def test_partition_that_no_record_shows_is_the_one_without_a_value(bench):
    walked = bench.walk_records(
        [[b'{"id":"a"}', b'{"id":"b"}']],
        {"record_schema": ..., "contract.partition_by": "region"},
    )

    assert walked.verdict == WHOLE
    assert walked.receipt.merkle.partitions == 1


UNCHECKED = """
import json, sys
from contextlib import ExitStack
from pathlib import Path
from scan_pipeline_tests.conftest import Bench

with ExitStack() as stack:
    bench = Bench(folder=Path(sys.argv[1]), stack=stack, shipped={})
    walked = bench.walk_records([[each.encode() for each in json.loads(sys.argv[2])]], {
        "record_schema": "scan_pipeline.defs.customers.schema.Customer",
        "contract.key": ["customer_id"],
    })
print(json.dumps([each.expected for each in walked.receipt.findings.first]))
"""


def test_environment_does_not_lower_the_depth_of_validation(tmp_path):
    """Pandera reads these variables when it is imported, hence a process of its own."""
    right, wrong = (row.raw for row in population("customers", 2))
    wrong = re.sub(rb'"status":"[a-z]+"', b'"status":"unheard of"', wrong)
    asked = subprocess.run(
        [sys.executable, "-c", UNCHECKED, tmp_path, json.dumps([right.decode(), wrong.decode()])],
        env={
            **os.environ,
            "PANDERA_VALIDATION_ENABLED": "False",
            "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY",
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(asked.stdout) == ["status: isin(['active', 'suspended', 'closed'])"]


def test_body_that_is_not_the_admitted_one_is_not_staged(bench):
    """The leaves are held against the digests that were committed with the pages."""
    walked = bench.walk_records([TRAPS[:1]])
    other = bench.walk_records([TRAPS[1:2]])
    store = walked.workspace.store(walked.scan.name, walked.generation)
    foreign = other.workspace.store(other.scan.name, other.generation)
    store.bodies = foreign.bodies
    source = walked.workspace.source(walked.scan)

    with pytest.raises(TamperedError, match="page 1 are not those that were admitted"):
        Staging(
            walked.scan,
            source=source,
            store=store,
            schema=resolve_schema(walked.scan.record_schema),
        ).run()
