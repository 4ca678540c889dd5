"""The closed words of the project; a state outside these lists does not exist."""

from typing import Final, Literal, TypeAlias, get_args

Mode: TypeAlias = Literal["full", "bounded", "sync", "trial"]
"""What one run enumerates: the whole collection, a declared cap of it, a round of changes, or a few
pages to see whether a scan file is right, which prove nothing whatever they hold."""

Consistency: TypeAlias = Literal[
    "snapshot", "change_token", "high_water_mark", "two_equal_walks", "live"
]
"""What holds the collection still, or says that nothing does."""

MAY_MOVE: Final[frozenset[Consistency]] = frozenset({"live", "change_token", "two_equal_walks"})
"""Those under which rows may move while they are read: a count that does breaks no promise."""

Traversal: TypeAlias = Literal["finished", "interrupted", "failed", "cancelled"]
"""How a walk stopped: at the declared end, on the way, on broken evidence, or on request."""

StopReason: TypeAlias = Literal[
    "end_signal",
    "limit_reached",
    "snapshot_expired",
    "abandoned",
    "source_window",
    "continuation_consumed",
    "data_key_destroyed",
    "change_token_moved",
    "principal_changed",
    "source_unavailable",
    "access_refused",
    "cancelled",
    "protocol_broken",
    "evidence_disagrees",
]
"""Why a walk stopped, one word; the finding beside it tells the rest."""

CoverageStatus: TypeAlias = Literal["verified", "corroborated", "unknown", "failed"]

ConclusionScope: TypeAlias = Literal[
    "all_records_in_snapshot",
    "all_records_at_change_token",
    "all_records_up_to_high_water_mark",
    "all_records_present_throughout_both_walks",
    "all_changes_since_checkpoint",
    "bounded_view",
    "records_encountered_in_live_traversal",
    "observed_pages_only",
]
"""What a statement may be about, given one receipt."""

EventKind: TypeAlias = Literal["open", "page", "refused", "close"]

Asked: TypeAlias = Literal["page", "again", "beside"]
"""What a request was for: the next page, an admitted page read again, or what is no page."""

Basis: TypeAlias = Literal["provider_documented", "user_declared", "observed"]
"""Why a thing is believed that the walk itself cannot show."""

AssumptionBasis: TypeAlias = Literal["provider_documented", "user_declared", "observed", "assumed"]
"""The same of an assumption; `assumed` where nobody documented, declared or observed it."""

Severity: TypeAlias = Literal["error", "warning", "note"]
"""`error` makes coverage failed, `warning` keeps it from being verified, `note` decides nothing."""

Withheld: TypeAlias = Literal["swing"]
"""Why a receipt is withheld that would be accepted without: until a person acknowledges it."""

Outcome: TypeAlias = Literal["met", "missed", "not_evaluated"]
"""The result of an expectation; what was not evaluated has not failed."""

SignalWord: TypeAlias = Literal[
    "absent",
    "null",
    "empty_string",
    "empty_page",
    "no_next_link",
    "false",
    "equals",
    "total_reached",
]
"""The shapes in which sources say that nothing follows."""

ContinuationKind: TypeAlias = Literal["repeatable", "single_use", "connection_bound"]
"""How often a continuation works: always, once, or as long as the connection it came over lives."""

Delivery: TypeAlias = Literal["exactly_once", "at_least_once", "latest_wins"]
"""How often a record may come: once, again with equal content, or again with the newest last."""

LeafEncoding: TypeAlias = Literal["raw/v1", "canonical-json/v1"]
"""What a leaf hashes: the record's bytes as sent, or canonical JSON that the adapter wrote."""

LimitName: TypeAlias = Literal[
    "pages", "records", "bytes", "seconds", "empty_pages", "repeated_cursors"
]

WHOLE_COLLECTION: Final[frozenset[ConclusionScope]] = frozenset(
    {
        "all_records_in_snapshot",
        "all_records_at_change_token",
        "all_records_up_to_high_water_mark",
        "all_records_present_throughout_both_walks",
    }
)
"""The scopes that speak of a whole collection."""

CONCLUSION_SCOPES: Final[tuple[ConclusionScope, ...]] = get_args(ConclusionScope)
COVERAGE_STATUSES: Final[tuple[CoverageStatus, ...]] = get_args(CoverageStatus)

ColumnType: TypeAlias = Literal[
    "string", "int64", "float64", "bool", "timestamp", "decimal", "json"
]
"""Types of inline columns; `json` keeps any value as its JSON text."""

Overlap: TypeAlias = Literal["refuse", "queue"]
"""What a tick does while a generation of its scan is under way: none is begun, or one waits."""
