"""The answers to a check of a source: one line a question."""

from typing import Final, Literal, TypeAlias

from scan_pipeline.core.value import record

Result: TypeAlias = Literal["passed", "failed", "not_declared", "not_evaluated"]

QUESTIONS: Final = (
    *("access", "identity", "high_water_mark", "first_page", "records", "key", "record_schema"),
    *("continuation", "second_page", "count", "snapshot", "partition_counts"),
)
"""What is asked, in the order in which it is told."""


@record
class Line:
    """The answer to one question.

    Attributes:
        question: one of `QUESTIONS`.
        result: how it was answered.
        found: what was found, in words.
        expected: what the scan file declares, in words.
        remedy: what to do; only where it failed.
    """

    question: str
    result: Result
    found: str = ""
    expected: str = ""
    remedy: str = ""


@record
class Connection:
    """What came of it.

    Attributes:
        lines: one a question.
        pages: pages that were asked for; two at most.
    """

    lines: tuple[Line, ...]
    pages: int

    @property
    def passed(self) -> bool:
        """Whether nothing failed and all that is declared was looked at."""
        return all(each.result in ("passed", "not_declared") for each in self.lines)
