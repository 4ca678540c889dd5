"""The kinds of finding: what each code weighs, what usually causes it, and what to do."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Severity


@record
class FindingKind:
    """What a code means: its weight, its usual cause and its remedy."""

    severity: Severity
    cause: str
    remedy: str


def _kind(severity: Severity, cause: str, remedy: str) -> FindingKind:
    return FindingKind(severity=severity, cause=cause, remedy=remedy)


_ASK_SOURCE = "show the page and this finding to the owner of the source"


_NEW_GENERATION = "begin a new generation"


KINDS: Final[Mapping[str, FindingKind]] = MappingProxyType(
    {
        # the walk
        "cursor_repeated": _kind(
            "error", "the source handed out a continuation it had handed out before", _ASK_SOURCE
        ),
        "page_repeated": _kind(
            "error",
            "the records of an earlier page came again behind a new continuation",
            _ASK_SOURCE,
        ),
        "no_progress": _kind("error", "page after page brought records already read", _ASK_SOURCE),
        "order_broken": _kind(
            "error",
            "records came out of the range or order that was asked for",
            _ASK_SOURCE,
        ),
        "continuation_missing": _kind(
            "error",
            "the field that says what follows is not in the answer",
            "correct next.at, or declare the end signal that the source documents",
        ),
        "continuation_invalid": _kind(
            "error",
            "the field that says what follows holds neither a token nor a declared end",
            "correct next.at and next.ends_when after the source's documentation",
        ),
        "end_signals_disagree": _kind(
            "error",
            "one declared signal says the end, another that more follows",
            "declare the one signal that the source documents as binding",
        ),
        "records_missing": _kind(
            "error",
            "the answer has no list of records where one was declared",
            "correct records_at; if it is right, the answer was an error in disguise",
        ),
        "error_envelope": _kind(
            "error", "the answer carries an error although its status says success", _ASK_SOURCE
        ),
        "not_a_page": _kind(
            "error",
            "the status says success and not that this is a page whole (200)",
            "read the status; a source that answers in parts or later cannot be walked so",
        ),
        "body_unparsable": _kind(
            "error", "the answer is not the JSON it should be (cut, HTML, not UTF-8)", _ASK_SOURCE
        ),
        "member_doubled": _kind(
            "error", "a member stands twice in the answer; parsers keep one of them", _ASK_SOURCE
        ),
        "reported_invalid": _kind(
            "error",
            "a count, pin or bound that the source reports has the wrong type",
            "correct count, snapshot or high_water_mark after the source's documentation",
        ),
        "snapshot_changed": _kind(
            "error", "a page came from another version of the collection", _NEW_GENERATION
        ),
        "pin_not_reported": _kind(
            "error",
            "the first answer named no version to pin",
            "correct snapshot.at, or declare a weaker consistency",
        ),
        "pin_not_honoured": _kind(
            "error",
            "a page read again under the same pin had other records",
            "declare `consistency: live` until the source keeps what it pins",
        ),
        "change_token_moved": _kind(
            "warning",
            "the source was written to while it was read, as its change token says",
            "begin again at a quiet hour",
        ),
        "walks_differ": _kind(
            "warning",
            "rows changed during or between the two walks, or the source does not list them all",
            "begin again at a quiet hour",
        ),
        "answer_from_cache": _kind(
            "warning",
            "a cache on the way answered in place of the source, as the answer's Age or "
            "Cache-Status says, although the request asked it not to",
            "reach the source past the cache; what a cache kept says nothing of the source now",
        ),
        "continuation_counts_rows": _kind(
            "warning",
            "what the source gives to go on with is an offset or a page number: rows that come or "
            "go shift all later pages, in two walks alike",
            "walk by a cursor or key where the source has one, else declare `consistency: live`",
        ),
        "credential_changed": _kind(
            "warning",
            "the secret was another one in mid-walk, and nothing says whose it is",
            "declare source.identity, so that the source says that it is the same principal's",
        ),
        "change_token_stale": _kind(
            "error",
            "the source's count moved and its change token did not: it does not cover all writes",
            "declare `consistency: live`; the token proves nothing",
        ),
        "principal_changed": _kind(
            "error",
            "the identity the source reports is not the one the walk began with",
            "restore the access and begin a new generation",
        ),
        "count_changed": _kind(
            "error",
            "the exact count that the source reports moved during the walk",
            "pin a version if the source has one; else begin again at a quiet hour",
        ),
        "count_dropped": _kind(
            "warning", "the source stopped reporting its count during the walk", _ASK_SOURCE
        ),
        "remaining_at_end": _kind(
            "error", "the source said records remained and yet ended", _ASK_SOURCE
        ),
        "page_short_of_its_count": _kind(
            "error", "a page says it holds another number of records than it does", _ASK_SOURCE
        ),
        "request_changed": _kind(
            "error",
            "a request differed from the one the walk began with",
            "correct the adapter: filter, order and principal are frozen for a walk",
        ),
        "page_changed_on_resume": _kind(
            "error",
            "the last page before the break reads differently now",
            _NEW_GENERATION,
        ),
        "request_rejected": _kind(
            "error", "the source rejected a request", "read the status; correct the scan file"
        ),
        "adapter_failed": _kind(
            "error",
            "the adapter's own code broke off with an exception that it does not declare",
            "correct the adapter at the line named, hold it against the conformance kit, then "
            "begin a new generation",
        ),
        "tool_error": _kind(
            "error",
            "the tool answered a call with an error of its own",
            "say under errors what it means, after the tool's documentation",
        ),
        "destination_refused": _kind(
            "error",
            "the source sent us to another address",
            "name the address in the contract if it is right",
        ),
        "limit_reached": _kind(
            "warning",
            "a limit of the contract stopped the walk",
            "raise the limit named, or ask for less",
        ),
        "limit_near": _kind(
            "note", "more than 80 % of a limit was used", "raise it before it stops a walk"
        ),
        "snapshot_expired": _kind(
            "warning",
            "the source no longer held the version the walk stood on",
            f"{_NEW_GENERATION}; larger pages finish sooner",
        ),
        "continuation_consumed": _kind(
            "warning",
            "a continuation that works once may have been used up by a lost answer",
            _NEW_GENERATION,
        ),
        "data_key_destroyed": _kind(
            "error",
            "the key that sealed what was read was destroyed: nothing of it can be opened",
            _NEW_GENERATION,
        ),
        "source_unavailable": _kind(
            "warning",
            "the source did not answer within the retries allowed",
            "begin a new generation when the source is well",
        ),
        "access_refused": _kind(
            "warning",
            "the source refused our credentials or rights",
            "ask for access, then run again",
        ),
        "answer_partial": _kind(
            "error",
            "the source says itself that the answer is not whole: shards that failed or are "
            "missing, a timeout, an early end",
            "bring the source back to health, then begin a new generation",
        ),
        "held_by_source": _kind(
            "note",
            "what the source holds for the walk could not be ended",
            "none: the source ends it by itself after its time",
        ),
        "cancelled": _kind("warning", "someone asked the walk to end", _NEW_GENERATION),
        "abandoned": _kind(
            "warning",
            "the walk broke off, and its contract has changed or it cannot be resumed",
            _NEW_GENERATION,
        ),
        "page_size_not_honoured": _kind(
            "error",
            "the source chose another page size than was asked for where its protocol does not "
            "allow it",
            "declare a page_size at or below the source's own cap",
        ),
        "source_window": _kind(
            "warning", "the source shows no more than a window of its results", "split the query"
        ),
        # the records
        "duplicate_delivery": _kind(
            "error",
            "one key came more than once with equal content",
            "if the source documents repeats, declare `delivery: at_least_once`",
        ),
        "duplicate_allowed": _kind("note", "one key came more than once, as declared", "none"),
        "conflicting_versions": _kind(
            "error",
            "one key came with different content: two moments in one walk",
            "pin a version if the source has one",
        ),
        "record_without_key": _kind(
            "error",
            "a record has no readable key",
            "correct contract.key, or show it to the source",
        ),
        "nonconforming": _kind(
            "note",
            "a record does not fit the record schema",
            "correct the schema and restage, or raise accept.nonconforming",
        ),
        "schema_changed": _kind(
            "note",
            "the record schema is no longer the one that the walk was begun with",
            "none; records of this generation were held against the present one",
        ),
        "unknown_field": _kind(
            "note",
            "records carry a field the schema does not know; it is kept in _extra",
            "add it to the schema",
        ),
        "new_field": _kind(
            "note",
            "records carry a field the schema does not know, and new_fields: reject lets none of "
            "them conform; it is kept in _extra",
            "add it to the schema and restage, or declare `new_fields: keep`",
        ),
        "field_without_column": _kind(
            "note",
            "no column can be inferred for a field: its name is taken in another case, is one of "
            "ours or none that a table can hold, or it comes after the most there may be; it is "
            "kept in _extra",
            "declare a record_schema that holds it, if it is to be a column",
        ),
        "nested_list_cut": _kind(
            "warning",
            "a list inside a record stops at the source's cap, or says that more of it follows",
            "walk that list as a collection of its own",
        ),
        "other_results": _kind(
            "warning",
            "results of another kind came beside the records, and are not walked",
            "walk them in a scan of their own, and name them in leaves_out",
        ),
        "document_missing": _kind(
            "note",
            "the source gives the key of a document and not what it holds",
            "ask for its stored fields, or let the index keep _source",
        ),
        "beyond_high_water_mark": _kind(
            "error", "a record lies above the bound that was sent", _ASK_SOURCE
        ),
        # the whole
        "count_missed": _kind(
            "error",
            "the number of unique keys is not the exact count",
            "read missing ranges and pages",
        ),
        "partition_count_missed": _kind(
            "error",
            "a partition does not hold as many unique keys as the source counts",
            _ASK_SOURCE,
        ),
        "ids_missing": _kind("error", "ids of the declared sequence did not arrive", _ASK_SOURCE),
        "ids_beyond_sequence": _kind(
            "error",
            "ids arrived that the declared sequence does not hold",
            "correct expect.id_sequence",
        ),
        "manifest_missed": _kind("error", "keys differ from the manifest", _ASK_SOURCE),
        "source_root_missed": _kind("error", "the Merkle root is not the source's", _ASK_SOURCE),
        "filter_missed": _kind(
            "error", "records arrived that the filter should have kept away", _ASK_SOURCE
        ),
        "swing_exceeded": _kind(
            "warning",
            "the number of records moved more than allowed since the last accepted generation",
            "confirm the change with the owner of the source, then `scan-pipeline acknowledge` it; "
            "or raise expect.swing and restage",
        ),
        "not_reconcilable": _kind(
            "error",
            "what was read cannot be staged or reconciled under its contract",
            "correct what is named; then restage these pages, or begin a new generation",
        ),
        "chain_broken": _kind(
            "error",
            "the stored events do not link: one is missing, moved or altered",
            _NEW_GENERATION,
        ),
        "evidence_altered": _kind(
            "error", "a stored body is not the one that was admitted", _NEW_GENERATION
        ),
        # the judgement
        "contract_unchecked": _kind(
            "warning",
            "the connector's code or the provider's documented facts changed since the receipts "
            "before, and nobody has looked at the source with them",
            "run `scan-pipeline check FILE --connect`, then begin a new generation",
        ),
        "no_denominator": _kind(
            "warning",
            "nothing but the end signal says how many there are",
            "declare a count, per-partition counts, an id sequence or a manifest",
        ),
        "checkpoint_at_end": _kind(
            "warning",
            "the source names where the next round begins only when this one ends: what changed "
            "while it was read comes in neither",
            "take the checkpoint from the first page, or from an endpoint asked before it, if the "
            "source has one; else read the rounds as what was met",
        ),
        "baseline_may_skip": _kind(
            "warning",
            "nothing says that the pages of a baseline hold every record that stays while others "
            "come and go; no later round brings what did not change",
            "declare delta.baseline: whole where the source documents it; else hold the records "
            "against a scan of the whole",
        ),
        "nested_delta": _kind(
            "warning",
            "a record holds changes of a list of its own and not the list",
            "leave the list out of the projection, and walk it as a scan of its own",
        ),
        "newer_version": _kind(
            "note", "one key came again with other content; the last delivery holds", "none"
        ),
        "live_traversal": _kind(
            "warning",
            "rows could move while the pages were read",
            "declare a snapshot if the source has one",
        ),
    }
)
