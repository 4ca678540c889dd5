"""What an alert says: what changed, why, and what to do; never a value, a key or a token.

Findings carry keys and values of records, and what a source sent. An alert goes to a chat room, so
it takes of a receipt only counts, closed words and generation names, and of a finding its code and
page; cause and remedy are the words of its kind.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scan_pipeline.core.calendar import Timeliness
from scan_pipeline.core.condition import Change, Condition, Verdict
from scan_pipeline.core.finding_kinds import KINDS
from scan_pipeline.core.receipt import Receipt, ReceiptExpectation, last_stop_reason
from scan_pipeline.core.value import record
from scan_pipeline.stages.alerting.nights import LastNights

_TITLES: Final[Mapping[Change, str]] = MappingProxyType(
    {
        "not_accepted": "not accepted",
        "late": "late",
        "weaker": "accepted, and weaker than before",
        "accepted_again": "accepted again",
    }
)

_DECISIVE: Final = ("error", "warning")


@record
class Message:
    """One alert as people read it.

    Attributes:
        id: the same for whoever sends the same alert.
        title: one line.
        lines: the rest.
    """

    id: str
    title: str
    lines: tuple[str, ...]


def message_of(scan: str, nights: LastNights) -> Message:
    """Write the alert about how a scan stands after its last nights."""
    condition, receipt = nights.condition, nights.receipt
    change, newest = condition.change, condition.newest
    named = newest.generation if newest else "none"
    lines = [_what(condition, held=nights.timeliness)]
    if change == "not_accepted":
        lines += _why(receipt)
        lines += _count(receipt)
        lines.append(f"In full: scan-pipeline explain {scan} {named}")
    elif change == "late":
        lines += [
            "Cause: the scheduler is down, or a run hangs, waits, or failed before its receipt.",
            f"What to do: look at the scheduler and its runs; scan-pipeline generations {scan}",
        ]
    elif change == "weaker":
        lines += _why(receipt)
        lines.append(f"In full: scan-pipeline explain {scan} {named}")
    else:
        lines += _count(receipt)
        lines.append("What to do: nothing.")
    if change in ("not_accepted", "late"):
        lines.append(_readers(condition))
    since = condition.since or named
    return Message(
        id=f"{scan}.{since}.{change}", title=f"{scan}: {_TITLES[change]}", lines=tuple(lines)
    )


def trial_message(project: str) -> Message:
    """Write what tries out a channel."""
    return Message(
        id="test",
        title="scan_pipeline: a test",
        lines=(f"Alerts of the project {project} reach this place.", "What to do: nothing."),
    )


def _what(condition: Condition, *, held: Timeliness | None) -> str:
    newest = condition.newest
    if newest is None:
        return "No generation was certified yet."
    said = f"Generation {newest.generation} is {_level(newest)}"
    match condition.change:
        case "late":
            word = "it is late" if held is None else held.word()
            return f"{word[0].upper()}{word[1:]}; the newest is {newest.generation}."
        case "weaker" if condition.accepted is not None:
            before = condition.accepted
            return f"{said}; {before.generation} before it was {_level(before)}."
        case _:
            return f"{said}."


def _level(night: Verdict) -> str:
    return f"{night.status}, {night.scope.replace('_', ' ')}"


def _why(receipt: Receipt | None) -> list[str]:
    if receipt is None:
        return [
            "Cause: what lies in the place of its receipt cannot be believed.",
            "What to do: run scan-pipeline audit on it, and see who can write to the lake.",
        ]
    decisive = [each for each in receipt.findings.first if each.severity in _DECISIVE]
    heaviest = min(decisive, key=lambda each: _DECISIVE.index(each.severity), default=None)
    if heaviest is not None and heaviest.code in KINDS:
        kind = KINDS[heaviest.code]
        page = f", page {heaviest.page}" if heaviest.page else ""
        more = f"; {len(decisive) - 1} more of weight" if len(decisive) > 1 else ""
        return [
            f"Cause: {kind.cause} ({heaviest.code}{page}{more}).",
            f"What to do: {kind.remedy}.",
        ]
    missed = [each.name for each in receipt.expectations if each.result == "missed"]
    if missed:
        return [
            f"Cause: expected by the contract and missed: {', '.join(missed)}.",
            "What to do: correct the expectation, or show both to the owner of the source.",
        ]
    found, may = receipt.extraction.nonconforming, receipt.accept.nonconforming
    if found > may:
        return [
            f"Cause: {found:,} records do not fit the record schema; {may:,} may.",
            "What to do: correct the schema and restage, or raise accept.nonconforming.",
        ]
    stopped = last_stop_reason(receipt).replace("_", " ")
    level = f"{receipt.accept.status}, {receipt.accept.scope.replace('_', ' ')}"
    return [
        f"Cause: the walk was {receipt.traversal} ({stopped}); the contract accepts {level}.",
        "What to do: give the contract what proves more, or accept less in contract.accept.",
    ]


def _count(receipt: Receipt | None) -> list[str]:
    if receipt is None:
        return []
    expected = receipt.records_expected
    of = "" if expected is None else f"; {expected:,} were expected"
    # a number that a swing is measured by is no count of the source
    before = [each.expected for each in receipt.expectations if _is_swing(each)]
    of += "".join(f"; the last accepted generation had {n:,}" for n in before if isinstance(n, int))
    return [f"{receipt.unique_ids_observed:,} unique keys on {receipt.pages_observed:,} pages{of}."]


def _is_swing(expectation: ReceiptExpectation) -> bool:
    return expectation.name == "swing" and expectation.result == "missed"


def _readers(condition: Condition) -> str:
    last = condition.accepted
    if last is None:
        return "Readers find no accepted generation."
    return f"Readers still find {last.generation}, {_level(last)}."
