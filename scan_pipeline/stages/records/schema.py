"""The record schema of a scan, resolved: typed columns, and the Pandera model behind them."""

import importlib
from collections.abc import Mapping
from typing import Any, Final

import pandera.polars as pa_model
import polars as pl
import pyarrow as pa

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.column_names import GENERATION, is_ours
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import Column, RecordSchema
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ColumnType
from scan_pipeline.store.table_schema import check_table_schema

TYPES: Final[Mapping[ColumnType, pa.DataType]] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(38, 9),
    "json": pa.string(),
}
"""Types of inline columns; `json` keeps any value as its JSON text."""


@record
class ResolvedSchema:
    """What the records stage holds records against.

    Attributes:
        columns: typed columns in order; None where the schema is inferred from the pages.
        optional: names of columns a record may lack.
        as_json: names of columns that keep a value as JSON text.
        model: the Pandera model, None for inline and inferred schemas.
        fingerprint: digest of the content, not of the name.
    """

    columns: pa.Schema | None
    optional: frozenset[str]
    as_json: frozenset[str]
    model: type[pa_model.DataFrameModel] | None
    fingerprint: str

    @property
    def unique(self) -> list[frozenset[str]]:
        """The columns, or columns together, whose values the model wants to be unique."""
        if self.model is None:
            return []
        schema = self.model.to_schema()
        alone = [frozenset({name}) for name, column in schema.columns.items() if column.unique]
        return alone + ([frozenset(schema.unique)] if schema.unique else [])


def resolve_schema(declared: RecordSchema) -> ResolvedSchema:
    """Resolve a scan's record schema.

    Raises:
        ContractError: the model cannot be imported, or a column has a type we cannot stage.
    """
    if declared is None:
        return _resolved(None, frozenset(), frozenset(), None, {"inferred": 1})
    if isinstance(declared, str):
        return _of_model(_imported(declared), declared)
    fields, as_json = [], set[str]()
    for column in declared:
        fields.append(_inline_field(column))
        if column.type == "json":
            as_json.add(column.name)
    optional = frozenset(column.name for column in declared if column.nullable)
    content = {"columns": [column.__dict__ for column in declared]}
    columns = pa.schema(fields)
    _check_stored(columns, "record_schema")
    return _resolved(columns, optional, frozenset(as_json), None, content)


def resolve_declared(raw: Any) -> None:
    """Resolve a record schema as a scan file writes it, whatever else is wrong with the file.

    Raises:
        ContractError: as `resolve_schema`.
    """
    declared: RecordSchema = raw
    if isinstance(raw, list):
        declared = tuple(Column(**each) for each in raw)
    resolve_schema(declared)


def _imported(path: str) -> type[pa_model.DataFrameModel]:
    module, _, name = path.rpartition(".")
    try:
        model = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ContractError(
            f"record_schema {path!r} cannot be imported: {error}; expected the dotted path of a "
            "pandera.polars.DataFrameModel"
        ) from error
    if not (isinstance(model, type) and issubclass(model, pa_model.DataFrameModel)):
        raise ContractError(f"record_schema {path!r} is not a pandera.polars.DataFrameModel")
    return model


def _of_model(model: type[pa_model.DataFrameModel], path: str) -> ResolvedSchema:
    schema = model.to_schema()
    dtypes = {name: column.dtype.type for name, column in schema.columns.items()}
    arrow = pl.DataFrame(schema=dtypes).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    fields = [
        pa.field(name, _plain(arrow.field(name).type, path, name), nullable=column.nullable)
        for name, column in schema.columns.items()
    ]
    content = {
        "columns": [
            {
                "name": name,
                "type": str(field.type),
                "nullable": column.nullable,
                "required": column.required,
                "unique": column.unique,
                "checks": [str(check) for check in column.checks or ()],
            }
            for (name, column), field in zip(schema.columns.items(), fields, strict=True)
        ],
        "checks": [str(check) for check in schema.checks or ()],
        "strict": str(schema.strict),
    }
    _check_stored(pa.schema(fields), path)
    optional = frozenset(name for name, column in schema.columns.items() if not column.required)
    return _resolved(pa.schema(fields), optional, frozenset(), model, content)


def _resolved(
    columns: pa.Schema | None,
    optional: frozenset[str],
    as_json: frozenset[str],
    model: type[pa_model.DataFrameModel] | None,
    content: dict[str, Any],
) -> ResolvedSchema:
    return ResolvedSchema(
        columns=columns,
        optional=optional,
        as_json=as_json,
        model=model,
        fingerprint=f"sha256:{digest_of(content).hex()}",
    )


def _inline_field(column: Column) -> pa.Field:
    if column.type not in TYPES:
        raise ContractError(
            f"record_schema column {column.name!r} has type {column.type!r}; expected one of "
            f"{sorted(TYPES)}"
        )
    return pa.field(column.name, TYPES[column.type], nullable=column.nullable)


def _check_stored(columns: pa.Schema, path: str) -> None:
    """Refuse now what the table of records would refuse after a whole walk."""
    generation = pa.field(GENERATION, pa.string(), nullable=False)
    if ours := [name for name in columns.names if is_ours(name)]:
        raise ContractError(
            f"{path}: found the columns {ours}, names of ours; expected others: leave them out of "
            "the schema, and `_extra` keeps what records hold under them"
        )
    try:
        check_table_schema(pa.schema([generation, *(f.with_nullable(True) for f in columns)]))
    except ContractError as error:
        raise ContractError(f"{path}: {error}") from error


def _plain(kind: pa.DataType, path: str, name: str) -> pa.DataType:
    """Return the type as Delta stores it; large variants are the same values."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type, path, name))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type, path, name)) for each in kind])
    if pa.types.is_timestamp(kind) and (kind.unit != "us" or kind.tz != "UTC"):
        raise ContractError(
            f"{path}.{name} is {kind}; expected Datetime('us', 'UTC'): Delta would change it"
        )
    if pa.types.is_dictionary(kind) or pa.types.is_float32(kind):
        raise ContractError(f"{path}.{name} is {kind}; expected String or Float64")
    return kind
