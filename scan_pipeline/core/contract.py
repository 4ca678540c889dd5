"""A scan and its contract: three blocks of facts, a digest each.

*Scope* says which population is enumerated (source, filter, order, projection, end signal, pin);
*judgement* says what is held against it (key, schema, expectations, consistency, accept level);
*operation* says how the work is done (limits, page size, retries, schedule). Only the scope
digest decides whether two generations are comparable.
"""

from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Field, PlainSerializer

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.core.vocabulary import (
    WHOLE_COLLECTION,
    AssumptionBasis,
    Basis,
    ConclusionScope,
    Consistency,
    ContinuationKind,
    CoverageStatus,
    Delivery,
    LeafEncoding,
    Mode,
)

SCAN_NAME = r"^[a-z][a-z0-9_]*$"


def _path_steps(raw: object) -> object:
    """Read `a.b` as two steps, a list as steps taken literally, and `$` as the body itself.

    The name of an OData annotation (`@odata.nextLink`, `members@odata.count`) is one step: split at
    its dot it would lead nowhere, and nowhere is where some sources show their end.
    """
    if isinstance(raw, str):
        if "@" in raw:
            return (raw,)
        return () if raw == "$" else tuple(raw.split("."))
    return tuple(raw) if isinstance(raw, list) else raw  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


FieldPath: TypeAlias = Annotated[
    tuple[str, ...], BeforeValidator(_path_steps), PlainSerializer(list, return_type=list[str])
]
"""Where a field lies in a JSON body: `page.next_cursor`, or `["@odata.nextLink"]` with dots."""

PositiveInt: TypeAlias = Annotated[int, Field(gt=0)]
NaturalInt: TypeAlias = Annotated[int, Field(ge=0)]


@record
class CountFacts:
    """A count the source reports beside its pages."""

    at: FieldPath
    means: Literal["total", "remaining", "page"] = "total"
    exactness: Literal["exact", "estimate"]
    basis: Basis = "user_declared"


@record
class SnapshotFacts:
    """A pin: the source version that the first answer reports and every later request names.

    Attributes:
        at: where an answer reports the version.
        send_as: parameter that names it.
        travels_in: what names it in a later request. `continuation`: the token carries it, and the
            parameter must not stand beside one; it is sent where the first page is read again.
            What a token carries cannot be seen, so that every page must report the version.
        basis: why it is believed that the source honours it.
        rotates: whether an answer may give the same version another name, as documented; every
            request then has to name it as the answer before did.
    """

    at: FieldPath
    send_as: str
    travels_in: Literal["request", "continuation"] = "request"
    basis: Basis = "user_declared"
    rotates: bool = False

    def __post_init__(self) -> None:
        if self.rotates and self.travels_in == "continuation":
            raise ContractError(
                "a version whose name rotates cannot travel in a continuation; expected "
                "travels_in: request, where every request can be seen to use the newest name"
            )


@record
class BoundFacts:
    """An upper bound read before the first page and sent with every request.

    `field` names the record field it bounds, where records show it.
    """

    at: FieldPath
    send_as: str
    field: str | None = None
    basis: Basis = "user_declared"


@record
class HighWaterMarkFacts(BoundFacts):
    """An upper bound that is read from `url`."""

    url: str


@record
class ChangeTokenFacts:
    """The source's own token of its state, read before the first page and after the last.

    Only a token that is documented to move on every insert, update and delete, and never to return
    to a value it had, says that nothing happened in between.
    """

    basis: Basis = "user_declared"


@record
class ProviderRef:
    """Whose documented facts a source was filled in with: file name, and digest of the facts."""

    name: str
    revision: str


@record
class SourceFacts(ABC):  # a base for one record a protocol, never made itself
    """What the engine and the judgement need to know of any source, whatever its protocol."""

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth", "network")
    """Fields that say how the work is done, not which population is read."""

    QUERY: ClassVar[tuple[str, ...]] = ("url", "params")
    """Fields that a receipt shows as what was asked."""

    leaf_encoding: ClassVar[LeafEncoding] = "raw/v1"
    positions_are_ours: ClassVar[bool] = False
    """Whether we compute the next position (offset, last key), so that an equal page means it was
    ignored."""

    protocol: str
    provider: ProviderRef | None = None
    count: CountFacts | None = None
    snapshot: SnapshotFacts | None = None
    high_water_mark: BoundFacts | None = None
    continuation: ContinuationKind = "repeatable"
    continuation_basis: Basis | None = None
    """Why a continuation is believed to be of that kind; None where nobody said."""
    end_signal_basis: Basis | None = None
    """Why the end signal is believed to be a denominator, where a contract makes it one."""
    result_window: PositiveInt | None = None
    """Most records that one query ever shows, whatever it matches; its end there is no end."""

    @property
    def tool(self) -> str:
        """Return the name of what is called, as the receipt shows it."""
        raise NotImplementedError

    @property
    def change_token_basis(self) -> Basis | None:
        """Why the change token is believed to cover all writes; None where none is declared."""
        return None

    @property
    def kept_query_basis(self) -> Basis | None:
        """Why a continuation is believed to keep what it does not repeat; None where none said."""
        return None

    @property
    def believed(self) -> tuple[tuple[str, AssumptionBasis], ...]:
        """Return what else has to be believed of such a source, and why it is."""
        return ()

    def counter_in(self, token: str) -> str | None:
        """Return the parameter by which a continuation counts rows or pages, None for none.

        Args:
            token: continuation token as the source gave it.
        """
        del token
        return None

    def contradictions(self, contract: "Contract") -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield where a contract asks for what such a source cannot give, and what to do."""
        del contract
        return iter(())

    @property
    def position_fields(self) -> tuple[str, ...]:
        """Record fields that make our next position; none where it is an offset or a token."""
        return ()

    @property
    def exact_total(self) -> bool:
        """Whether the source declares an exact count of the whole."""
        return (
            self.count is not None
            and self.count.exactness == "exact"
            and self.count.means in ("total", "remaining")
        )


@record
class Limits:
    """Bounds that are checked before each request; hitting one interrupts the walk.

    Attributes:
        over_count: share above what the source's first exact count implies, for pages and
            records alike (0.1 is 10 %).
        pages: pages of one walk.
        records: records of one walk.
        bytes: bytes of page bodies of one walk.
        seconds: seconds since the open event; declared waits do not count.
        empty_pages: consecutive empty pages.
        repeated_cursors: how many requests may be identical to an earlier one.
    """

    over_count: Annotated[float, Field(ge=0)] | None = None
    pages: PositiveInt | None = None
    records: PositiveInt | None = None
    bytes: PositiveInt | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    empty_pages: NaturalInt = 20
    repeated_cursors: NaturalInt = 0


@record
class IdSequence:
    """Keys that run without a gap, e.g. `customer-1` to `customer-8742`.

    `last: count` takes the last number from the source's exact count.
    """

    field: str
    prefix: str = ""
    first: int = 1
    last: int | Literal["count"]


@record
class Swing:
    """How far the number of records may move from the last accepted generation, as a share."""

    records: Annotated[float, Field(ge=0)]


@record
class Expectations:
    """What is known of the whole beside the walk; each is met by unique keys.

    Attributes:
        count: an exact number of records, known from elsewhere.
        partition_counts: `source` (asked of the source's own endpoint) or the numbers by value of
            `partition_by`.
        id_sequence: keys that run without a gap.
        manifest: path of a file with one key a line, JSON (`"customer-1"` or `["a", 1]`).
        source_root: the collection's Merkle root as the source publishes it, hex.
        every_record: fields that must have this value in every record (what a filter promises).
        swing: bound against the last accepted generation of this scope.
    """

    count: NaturalInt | None = None
    partition_counts: Literal["source"] | Mapping[str, NaturalInt] | None = None
    id_sequence: IdSequence | None = None
    manifest: str | None = None
    source_root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    every_record: Mapping[str, str | int | bool | None] | None = None
    swing: Swing | None = None


@record
class Accept:
    """The least result with which this scan counts as done."""

    scope: ConclusionScope | None = None
    status: CoverageStatus | None = None
    nonconforming: NaturalInt = 0


@record
class Contract:
    """The judgement a scan is held to, and the limits it works within."""

    key: Annotated[tuple[str, ...], Field(min_length=1)]
    consistency: Consistency
    mode: Mode = "full"
    partition_by: str | None = None
    delivery: Delivery = "exactly_once"
    denominator: Literal["end_signal"] | None = None
    limits: Limits = Limits()
    expect: Expectations = Expectations()
    accept: Accept = Accept()


@record
class Retries:
    """How often one request is sent again.

    Attributes:
        attempts: sends of one request, the first included.
        max_wait: longest wait before one retry that we choose ourselves, in seconds.
        timeout: seconds without a byte after which a request counts as lost.
        whole_timeout: seconds after which it counts as lost whatever has come of its answer; what
            is left of `limits.seconds` bounds it too.
    """

    attempts: PositiveInt = 5
    max_wait: Annotated[float, Field(gt=0)] = 30.0
    timeout: Annotated[float, Field(gt=0)] = 60.0
    whole_timeout: Annotated[float, Field(gt=0)] = 900.0


@record
class Rate:
    """How often a host may be asked, by all walks of one process together."""

    requests: PositiveInt
    per_seconds: Annotated[float, Field(gt=0)]


@record
class Operation:
    """How the work is done; nothing here changes what the result means.

    Attributes:
        retries: bounds of sending one request again.
        rate: how often a host may be asked; None where nothing bounds it.
        restarts: how many new generations may follow one that expired.
        commit_pages: pages of one commit, at most.
        commit_seconds: age of the oldest uncommitted page, in seconds, at most.
        recheck_pages: pages read again at random after the end, beside the first.
    """

    retries: Retries = Retries()
    rate: Rate | None = None
    restarts: NaturalInt = 2
    commit_pages: PositiveInt = 64
    commit_seconds: Annotated[float, Field(gt=0)] = 5.0
    recheck_pages: NaturalInt = 1


@record
class Schedule:
    """When a new generation is begun."""

    cron: str
    timezone: str = "UTC"


@record
class Column:
    """One column of an inline record schema."""

    name: str
    type: str
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


@record
class ContractDigests:
    """SHA-256 of each block's canonical JSON, as `sha256:<hex>`."""

    scope: str
    judgement: str
    operation: str


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


def scope_facts(scan: Scan) -> dict[str, Any]:
    """Return the scope block: which population is enumerated, and how its end is told."""
    facts = stated(scan.source)
    scope = {name: value for name, value in facts.items() if name not in scan.source.OPERATION}
    return {"source": scope, "mode": scan.contract.mode}


def judgement_facts(scan: Scan, *, schema_fingerprint: str) -> dict[str, Any]:
    """Return the judgement block; the schema counts by its content, not by its name."""
    facts = stated(scan.contract)
    kept = {name: value for name, value in facts.items() if name not in ("limits", "mode")}
    return {**kept, "record_schema": schema_fingerprint}


def operation_facts(scan: Scan) -> dict[str, Any]:
    """Return the operation block: limits, page size, retries, schedule."""
    facts = stated(scan.source)
    return {
        "source": {name: facts[name] for name in scan.source.OPERATION if name in facts},
        "limits": stated(scan.contract.limits),
        "operation": stated(scan.operation),
        "schedule": stated(scan.schedule),
    }


def stated(value: Any) -> Any:
    """Return what a value says beyond its defaults, as plain JSON values.

    A field that a later version adds, and that a contract leaves alone, must not change the
    contract's digests.
    """
    if is_dataclass(value) and not isinstance(value, type):
        said = {each.name: getattr(value, each.name) for each in fields(value)}
        silent = {each.name: _default(each) for each in fields(value)}
        return {name: stated(kept) for name, kept in said.items() if kept != silent[name]}
    if isinstance(value, Mapping):
        return {str(name): stated(kept) for name, kept in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple):
        return [stated(each) for each in cast("tuple[Any, ...]", value)]
    return value


def _default(each: DataclassField[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


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


def scope_digest(scan: Scan) -> str:
    """Return the digest by which two generations are comparable."""
    return _digest(scope_facts(scan))


def contract_digests(scan: Scan, *, schema_fingerprint: str) -> ContractDigests:
    """Return the digests of the three blocks."""
    return ContractDigests(
        scope=scope_digest(scan),
        judgement=_digest(judgement_facts(scan, schema_fingerprint=schema_fingerprint)),
        operation=_digest(operation_facts(scan)),
    )


def whole_scope(consistency: Consistency) -> ConclusionScope:
    """Return what a verified walk of this consistency may speak of."""
    scopes: dict[Consistency, ConclusionScope] = {
        "snapshot": "all_records_in_snapshot",
        "change_token": "all_records_at_change_token",
        "high_water_mark": "all_records_up_to_high_water_mark",
        "two_equal_walks": "all_records_present_throughout_both_walks",
        "live": "records_encountered_in_live_traversal",
    }
    return scopes[consistency]


def accept_level(contract: Contract) -> tuple[CoverageStatus, ConclusionScope]:
    """Return the (status, scope) that the contract accepts; silence means the whole, verified."""
    scope = contract.accept.scope or (
        "all_records_in_snapshot"
        if contract.consistency == "live"
        else whole_scope(contract.consistency)
    )
    if contract.accept.status is not None:
        return contract.accept.status, scope
    if scope == "all_records_present_throughout_both_walks":
        return "corroborated", scope
    return ("verified" if scope in WHOLE_COLLECTION else "unknown"), scope


def _digest(facts: dict[str, Any]) -> str:
    return f"sha256:{digest_of(facts).hex()}"
