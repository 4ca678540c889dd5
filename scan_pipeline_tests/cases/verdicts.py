"""Their words against ours: what a case's outcome must be, and how an outcome falls short of it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scan_pipeline_tests.cases.points_in_time import UnderPointInTime
from scan_pipeline_tests.cases.replay import Expected, Outcome, Replay
from scan_pipeline_tests.cases.scripts import InOrder, Refreshable

OF_A_LIVE_WALK = frozenset({"live_traversal", "no_denominator"})
"""What is said of every complete walk over a source that pins nothing."""


@dataclass(frozen=True)
class Verdict:
    """What one of their words must be with us.

    Attributes:
        traversal: how the walk stopped.
        reason: why, one of these.
        codes: findings, one of which must be there.
        status: coverage status.
        partial: whether the records open as a live traversal.
        whole: whether they open as a whole collection.
    """

    traversal: str
    reason: tuple[str, ...]
    codes: frozenset[str]
    status: str
    partial: bool = False
    whole: bool = False


def _failed(*codes: str) -> Verdict:
    return Verdict("failed", ("protocol_broken",), frozenset(codes), "failed")


def _interrupted(reason: str) -> Verdict:
    return Verdict("interrupted", (reason,), frozenset({reason}), "unknown")


def _disproved(*codes: str) -> Verdict:
    return Verdict("finished", ("end_signal",), frozenset(codes), "failed")


def _live(*codes: str) -> Verdict:
    return Verdict("finished", ("end_signal",), frozenset(codes), "unknown", partial=True)


VERDICTS: Mapping[str, Verdict] = {
    "complete": _live(),
    "complete_in_snapshot": Verdict(
        "finished", ("end_signal",), frozenset(), "verified", partial=True, whole=True
    ),
    "cancelled": Verdict("cancelled", ("cancelled",), frozenset({"cancelled"}), "unknown"),
    # stopped, capped
    "no_progress_budget": _interrupted("limit_reached"),
    "budget_reached": _interrupted("limit_reached"),
    "limit_reached": _interrupted("limit_reached"),
    "window_capped": _interrupted("source_window"),
    "transport_timeout": _interrupted("source_unavailable"),
    "rate_limited": _interrupted("source_unavailable"),
    "forbidden": _interrupted("access_refused"),
    "http_error": _interrupted("access_refused"),
    "cursor_expired": _interrupted("snapshot_expired"),
    "snapshot_expired": _interrupted("snapshot_expired"),
    # cycled
    "cursor_repeated": _failed("cursor_repeated"),
    "repeated_cursor": _failed("cursor_repeated"),
    "cursor_cycle": _failed("cursor_repeated"),
    "no_progress": _failed("no_progress"),
    # no page, or none by the declared protocol
    "contradictory_end": _failed("end_signals_disagree"),
    "contradictory_signals": _failed("end_signals_disagree"),
    "cursor_invalid": _failed("request_rejected", "error_envelope"),
    "not_found": _failed("request_rejected"),
    "items_path_missing": _failed("records_missing"),
    "missing_records_field": _failed("records_missing", "error_envelope"),
    "shard_failure": _failed("answer_partial"),
    "shard_partial": _failed("answer_partial"),
    "timed_out_page": _failed("answer_partial"),
    "non_json_body": _failed("body_unparsable"),
    "invalid_terminal_field": _failed("reported_invalid"),
    "foreign_next_link": _failed("destination_refused"),
    "cross_origin_link": _failed("destination_refused"),
    # conflicted
    "scope_mismatch": _failed("request_changed"),
    "version_changed": _failed("snapshot_changed"),
    "count_mismatch": _failed("end_signals_disagree"),
    "short_of_total": _disproved("count_missed"),
    "sort_not_total": _disproved("duplicate_delivery", "conflicting_versions"),
    "missing_against_control": _disproved("manifest_missed"),
    # nothing disagrees, and the whole is not proven
    "no_snapshot": _live("live_traversal"),
    "nested_capped": _live("nested_list_cut"),
    "snapshot_drift": _live("count_changed"),
}
"""By the case's word, ours."""

REFUSED_WHOLE = frozenset(
    {
        "contradictory_end",
        "contradictory_signals",
        "invalid_terminal_field",
        "shard_partial",
        "version_changed",
    }
)
"""Words for an answer that is no page by its contract; with us nothing of it is kept, while the
cases count its records as read before the error."""

KEPT_WHOLE = frozenset({"limit_reached"})
"""Words for a limit that fell inside a page; with us a page is kept whole or not at all."""

NOT_SENT = frozenset({"projection_drops_cursor", "order_not_total"})
"""Words for a scan file that is refused before anything is asked."""


def disagreements(replay: Replay, outcome: Outcome) -> Iterator[str]:
    """Yield every way in which an outcome is not what its case asks for."""
    expected = replay.expected
    if replay.script is not None and replay.script.wrong:
        yield f"asked what a right client does not: {replay.script.wrong}"
    if expected.kind in NOT_SENT:
        if outcome.refused is None:
            yield "the scan file was not refused"
        return
    script = replay.script
    if isinstance(script, InOrder) and script.left and expected.kind not in REFUSED_WHOLE:
        yield f"{script.left} answers were not asked for"
    if outcome.refused is not None:
        yield f"the scan file was refused: {outcome.refused}"
        return
    yield from _of_verdict(VERDICTS[expected.kind], expected, outcome)
    yield from _of_ids(expected, outcome)
    yield from _of_facts(replay, outcome)
    if outcome.whole != VERDICTS[expected.kind].whole:
        yield f"the gate for a whole collection is {'open' if outcome.whole else 'closed'}"
    if isinstance(script, UnderPointInTime) and script.held is not None:
        yield f"the point in time {script.held} was left open"
    if not outcome.audit_agrees:
        yield "the audit does not agree with the receipt"


def _of_verdict(verdict: Verdict, expected: Expected, outcome: Outcome) -> Iterator[str]:
    receipt = outcome.receipt
    found = (receipt.traversal, receipt.stop_reason, receipt.coverage_status)
    if receipt.traversal != verdict.traversal or receipt.stop_reason not in verdict.reason:
        yield f"the walk was {found}; expected {verdict.traversal}, {verdict.reason}"
    if receipt.coverage_status != verdict.status:
        yield f"coverage is {receipt.coverage_status}; expected {verdict.status}"
    if verdict.codes and not verdict.codes & outcome.codes:
        yield f"findings are {sorted(outcome.codes)}; expected one of {sorted(verdict.codes)}"
    if expected.kind == "complete" and not outcome.codes <= OF_A_LIVE_WALK | _of_attempts(expected):
        yield f"findings are {sorted(outcome.codes)}; expected those of a live walk alone"
    if expected.kind == "complete_in_snapshot" and not outcome.codes <= _of_attempts(expected):
        yield f"findings are {sorted(outcome.codes)}; expected none"
    if (outcome.partial is not None) != verdict.partial:
        yield f"the partial gate is {'open' if outcome.partial is not None else 'closed'}"


def _of_attempts(expected: Expected) -> frozenset[str]:
    again = expected.facts.get("generations", 1) > 1
    return frozenset({"snapshot_expired"}) if again else frozenset()


def _of_ids(expected: Expected, outcome: Outcome) -> Iterator[str]:
    ids, wanted = outcome.ids, expected.ids
    as_meant = ids == wanted
    if expected.kind in REFUSED_WHOLE:
        as_meant = ids == wanted[: len(ids)]
    if expected.kind in KEPT_WHOLE:
        as_meant = ids[: len(wanted)] == wanted
    if not as_meant:
        yield f"kept {ids}; expected {wanted}"
    if outcome.partial is not None and outcome.partial != ids:
        yield f"the gate opened {outcome.partial}; expected {ids}"


def _of_facts(replay: Replay, outcome: Outcome) -> Iterator[str]:
    receipt, facts = outcome.receipt, replay.expected.facts
    asked = [] if replay.script is None else replay.script.asked
    night = outcome.night
    found: dict[str, object] = {
        "pages": receipt.pages_observed,
        "empty_pages": receipt.empty_pages,
        "requests": len(asked),
        "generations": 0 if night is None else 1 + len(night.earlier),
        "columns": sorted(outcome.columns),
        "snapshot": receipt.snapshot_id,
        "distinct": receipt.unique_ids_observed,
        "duplicates": receipt.duplicate_ids + receipt.conflicting_ids,
        "short_by": (receipt.records_expected or 0) - receipt.unique_ids_observed,
        "missing": [
            name
            for each in receipt.findings.first
            if each.code == "manifest_missed"
            for name in re.findall(r'\["([^"]+)"\]', str(each.found))
        ],
        "requests_to": {
            host: sum(1 for url in asked if f"//{host}" in url)
            for host in facts.get("requests_to", {})
        },
    }
    if isinstance(replay.script, Refreshable):
        found["auth_refreshes"] = replay.script.tokens - 1
    if replay.expected.kind in REFUSED_WHOLE:
        found.pop("pages")
    for name, value in facts.items():
        if name in found and found[name] != value:
            yield f"{name} is {found[name]}; expected {value}"
    if len(asked) > facts.get("max_requests", len(asked)):
        yield f"asked {len(asked)} times; expected at most {facts['max_requests']}"
    if sum(outcome.slept) < facts.get("min_wait_s", 0):
        yield f"waited {sum(outcome.slept)} s; expected {facts['min_wait_s']} at least"
    signal = receipt.terminal_evidence and receipt.terminal_evidence.signal
    if facts.get("consistency") == "weak" and "inferred" not in (signal or ""):
        yield f"the end is told as {signal}; expected to hear that it was inferred"
