"""A contract held against its record schema and its files, before anything is asked of a source."""

import pyarrow as pa

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.reconciling.manifest import read_manifest
from scan_pipeline.stages.records.schema import ResolvedSchema


def check_contract(scan: Scan, schema: ResolvedSchema) -> None:
    """Refuse before the walk what would be found out after it.

    Raises:
        ContractError: the record schema lacks a field that the contract speaks of, or holds no
            single value in it, or asks for unique values beside the key; or there is none for
            new fields to be rejected by; or the manifest is not there or does not parse.
        ConfigurationError: the manifest cannot be read.
    """
    contract = scan.contract
    if contract.expect.manifest is not None:
        read_manifest(contract.expect.manifest)
    _check_unique(scan, schema)
    columns = schema.columns
    if columns is None:
        if contract.new_fields == "reject":
            raise ContractError(
                f"{scan.name}: found new_fields: reject and no record_schema; expected one: "
                "without it every field is known once it is seen"
            )
        return
    named = {contract.partition_by, *(contract.expect.every_record or {})} - {None}
    if lacking := sorted(str(each) for each in named - {*columns.names}):
        raise ContractError(
            f"{scan.name}: found no column {lacking} in the record schema; expected every "
            "field that partition_by and expect.every_record name: correct one or the other"
        )
    by = contract.partition_by
    if by is not None and not _is_plain(columns.field(by).type):
        raise ContractError(
            f"{scan.name}: partition_by names {by}, a column of {columns.field(by).type}; expected "
            "one of single values, best text or integers: partition by another"
        )


def _check_unique(scan: Scan, schema: ResolvedSchema) -> None:
    """Refuse uniqueness that nothing holds against all records.

    A model sees one batch of records at a time: it would find a value twice in one batch, and not
    in two. What is unique because the key is, reconciliation holds against all of them.
    """
    for names in schema.unique:
        if not names.issuperset(scan.contract.key):
            raise ContractError(
                f"{scan.name}: record_schema asks for unique values of {', '.join(sorted(names))}; "
                f"expected no more than the contract's key, {', '.join(scan.contract.key)}, which "
                "is held against all records: make them the key, or take `unique` out of the model"
            )


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
