"""The record schema moves between two nights, or the records do: nothing of before is lost."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pandera.polars as pa
import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.readers.changes import changes
from scan_pipeline.stages.records.schema import resolve_schema
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.walking.contract_check import check_contract
from scan_pipeline_tests.conftest import laid_down


class First(pa.DataFrameModel):
    """Two columns."""

    id: str
    n: int


class Later(pa.DataFrameModel):
    """One more, one of another type, one less."""

    id: str
    n: float
    colour: str = pa.Field(nullable=True)


@pytest.fixture
def model() -> Iterator[ModuleType]:
    """A module whose model a night may find changed, as after a release."""
    module = ModuleType("drifting_model")
    module.Thing = First  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


SCHEMA = {"record_schema": "drifting_model.Thing"}
PLAIN = b'{"id":"t%d","n":%d}'
COLOURED = b'{"id":"t%d","n":%d,"colour":"red"}'


def test_model_that_gains_a_column_leaves_earlier_nights_as_they_were(
    bench: Any, model: ModuleType
) -> None:
    """Each generation has the columns it was staged with; what both have is compared."""
    first = bench.walk_records([[*(PLAIN % (n, n) for n in range(4)), COLOURED % (9, 9)]], SCHEMA)
    model.Thing = Later  # type: ignore[attr-defined]
    rows = [b'{"id":"t0","n":0,"colour":null}']
    rows += [COLOURED % numbers for numbers in ((1, 1), (2, 20), (5, 5))]
    place = bench.workspace(project=first.workspace.project, inner=laid_down([rows]))
    night = run_scan(first.scan, workspace=place)
    later = night.stored.receipt.scan_generation
    collection = first.collection
    one, other = collection.generation(first.generation), collection.generation(later)
    found = changes(one, other, partition_by=None, workspace=place)
    own = [name for name in one.frame().collect_schema() if not name.startswith("_")]
    since = [name for name in other.frame().collect_schema() if not name.startswith("_")]

    assert night.stored.receipt.accepted
    assert (own, since) == (
        ["scan_generation", "id", "n"],
        ["scan_generation", "id", "n", "colour"],
    )
    assert one.frame().select("n", "_extra").collect().rows()[-1] == (9, '{"colour":"red"}')
    assert found.counts == {"added": 1, "removed": 2, "changed": 1}
    assert found.fields == {"n": 1}
    assert (found.columns_added, found.columns_retyped) == (("colour",), ())
    assert (found.not_compared, found.reformatted, found.uncompared) == (("colour",), 0, 2)
    assert "not compared, since the record schema moved: colour (2 records" in found.statement()
    for generation in (first.generation, later):
        report = Audit("things", generation, workspace=place).run()
        assert (report.level, report.disagreements) == ("bodies", ())


def test_column_of_another_type_is_not_compared(bench: Any, things: Any) -> None:
    """A number that became text is no change of every record."""
    as_number = [{"name": "id", "type": "string"}, {"name": "n", "type": "int64"}]
    as_text = [{"name": "id", "type": "string"}, {"name": "n", "type": "string"}]
    first = bench.walk_records([[PLAIN % (1, 1)]], {"record_schema": as_number})
    place = bench.workspace(
        project=first.workspace.project, inner=laid_down([[b'{"id":"t1","n":"1"}']])
    )
    night = run_scan(things({"record_schema": as_text}), workspace=place)
    opened = [
        first.collection.generation(each)
        for each in (first.generation, night.stored.receipt.scan_generation)
    ]
    found = changes(*opened, partition_by=None, workspace=place)

    assert found.columns_retyped == found.not_compared == ("n",)
    assert (found.rows.height, found.uncompared) == (0, 1)


@pytest.mark.parametrize("accepted", [0, 2])
def test_new_fields_are_kept_or_rejected_and_told_once_each(bench: Any, accepted: int) -> None:
    """One finding a field and generation; rejected, its records do not conform."""
    rows = [PLAIN % (1, 1), COLOURED % (2, 2), b'{"id":"t3","n":3,"colour":1,"size":2}']
    kept = bench.walk_records([rows])
    edits = {"contract.new_fields": "reject", "contract.accept.nonconforming": accepted}
    rejected = bench.walk_records([rows], edits)
    told = {
        walked.scan.contract.new_fields: [
            (each.code, each.found) for each in walked.receipt.findings.first
        ]
        for walked in (kept, rejected)
    }

    assert kept.verdict == ("verified", "all_records_in_snapshot", True)
    assert told["keep"] == [
        ("unknown_field", "colour in 2 records"),
        ("unknown_field", "size in 1 records"),
    ]
    assert told["reject"] == [
        ("new_field", "colour in 2 records"),
        ("new_field", "size in 1 records"),
    ]
    assert rejected.receipt.coverage_status == "verified"
    assert rejected.receipt.extraction.nonconforming == 2
    assert rejected.receipt.accepted == (accepted == 2)
    assert kept.receipt.judgement_digest != rejected.receipt.judgement_digest


def test_new_fields_cannot_be_told_without_a_schema(things: Any) -> None:
    scan = things({"record_schema": ..., "contract.new_fields": "reject"})
    with pytest.raises(ContractError, match="new_fields: reject and no record_schema"):
        check_contract(scan, resolve_schema(scan.record_schema))
