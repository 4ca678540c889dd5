"""A scan: a named enumeration of one source collection under one contract."""

from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from scan_pipeline.core.contract import Contract
from scan_pipeline.core.operation import Operation, Schedule
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import adapter, record
from scan_pipeline.core.vocabulary import ColumnType

SCAN_NAME = r"^[a-z][a-z0-9_]*$"


@record
class Column:
    """One column of an inline record schema.

    Attributes:
        name: the member of a record that it holds.
        type: what its values are.
        nullable: whether it may be null or missing.
    """

    name: str
    type: ColumnType
    nullable: bool = True


RecordSchema: TypeAlias = str | tuple[Column, ...] | None
"""A dotted path to a Pandera model, columns inline, or None (key, raw text, inferred columns)."""


@record
class Scan:
    """A named enumeration of one source collection under one contract."""

    name: Annotated[str, Field(pattern=SCAN_NAME)]
    source: SourceFacts
    contract: Contract
    operation: Operation = Operation()
    record_schema: RecordSchema = None
    schedule: Schedule | None = None
    description: str | None = None


def source_json(source: SourceFacts) -> dict[str, Any]:
    """Return a source's facts as JSON; secrets are references and stay references."""
    return adapter(type(source)).dump_python(source, mode="json", by_alias=True)


def scan_json(scan: Scan) -> dict[str, Any]:
    """Return a scan in the shape of a scan file's attributes; reading it gives the scan again."""
    return {
        "name": scan.name,
        "description": scan.description,
        "source": source_json(scan.source),
        "contract": adapter(Contract).dump_python(scan.contract, mode="json"),
        "operation": adapter(Operation).dump_python(scan.operation, mode="json"),
        "record_schema": adapter(RecordSchema).dump_python(scan.record_schema, mode="json"),
        "schedule": adapter(Schedule | None).dump_python(scan.schedule, mode="json"),
    }


def trial_of(scan: Scan, *, pages: int) -> Scan:
    """Return the trial of a scan: a few pages of it, under a scope of their own.

    The mode is part of the scope digest, so that a trial is comparable with no night of the scan,
    is never taken up as one, and opens to nobody who means the scan.

    Args:
        scan: the scan.
        pages: how many pages, at most.
    """
    limits = scan.contract.limits
    fewer = min(pages, limits.pages or pages)
    contract = replace(
        scan.contract, mode="trial", limits=replace(limits, pages=fewer, over_count=None)
    )
    operation = replace(scan.operation, restarts=0)
    return replace(scan, contract=contract, operation=operation, schedule=None)
