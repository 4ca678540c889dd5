"""How a walk went over time, from its events: pages, waits, answers that were no pages."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from scan_pipeline.core.value import record
from scan_pipeline.stages.reporting.document import (
    Cell,
    Course,
    Figure,
    Line,
    Row,
    Span,
    Table,
)
from scan_pipeline.stages.reporting.material import Ledger
from scan_pipeline.stages.reporting.wording import columns, number, seconds, told, words
from scan_pipeline.store.events import Event

POINTS: Final = 300
"""Points of a line, at most; a longer walk is thinned evenly, its first and last page kept."""

MARKS: Final = 200
"""Waits, and refused answers, that are drawn, at most; the longest and the first of them."""

STRETCHES: Final = 8
"""Rows of the table, each of an equal stretch of time."""

WALKS: Final = ("walk", "second walk")


@record
class Wait:
    """What came before an answer that took more than one send.

    Attributes:
        page: the page that was answered in the end.
        begins: seconds since the first walk was opened.
        ends: likewise, when the request was sent that was answered.
    """

    page: int
    begins: float
    ends: float

    @property
    def lasted(self) -> float:
        """Its length in seconds."""
        return self.ends - self.begins


def waits(ledger: Ledger) -> tuple[Wait, ...]:
    """Return the waits of all walks, in order."""
    began = ledger.walks[0][0].received_at
    found = list[Wait]()
    for events in ledger.walks:
        answered = [each for each in events if each.event in ("open", "page")]
        for before, page in pairwise(answered):
            if (page.attempts or 1) > 1 and page.requested_at is not None:
                begins, ends = (_since(began, at) for at in (before.received_at, page.requested_at))
                found.append(Wait(page=page.page or 0, begins=begins, ends=max(begins, ends)))
    return tuple(found)


def refused_answers(ledger: Ledger) -> Table | None:
    """Return the answers that were no pages by status and reason; None where there were none."""
    counted = Counter(
        (str(each.facts.get("asked", "page")), each.facts["status"], str(each.facts["reason"]))
        for events in ledger.walks
        for each in events
        if each.event == "refused"
    )
    if not counted:
        return None
    return Table(
        caption="Answers that were not pages",
        columns=columns("asked for", "status", "reason", "#answers"),
        rows=tuple(
            Row(
                cells=(
                    told(words(asked)),
                    _status(status),
                    told(reason.replace("_", " ")),
                    number(answers),
                )
            )
            for (asked, status, reason), answers in counted.most_common()
        ),
    )


def course_of(ledger: Ledger) -> Figure | None:
    """Return pages over time; None where no page came."""
    began = ledger.walks[0][0].received_at
    lines = tuple(
        Line(label=label, points=_thinned(_points(events, began)))
        for label, events in zip(WALKS, ledger.walks, strict=False)
    )
    pages = sum(1 for events in ledger.walks for each in events if each.event == "page")
    if not pages:
        return None
    waited, refused = waits(ledger), _refused(ledger, began)
    lasted = _since(began, ledger.walks[-1][-1].received_at)
    longest = sorted(waited, key=lambda each: each.lasted, reverse=True)[:MARKS]
    spent = sum(each.lasted for each in waited)
    return Figure(
        name="pages_over_time",
        caption="Pages over time, with waits before a request was answered",
        alternative=(
            f"{pages:,} pages in {seconds(lasted)}, in {len(ledger.walks)} "
            f"walk{'s' if len(ledger.walks) > 1 else ''}; {len(waited):,} pages took more than one "
            f"send, with {seconds(spent)} of waiting; {len(refused):,} answers were not pages."
        ),
        legend=_legend(ledger, waited=bool(waited), refused=bool(refused)),
        plot=Course(
            lines=lines,
            waits=tuple(Span(begins=each.begins, ends=each.ends) for each in longest),
            refused=refused[:MARKS],
        ),
        table=_stretches(ledger, began, lasted, waited),
    )


def _legend(ledger: Ledger, *, waited: bool, refused: bool) -> str:
    said = ["Solid line: the first walk. Dashed line: the second."] * (len(ledger.walks) > 1)
    said += ["Shaded: waits before a page that took more than one send."] * waited
    said += ["Cross: an answer that was not a page."] * refused
    return " ".join(said or ["Line: pages so far."])


def _points(events: Sequence[Event], began: datetime) -> list[tuple[float, int]]:
    pages = [each for each in events if each.event == "page"]
    return [
        (_since(began, events[0].received_at), 0),
        *((_since(began, each.received_at), each.page or 0) for each in pages),
    ]


def _thinned(points: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    if len(points) <= POINTS:
        return tuple(points)
    step = (len(points) - 1) / (POINTS - 1)
    return tuple(points[round(index * step)] for index in range(POINTS))


def _refused(ledger: Ledger, began: datetime) -> tuple[tuple[float, int], ...]:
    found = list[tuple[float, int]]()
    for events in ledger.walks:
        pages = 0
        for each in events:
            pages = each.page or pages
            if each.event == "refused":
                found.append((_since(began, each.received_at), pages))
    return tuple(found)


def _stretches(ledger: Ledger, began: datetime, lasted: float, waited: Sequence[Wait]) -> Table:
    """Return what happened in each of a few stretches of equal length."""
    length = max(lasted, 1e-6) / STRETCHES
    rows = list[list[float]]([0, 0, 0, 0, 0] for _ in range(STRETCHES))

    def at(moment: float) -> list[float]:
        return rows[min(STRETCHES - 1, int(moment / length))]

    for events in ledger.walks:
        for each in events:
            row = at(_since(began, each.received_at))
            if each.event == "page":
                row[0] += 1
                row[1] += each.returned or 0
                row[2] += (each.attempts or 1) - 1
            elif each.event == "refused":
                row[3] += 1
    for each in waited:
        at(each.ends)[4] += each.lasted
    return Table(
        caption="The same as figures, in stretches of equal length",
        columns=columns("#from", "#pages", "#records", "#retries", "#refused", "#waited"),
        rows=tuple(
            Row(
                cells=(
                    f"{index * length:.{1 if length >= 1 else 2}f} s",
                    *(number(int(each)) for each in row[:4]),
                    f"{row[4]:.1f} s",
                )
            )
            for index, row in enumerate(rows)
        ),
    )


def _status(status: object) -> Cell:
    return "no answer, or one that broke a rule" if status is None else told(str(status))


def _since(began: datetime, at: datetime) -> float:
    return max(0.0, (at - began).total_seconds())
