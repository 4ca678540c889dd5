"""A contract held against its record schema and its files, before anything is asked of a source."""

import pyarrow as pa

from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.manifest import read_manifest
from scan_pipeline.stages.record_schema import ResolvedSchema


def check_contract(scan: Scan, schema: ResolvedSchema) -> None:
    """Refuse before the walk what would be found out after it.

    Raises:
        ContractError: the record schema lacks a field that the contract speaks of, or holds no
            single value in it, or the manifest is not there or does not parse.
        ConfigurationError: the manifest cannot be read.
    """
    contract = scan.contract
    if contract.expect.manifest is not None:
        read_manifest(contract.expect.manifest)
    columns = schema.columns
    if columns is None:
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


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
