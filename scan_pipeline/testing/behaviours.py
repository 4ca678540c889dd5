"""What every source must do, whatever its protocol: the table that the kit runs."""

from typing import Final, Literal, TypeAlias

from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ContinuationKind
from scan_pipeline.testing.faults import Fault, FaultKind

Group: TypeAlias = Literal["order", "loop", "retry", "drift", "expiry", "end", "resume"]

Outcome: TypeAlias = Literal[
    "whole", "stopped", "never_taken", "not_accepted", "not_verified", "begun_again"
]
"""What must come of a walk:

- `whole`: every record once and in order, as good as the undisturbed walk.
- `stopped`: the walk breaks by a rule, not at a limit, and its receipt says `failed`.
- `never_taken`: what came is not taken for a page: stopped, or refused, on record, and asked for
  again.
- `not_accepted`: whatever was read, the scan does not count as done, not even as a live one.
- `not_verified`: it is no verified whole.
- `begun_again`: the generation ends as unknown, and a new one, from nothing, is whole.
"""

EXPECTED: Final[dict[Outcome, str]] = {
    "whole": "every record once, in order, and the root of the undisturbed walk",
    "stopped": "the walk is stopped by a rule, and failed",
    "never_taken": "not taken for a page: stopped, or refused on record and asked for again",
    "not_accepted": "never accepted, never verified",
    "not_verified": "never verified",
    "begun_again": "interrupted and unknown; then whole, begun from nothing",
}


@record
class Behaviour:
    """One row of the table.

    Attributes:
        group: which of the seven.
        name: which of the group.
        says: what happens, in words.
        fault: the fault that is played.
        kills: whether the process is killed, after each page in turn, instead.
        continuation: kind of continuation that the source is declared to have; None for its own.
    """

    group: Group
    name: str
    says: str
    fault: FaultKind = "none"
    kills: bool = False
    continuation: ContinuationKind | None = None

    def __str__(self) -> str:
        return f"{self.group}-{self.name}"

    def expected(self, scan: Scan, fault: Fault) -> Outcome:
        """Return what must come of it, given what the scan declares."""
        pinned = scan.contract.consistency == "snapshot"
        once_only = scan.source.continuation != "repeatable"
        match fault.kind:
            case "none" if self.kills and once_only:
                return "begun_again"
            case "unavailable" | "timed_out" | "response_lost" if once_only:
                return "begun_again"
            case "expired":
                return "begun_again"
            case "continuation_repeated" | "continuation_cycle" | "page_repeated" | "pin_changed":
                return "stopped"
            case "rows_inserted":
                held = pinned or scan.contract.consistency == "high_water_mark"
                return "whole" if held else "not_verified"
            case "rows_deleted":
                return "whole" if pinned else "not_verified"
            case "pin_ignored":
                return "not_verified"
            case "page_emptied":
                return "not_accepted" if _empty_says_end(scan) else "whole"
            case "continuation_missing":
                return "not_accepted" if _absence_says_end(scan) else "stopped"
            case "signals_disagree" | "error_with_success":
                return "stopped"
            case "login_page" | "body_cut":
                # Lines and rows have no envelope: what is left of them may be lines and rows too.
                lines = getattr(scan.source, "records_format", "json") != "json"
                return "not_accepted" if lines else "never_taken"
            case _:
                return "whole"


def _empty_says_end(scan: Scan) -> bool:
    """Say whether an empty page is an end here, or a contradiction: positions are then ours."""
    following = getattr(scan.source, "next", None)
    words = {each.word for each in getattr(following, "ends_when", ())}
    return scan.source.positions_are_ours or "empty_page" in words


def _absence_says_end(scan: Scan) -> bool:
    """Say whether the documented end is that a field is not there: its loss is then no error."""
    following = getattr(scan.source, "next", None)
    words = {each.word for each in getattr(following, "ends_when", ())}
    return bool({"absent", "no_next_link"} & words)


def _of(group: Group, *rows: tuple[str, str, FaultKind]) -> tuple[Behaviour, ...]:
    return tuple(
        Behaviour(group=group, name=name, says=says, fault=fault) for name, says, fault in rows
    )


def _lost(kind: ContinuationKind) -> Behaviour:
    return Behaviour(
        group="retry",
        name=f"response_lost_{kind}",
        says=f"an answer is lost, the continuation being {kind.replace('_', ' ')}",
        fault="response_lost",
        continuation=kind,
    )


BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    *_of("order", ("undisturbed", "nothing happens", "none")),
    *_of(
        "loop",
        (
            "repeated",
            "a page names the continuation it was asked for with",
            "continuation_repeated",
        ),
        ("cycle", "a page leads back to the one before: a, b, a", "continuation_cycle"),
        ("equal_page", "the records of a page come again and again", "page_repeated"),
    ),
    *_of(
        "retry",
        ("throttled", "429 with Retry-After", "throttled"),
        ("unavailable", "503", "unavailable"),
        ("timed_out", "no answer in time, after the request had left", "timed_out"),
    ),
    *(_lost(kind) for kind in ("repeatable", "single_use", "connection_bound")),
    *_of(
        "drift",
        ("inserted", "a row comes in mid-walk", "rows_inserted"),
        ("deleted", "a row goes in mid-walk", "rows_deleted"),
        ("pin_changed", "later pages name another version", "pin_changed"),
        ("pin_ignored", "rows move although the version stays", "pin_ignored"),
    ),
    *_of("expiry", ("expired", "the version or continuation is gone in mid-walk", "expired")),
    *_of(
        "end",
        ("missing", "what says whether more follows is not there", "continuation_missing"),
        ("disagreeing", "one signal says the end, another does not", "signals_disagree"),
        ("error_with_success", "an error beside records, status 200", "error_with_success"),
        ("login_page", "an HTML page, status 200", "login_page"),
        ("body_cut", "a body breaks off", "body_cut"),
        ("empty_page", "an empty page in the middle", "page_emptied"),
        ("full_last_page", "the last page is exactly full", "last_page_full"),
        ("no_records", "the collection is empty", "no_records"),
        ("other_signal", "the end in every other declared shape", "other_signal"),
    ),
    Behaviour(
        group="resume",
        name="killed",
        says="the process is killed after each page in turn",
        kills=True,
    ),
)
"""Every behaviour, in the order of the report."""
