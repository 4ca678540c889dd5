"""From a mapping to a scan, and from a scan to its open source: one line a protocol."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from scan_pipeline.core.calendar import schedule_problems
from scan_pipeline.core.column_names import is_column_name, is_ours, same_column
from scan_pipeline.core.contract import Contract
from scan_pipeline.core.errors import ConfigurationError, ContractError, ScanPipelineError
from scan_pipeline.core.operation import Operation, Schedule
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.scan import RecordSchema, Scan, source_json
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import adapter, record
from scan_pipeline.sources.adapter import AdapterFacts
from scan_pipeline.sources.adapter_guard import GuardedAdapter
from scan_pipeline.sources.adapter_loading import ADAPTER, load_adapter, with_adapter
from scan_pipeline.sources.field_names import place_of
from scan_pipeline.sources.file_problems import Problem, ScanFileError, problems_in
from scan_pipeline.sources.http.addresses import origin_of, shown
from scan_pipeline.sources.plain_secrets import plain_secrets
from scan_pipeline.sources.protocols import MODULES, protocol
from scan_pipeline.sources.provider_facts import PROVIDER, with_provider
from scan_pipeline.sources.redacting import RedactingSource
from scan_pipeline.sources.rounds import wrong_in_rounds
from scan_pipeline.sources.sent_names import sent_twice
from scan_pipeline.sources.source import Source
from scan_pipeline.sources.surroundings import Surroundings


@record
class Blocks:
    """What every scan file holds beside its source.

    Attributes:
        name: names the tables, the assets and what commands ask for.
        contract: what the walk is held to.
        operation: how the work is done; nothing here changes what the result means.
        record_schema: dotted path of a `pandera.polars.DataFrameModel`, or columns, or
            nothing: key and inferred columns.
        schedule: when a new generation is begun.
        description: one sentence.
    """

    name: str
    contract: Contract
    operation: Operation = Operation()
    record_schema: RecordSchema = None
    schedule: Schedule | None = None
    description: str | None = None


def parse_scan(attributes: Mapping[str, Any], *, stored: bool = False) -> Scan:
    """Read a scan file's attributes, refusing unknown fields and wrong types.

    Args:
        attributes: of a scan file, or of an open event.
        stored: whether a walk was begun with them. It is then judged under them, also where a
            scan file could no longer put them together so.

    Raises:
        ScanFileError: what is wrong, all of it.
    """
    raw = dict(attributes)
    source = raw.pop("source", None)
    problems: list[Problem] = []
    facts = _parse_source(source, problems)
    if not stored and isinstance(source, Mapping) and isinstance(source.get(ADAPTER), Mapping):
        # Else a file could say of changed code that it is the code which was checked.
        told = "found a revision; expected the dotted path alone, the code says its own revision"
        problems.append(Problem(at=("source", ADAPTER), message=told))
    blocks = _parse(Blocks, raw, (), problems)
    if facts is not None and blocks is not None and not stored:
        problems += _contradictions(facts, blocks)
    if facts is None or blocks is None or problems:
        raise ScanFileError(tuple(problems))
    return Scan(
        name=blocks.name,
        source=facts,
        contract=blocks.contract,
        operation=blocks.operation,
        record_schema=blocks.record_schema,
        schedule=blocks.schedule,
        description=blocks.description,
    )


def open_source(scan: Scan, surroundings: Surroundings) -> Source:
    """Open a scan's source; nothing is sent yet."""
    source = (
        _open_adapter(scan.source, surroundings)
        if isinstance(scan.source, AdapterFacts)
        else protocol(scan.source.protocol).open(scan.source, surroundings)
    )
    redact = scan.source.redact
    return source if redact is None else RedactingSource(source, redact)


def _open_adapter(facts: AdapterFacts, surroundings: Surroundings) -> Source:
    """Open a source of the user's own; which code walks is said by us, whatever it says."""
    loaded = load_adapter(facts.adapter.name)
    source = loaded.kind(facts, surroundings)
    source.adapter = AdapterRevision(name=loaded.ref.name, revision=loaded.ref.revision)
    return GuardedAdapter(source, clock=surroundings.clock)


def _parse_source(source: Any, problems: list[Problem]) -> SourceFacts | None:
    if not isinstance(source, Mapping):
        problems.append(Problem(at=("source",), message="missing; expected the source's facts"))
        return None
    try:
        source, conflicts = with_provider(source)
    except ContractError as error:
        problems.append(Problem(at=("source", PROVIDER), message=str(error)))
        return None
    problems += [Problem(at=("source", *each.at), message=each.message) for each in conflicts]
    if ADAPTER in source:
        return _parse_adapter(source, problems)
    if "protocol" not in source:
        told = f"missing; expected one of: {', '.join(MODULES)}; or a provider, or an adapter"
        problems.append(Problem(at=("source", "protocol"), message=told))
        return None
    try:
        found = protocol(str(source["protocol"]))
    except ContractError as error:
        problems.append(Problem(at=("source", "protocol"), message=str(error)))
        return None
    return _parse(found.facts, source, ("source",), problems)


def _parse_adapter(source: Mapping[str, Any], problems: list[Problem]) -> SourceFacts | None:
    try:
        source, loaded = with_adapter(source)
    except ContractError as error:
        problems.append(Problem(at=("source", ADAPTER), message=str(error)))
        return None
    return _parse(loaded.kind.FACTS, source, ("source",), problems)


def _parse(kind: type[Any], raw: Any, at: tuple[str, ...], problems: list[Problem]) -> Any:
    try:
        return adapter(kind).validate_json(json.dumps(raw))
    except ValidationError as error:
        whole = Scan if kind is Blocks else kind  # whose fields are those of the file
        problems += problems_in(error, raw, at, kind=whole)
    except (TypeError, ValueError) as error:
        problems.append(Problem(at=at, message=f"not plain JSON values: {error}"))
    except ScanPipelineError as error:
        place = place_of(kind, raw, str(error))
        problems.append(Problem(at=(*at, *place), message=str(error)))
    return None


def _contradictions(source: SourceFacts, blocks: Blocks) -> list[Problem]:
    """Find blocks that are right alone and wrong together."""
    contract, found = blocks.contract, list[Problem]()

    def wrong(*at: str, message: str) -> None:
        found.append(Problem(at=at, message=message))

    if contract.consistency == "snapshot" and source.snapshot is None:
        wrong("contract", "consistency", message="snapshot needs source.snapshot, the pin to send")
    if contract.consistency == "high_water_mark" and source.high_water_mark is None:
        wrong("contract", "consistency", message="high_water_mark needs source.high_water_mark")
    if contract.consistency == "change_token" and source.change_token_basis is None:
        wrong("contract", "consistency", message="change_token needs source.change_token")
    if contract.consistency == "two_equal_walks" and source.positions_are_ours:
        fields = source.position_fields
        if not fields or not {*fields} <= {*contract.key}:
            wrong(
                "contract",
                "consistency",
                message="two_equal_walks needs pages that go by the immutable key; offsets, page "
                "numbers and other fields shift with every row that comes, goes or changes",
            )
    if contract.denominator == "end_signal" and source.end_signal_basis != "provider_documented":
        wrong(
            "contract",
            "denominator",
            message="end_signal counts only where the provider documents that its end proves the "
            "whole (source.end_signal_basis: provider_documented); expected another denominator: "
            "a count, counts by partition, an id sequence, a manifest or a source root",
        )
    for at, message in wrong_in_rounds(source, contract, blocks.record_schema):
        wrong(*at, message=message)
    if contract.limits.over_count is not None and not source.exact_total:
        wrong("contract", "limits", "over_count", message="needs an exact source.count")
    expect = contract.expect
    if expect.partition_counts == "source" and getattr(source, "partition_counts", None) is None:
        wrong("contract", "expect", "partition_counts", message="needs source.partition_counts")
    if expect.partition_counts is not None and contract.partition_by is None:
        wrong("contract", "expect", "partition_counts", message="needs contract.partition_by")
    sequence = expect.id_sequence
    if sequence is not None and sequence.last == "count" and not source.exact_total:
        wrong(
            "contract", "expect", "id_sequence", "last", message="count needs an exact source.count"
        )
    if sequence is not None and contract.key != (sequence.field,):
        wrong("contract", "expect", "id_sequence", "field", message="must be the key, alone")
    for name, message in () if blocks.schedule is None else schedule_problems(blocks.schedule):
        wrong("schedule", name, message=message)
    for name in sent_twice(source):
        wrong("source", message=f"{name} is sent for two things; expected a name for each")
    by_name = dict[str, str]()
    for what, each in _columns_needed(source, contract):
        at = _COLUMNS_AT[what]
        if is_ours(each) or not is_column_name(each):
            wrong(*at, message=f"{what} names {each!r}, a name no field has in our tables")
        elif by_name.setdefault(same_column(each), each) != each:
            other = by_name[same_column(each)]
            wrong(*at, message=f"{what} names {each!r} beside {other!r}: one column to Delta")
    if contract.mode == "bounded" and not (contract.limits.records or contract.limits.pages):
        wrong("contract", "limits", message="mode bounded needs limits.records or limits.pages")
    for at, message in _wrong_redactions(source, contract, blocks.record_schema):
        wrong(*at, message=message)
    if isinstance(blocks.record_schema, tuple):
        names = {column.name for column in blocks.record_schema}
        for what, each in _columns_meant(source, contract):
            if each not in names:
                wrong("record_schema", message=f"has no column for {what} {each!r}")
    for at, message in source.contradictions(contract):
        wrong(*at, message=message)
    for at, message in (*_wrong_addresses(source), *plain_secrets(source_json(source))):
        wrong("source", *at, message=message)
    return found


def _wrong_redactions(
    source: SourceFacts, contract: Contract, schema: RecordSchema
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each thing that is to be redacted and that the proof, or the table, rests on."""
    redact = source.redact
    if redact is None:
        return
    positions = (("field that pages go by", each) for each in source.position_fields)
    for what, field in (*_columns_meant(source, contract), *positions):
        if redact.touches(field):
            yield (
                ("source", "redact"),
                f"touches {field!r}, the {what}; expected what proof and pages do not rest on",
            )
    columns = schema if isinstance(schema, tuple) else ()
    for column in columns:
        if not column.nullable and redact.touches(column.name):
            yield (
                ("source", "redact"),
                f"touches {column.name!r}, a column that is never null; expected nullable: true",
            )


def _columns_meant(source: SourceFacts, contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield every column that the contract speaks of, and as what."""
    yield from (("key field", each) for each in contract.key)
    yield from _columns_needed(source, contract)


_COLUMNS_AT: Final[Mapping[str, tuple[str, ...]]] = {
    "partition_by": ("contract", "partition_by"),
    "every_record": ("contract", "expect", "every_record"),
    "high_water_mark.field": ("source", "high_water_mark", "field"),
}
"""Where a scan file names a column that must be one, by what it is named as."""


def _columns_needed(source: SourceFacts, contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield what must be a column of its own whatever the record schema; a key need not."""
    if contract.partition_by is not None:
        yield "partition_by", contract.partition_by
    yield from (("every_record", each) for each in contract.expect.every_record or {})
    if source.high_water_mark is not None and source.high_water_mark.field is not None:
        yield "high_water_mark.field", source.high_water_mark.field


def _wrong_addresses(source: SourceFacts) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each address that is none, shows a secret, or lies where credentials must not go."""
    facts = source_json(source)
    if facts.get("url") is None:
        return
    asides = {name: value for name, value in facts.items() if isinstance(value, dict)}
    addresses = {("url",): facts["url"]}
    addresses |= {(name, "url"): value["url"] for name, value in asides.items() if "url" in value}
    for at, address in addresses.items():
        try:
            elsewhere = origin_of(address) != origin_of(facts["url"])
        except ConfigurationError as error:
            yield at, str(error)
            continue
        if "@" in address.split("://", 1)[1].split("/", 1)[0]:
            yield at, "holds credentials, which receipts would show; name them under auth instead"
        elif elsewhere:
            yield at, f"lies on another origin than {shown(facts['url'])}; expected the same"
