"""A record schema with columns: the declared ones, else those that the records show."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.records.inference import infer_columns
from scan_pipeline.stages.records.schema import ResolvedSchema


def named_columns(scan: Scan) -> list[str]:
    """Return the fields a contract speaks of, which are columns whether or not a record has them.

    Args:
        scan: the scan.
    """
    contract, bound = scan.contract, scan.source.high_water_mark
    named = [contract.partition_by, *(contract.expect.every_record or {})]
    named.append(None if bound is None else bound.field)
    return [name for name in dict.fromkeys(named) if name is not None]


def with_columns(
    schema: ResolvedSchema,
    *,
    pages: Iterable[Sequence[bytes]],
    named: Sequence[str],
    key: Sequence[str],
) -> ResolvedSchema:
    """Return a schema with columns, inferring them from all records where none are declared.

    Args:
        schema: the resolved one.
        pages: the records, page by page; not looked at where columns are declared.
        named: fields that are columns in any case.
        key: the key fields, which come before others to a column.
    """
    if schema.columns is not None:
        return schema
    columns = infer_columns(pages, named=(*named, *key))
    as_json = frozenset(
        field.name for field in columns if (field.metadata or {}).get(b"as") == b"json"
    )
    unseen = [name for name in named if name not in columns.names]
    plain = pa.schema(
        [
            *(pa.field(field.name, field.type) for field in columns),
            *(pa.field(name, pa.string()) for name in unseen),
        ]
    )
    return ResolvedSchema(
        columns=plain,
        optional=frozenset(plain.names),
        as_json=as_json,
        model=None,
        fingerprint=schema.fingerprint,
    )


def columns_of(schema: ResolvedSchema) -> pa.Schema:
    """Return the columns of a schema that has some."""
    if schema.columns is None:
        raise ValueError("columns are inferred before the layout is made")
    return schema.columns
