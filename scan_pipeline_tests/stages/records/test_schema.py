"""Record schemas are resolved before a walk, and refused before one."""

import sys
from types import ModuleType
from typing import Any, Optional

import pandera.polars as pa_model
import polars as pl
import pyarrow as pa
import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import Column
from scan_pipeline.stages.records.schema import TYPES, resolve_schema

CUSTOMER = "scan_pipeline.defs.customers.schema.Customer"


@pytest.fixture
def model(monkeypatch):
    """Puts a model with these fields under a dotted path."""

    def put(**fields: Any) -> str:
        named = ModuleType("models_of_a_test")
        kept = {name: value for name, value in fields.items() if isinstance(value, tuple)}
        plain = {name: kind for name, kind in fields.items() if name not in kept}
        body = {
            "__annotations__": {**plain, **{name: kind for name, (kind, _) in kept.items()}},
            "__module__": named.__name__,
            **{name: checked for name, (_, checked) in kept.items()},
        }
        named.Model = type("Model", (pa_model.DataFrameModel,), body)
        monkeypatch.setitem(sys.modules, named.__name__, named)
        return f"{named.__name__}.Model"

    return put


def test_shipped_model_has_plain_types_that_delta_keeps():
    resolved = resolve_schema(CUSTOMER)
    kinds = {field.name: str(field.type) for field in resolved.columns}

    assert kinds["balance"] == "decimal128(18, 2)"
    assert kinds["created_at"] == "timestamp[us, tz=UTC]"
    assert kinds["tags"] == "list<item: string>"
    assert kinds["external_id"] == "int64"
    assert resolved.optional == frozenset()
    assert resolved.columns.field("notes").nullable
    assert not resolved.columns.field("name").nullable


def test_inline_columns_may_be_lacking_where_they_may_be_null():
    columns = (
        Column(name="id", type="string", nullable=False),
        Column(name="n", type="int64"),
        Column(name="any", type="json"),
    )

    resolved = resolve_schema(columns)

    assert resolved.columns.equals(
        pa.schema(
            [pa.field("id", pa.string(), nullable=False), ("n", pa.int64()), ("any", pa.string())]
        )
    )
    assert resolved.optional == {"n", "any"}
    assert resolved.as_json == {"any"}
    assert resolved.model is None


def test_every_inline_type_can_be_stored():
    columns = tuple(Column(name=f"c_{name}", type=name) for name in TYPES)

    assert len(resolve_schema(columns).columns) == len(TYPES)


def test_no_schema_is_inferred_later():
    assert resolve_schema(None).columns is None


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (Column(name="a", type="int"), "has type 'int'; expected one of"),
        (Column(name="a", type="uint64"), "has type 'uint64'; expected one of"),
        (Column(name="_raw", type="string"), "names of ours"),
        (Column(name="scan_generation", type="string"), "names of ours"),
    ],
)
def test_inline_column_that_cannot_be_staged_is_refused(column, told):
    with pytest.raises(ContractError, match=told):
        resolve_schema((column,))


def test_column_named_twice_is_refused():
    twice = (Column(name="a", type="string"), Column(name="a", type="int64"))

    with pytest.raises(ContractError, match="more than once"):
        resolve_schema(twice)


@pytest.mark.parametrize(
    "path",
    ["nowhere.Model", "json.Model", "Model", "json.JSONDecoder", ""],
)
def test_path_without_a_model_is_refused(path):
    with pytest.raises(ContractError, match=r"record_schema .*(imported|DataFrameModel)"):
        resolve_schema(path)


@pytest.mark.parametrize(
    "kind",
    [
        pl.UInt64,
        pl.Time,
        pl.Duration,
        pl.Float32,
        pl.Categorical,
        pl.Datetime("ns", "UTC"),
        pl.Datetime("us", "Europe/Berlin"),
        pl.Datetime("us"),
        pl.List(pl.UInt8),
        pl.Struct({"a": pl.Time}),
    ],
)
def test_type_that_delta_would_change_is_refused_before_the_walk(model, kind):
    with pytest.raises(ContractError):
        resolve_schema(model(a=kind))


def test_optional_column_may_be_lacking(model):
    resolved = resolve_schema(model(a=str, b=Optional[int]))  # noqa: UP045  # Pandera's own form

    assert resolved.optional == {"b"}
    assert not resolved.columns.field("b").nullable


def test_schema_counts_by_its_content_and_not_by_its_name(model):
    base = resolve_schema(model(a=str)).fingerprint

    assert resolve_schema(model(a=str)).fingerprint == base
    assert resolve_schema(model(a=int)).fingerprint != base
    assert resolve_schema(model(b=str)).fingerprint != base
    for changed in (
        pa_model.Field(nullable=True),
        pa_model.Field(str_matches="^x"),
        pa_model.Field(unique=True),
    ):
        assert resolve_schema(model(a=(str, changed))).fingerprint != base


def test_bounds_of_a_check_are_content(model):
    one = resolve_schema(model(a=(int, pa_model.Field(ge=1)))).fingerprint
    two = resolve_schema(model(a=(int, pa_model.Field(ge=2)))).fingerprint

    assert one != two
