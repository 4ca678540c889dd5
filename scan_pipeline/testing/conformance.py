"""Runs behaviours through the real engine, tables and judgement, and says what came of each."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TypeAlias

from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.testing.behaviours import BEHAVIOURS, EXPECTED, Behaviour, Group, Outcome
from scan_pipeline.testing.bench import Bench
from scan_pipeline.testing.faults import CALM, Fault, FaultKind, NotExercisedError
from scan_pipeline.testing.kit_scan import with_continuation
from scan_pipeline.testing.ready import Ready
from scan_pipeline.testing.verdicts import Walked, wrong_with

THIRD_PAGE: Final[frozenset[FaultKind]] = frozenset(
    {
        "continuation_cycle",
        "page_repeated",
        "rows_inserted",
        "rows_deleted",
        "pin_changed",
        "pin_ignored",
        "expired",
    }
)
"""Faults that need two pages before them."""

Verdict: TypeAlias = Literal["passed", "failed", "not_exercised"]


class ConformanceError(ScanPipelineError, AssertionError):
    """A source does not behave as every source must."""


@record
class Result:
    """What came of one behaviour.

    Attributes:
        behaviour: its name, e.g. `end-body_cut`.
        group: which of the seven.
        says: what happened to the source.
        expected: what must come of it.
        found: what did, or why it was not exercised.
        verdict: whether that is what must.
    """

    behaviour: str
    group: Group
    says: str
    expected: str
    found: str
    verdict: Verdict

    def check(self) -> None:
        """Say nothing where it passed, or was not exercised.

        Raises:
            ConformanceError: it failed; an AssertionError too, as pytest shows them.
        """
        if self.verdict == "failed":
            raise ConformanceError(
                f"{self.behaviour} ({self.says}): found {self.found}; expected {self.expected}"
            )


@record
class Report:
    """What came of all of them."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """Whether none failed, and at least one was exercised."""
        verdicts = {each.verdict for each in self.results}
        return "failed" not in verdicts and "passed" in verdicts

    def check(self) -> None:
        """Say nothing where none failed; raises as `Result.check`, for the first that did."""
        for each in self.results:
            each.check()

    def __str__(self) -> str:
        words = {"passed": "ok", "failed": "FAILED", "not_exercised": "-"}
        width = max((len(each.behaviour) for each in self.results), default=0)
        lines = []
        for each in self.results:
            lines.append(f"{words[each.verdict]:<7} {each.behaviour:<{width}}  {each.says}")
            if each.verdict == "failed":
                lines.append(f"{'':8}expected {each.expected}")
            lines.append(f"{'':8}{each.found}")
        return "\n".join(lines)


class Conformance:
    """Holds one source to the table of behaviours.

    Args:
        bench: the source.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def run(self, behaviour: Behaviour) -> Result:
        """Play one behaviour, each time in a lake of its own that is thrown away."""
        try:
            expected, found, verdict = self._played(behaviour)
        except NotExercisedError as error:
            expected, found, verdict = "", f"not exercised: {error}", "not_exercised"
        return Result(
            behaviour=str(behaviour),
            group=behaviour.group,
            says=behaviour.says,
            expected=expected,
            found=found,
            verdict=verdict,
        )

    def report(self, behaviours: Iterable[Behaviour] = BEHAVIOURS) -> Report:
        """Play several, all of them unless told otherwise."""
        return Report(results=tuple(self.run(each) for each in behaviours))

    @cached_property
    def _calm(self) -> Walked:
        """The undisturbed walk, which the others are held to."""
        with self._ready(CALM, None) as ready:
            return ready.walk()

    def _played(self, behaviour: Behaviour) -> tuple[str, str, Verdict]:
        if behaviour.fault == "other_signal":
            faults = [Fault(kind="other_signal", variant=number) for number in range(1, 9)]
        else:
            page = 3 if behaviour.fault in THIRD_PAGE else 2
            faults = [Fault(kind=behaviour.fault, page=page)]
        expected, told = "", list[str]()
        for fault in faults:
            try:
                outcome, wrong, found = self._outcome(behaviour, fault)
            except NotExercisedError:
                if told:
                    break
                raise
            expected = EXPECTED[outcome]
            if wrong:
                return expected, wrong, "failed"
            told.append(found)
        return expected, "; ".join(dict.fromkeys(told)), "passed"

    def _outcome(self, behaviour: Behaviour, fault: Fault) -> tuple[Outcome, str | None, str]:
        """Return what must come of a fault, what is wrong with what did, and what did."""
        walks = self._killed(behaviour) if behaviour.kills else [self._disturbed(behaviour, fault)]
        outcome: Outcome = "whole"
        found = ""
        for scan, walked in walks:
            outcome = behaviour.expected(scan, fault)
            same = fault.kind not in ("no_records", "last_page_full")
            wrong = wrong_with(
                outcome, walked, calm=self._calm if same and fault.strikes else None, fault=fault
            )
            found = walked.told()
            if wrong:
                return outcome, wrong, found
        return outcome, None, found

    def _disturbed(self, behaviour: Behaviour, fault: Fault) -> tuple[Scan, Walked]:
        with self._ready(fault, behaviour) as ready:
            walked = ready.walk()
            if not ready.opened.struck():
                raise NotExercisedError(
                    f"the walk never came to page {fault.page}; give the bench more records"
                )
            return walked.scan, walked

    def _killed(self, behaviour: Behaviour) -> Iterator[tuple[Scan, Walked]]:
        """Kill a walk after each page but the last, and let another process go on."""
        pages = self._calm.pages
        if pages < 2:
            raise NotExercisedError("the walk has one page; give the bench more records")
        for page in range(1, pages):
            with self._ready(CALM, behaviour) as ready:
                ready.kill(after=page)
                walked = ready.walk()
                yield walked.scan, walked

    @contextmanager
    def _ready(self, fault: Fault, behaviour: Behaviour | None) -> "Iterator[Ready]":
        kind = None if behaviour is None else behaviour.continuation
        scan = with_continuation(self._bench.scan, kind)
        with self._bench.open(scan, fault) as opened, tempfile.TemporaryDirectory() as folder:
            yield Ready(scan, opened, folder=Path(folder), ordered=self._bench.ordered)


def conformance(bench: Bench, behaviours: Iterable[Behaviour] = BEHAVIOURS) -> Report:
    """Hold a source to behaviours, all of them unless told otherwise."""
    return Conformance(bench).report(behaviours)
