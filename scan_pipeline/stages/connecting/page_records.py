"""The records of one page held against key and schema, in memory; nothing is staged."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.records.inference import infer_columns
from scan_pipeline.stages.records.keys import key_of
from scan_pipeline.stages.records.model_checks import ModelChecks
from scan_pipeline.stages.records.parsing import RecordParser
from scan_pipeline.stages.records.schema import resolve_schema

_KINDS: Final[Mapping[type, str]] = {str: "text", int: "integer"}


@record
class Seen:
    """What a page's records are like, without any of their values.

    Attributes:
        without_key: records without a readable key.
        twice: keys that stand on the page more than once.
        key_kinds: kinds of the key's fields.
        nonconforming: records that the schema refuses.
        wrong: fields that it refuses, each with the kind that was wanted.
        fields: names of the columns, inferred where none are declared.
        unknown: names of fields that have no column.
    """

    without_key: int
    twice: int
    key_kinds: tuple[str, ...]
    nonconforming: int
    wrong: tuple[tuple[str, str], ...]
    fields: tuple[str, ...]
    unknown: tuple[str, ...]


def look_at(scan: Scan, records: Sequence[bytes]) -> Seen:
    """Hold records against a scan's key and record schema.

    Raises:
        ContractError: the record schema cannot be resolved.
    """
    keys = [key_of(text, scan.contract.key) for text in records]
    told = [key for key in keys if key is not None]
    kinds = tuple(_KINDS.get(type(each), "?") for each in json.loads(told[0])) if told else ()
    schema = resolve_schema(scan.record_schema)
    wrong: dict[tuple[str, str], None] = {}
    refused = set[int]()
    unknown: dict[str, None] = {}
    columns = schema.columns
    if columns is None:
        columns = infer_columns([records])
    else:
        parsed = RecordParser(schema).parse(records)
        for each in parsed.refused:
            refused.add(each.row)
            wrong[each.column or "the record", each.expected] = None
        for failed in ModelChecks(schema).failed(parsed.columns, refused=set(refused)):
            refused.add(failed.row)
            wrong[failed.column, failed.check] = None
        for text in parsed.extra.values():
            unknown |= dict.fromkeys(json.loads(text))
    return Seen(
        without_key=len(keys) - len(told),
        twice=sum(1 for number in Counter(told).values() if number > 1),
        key_kinds=kinds,
        nonconforming=len(refused),
        wrong=tuple(wrong),
        fields=tuple(columns.names),
        unknown=tuple(unknown),
    )
