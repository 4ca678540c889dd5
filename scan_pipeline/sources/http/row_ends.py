"""What ends a walk whose positions are ours: what the source says, or what its page looks like.

What the source says outranks what a page looks like. Where a total, a number of pages or a flag is
declared, all of them must agree on the end, and an empty page before it contradicts them. Where
nothing of the kind is to be had, an empty page ends a walk; a short one does so as an inference,
and only after a page as large as was asked for: until then the source may be clipping pages.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import End
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpCountFacts, HttpFacts
from scan_pipeline.sources.http.reported import count_of
from scan_pipeline.sources.http.source import Received

RowEndWord = Literal[
    "total_reached", "total_pages", "false", "equals", "null", "empty_page", "short_page"
]

SHAPES: Final = frozenset({"empty_page", "short_page"})
"""Words that speak of a page's shape; the others are what the source says."""

INFERRED: Final = "short_page:inferred"
"""Name of the end that was concluded from a page shorter than those before."""


@record
class RowEnd:
    """One declared end.

    Attributes:
        at: where it stands; not needed for `total_reached`, which reads the source's count, and
            for the shapes.
        word: its shape, written `is` in a scan file.
        value: the value of `equals`.
    """

    at: FieldPath | None = None
    word: Annotated[RowEndWord, Field(alias="is")]
    value: str | int | bool | None = None

    def __post_init__(self) -> None:
        at_home = self.word in SHAPES or self.word == "total_reached"
        if at_home != (self.at is None):
            told = "no `at`" if at_home else "`at`, the field it stands in"
            raise ContractError(f"an end that is {self.word} needs {told}")


@record
class Progress:
    """How far a walk is with a page.

    Attributes:
        records: records of the page.
        read: records up to and with it; None where the position does not say.
        pages: pages up to and with it, likewise.
        asked: page size that was asked for, None where none was.
        seen_full: whether a page as large as asked was seen, this one included.
    """

    records: int
    read: int | None
    pages: int | None
    asked: int | None
    seen_full: bool


def check_ends(ends: tuple[RowEnd, ...], source: HttpFacts, *, words: frozenset[str]) -> None:
    """Refuse ends that a source cannot show.

    Args:
        ends: as declared.
        source: facts of the source.
        words: words that its protocol has the figures for.

    Raises:
        ContractError: what is wrong.
    """
    named = {each.word for each in ends}
    if not named <= words:
        raise ContractError(
            f"an end that is {', '.join(sorted(named - words))} cannot be told by protocol "
            f"{source.protocol}; expected some of {sorted(words)}"
        )
    if named & SHAPES and named - SHAPES:
        raise ContractError(
            "ends_when mixes what the source says with what a page looks like; expected one of the "
            "two: an empty page before a declared total or flag contradicts it"
        )
    if "total_reached" in named and not source.exact_total:
        raise ContractError("total_reached needs an exact source.count")
    if "short_page" in named and source.page_size is None:
        raise ContractError("short_page needs source.page_size")


def end_of_rows(
    ends: tuple[RowEnd, ...], received: Received, count: HttpCountFacts | None, progress: Progress
) -> End | None:
    """Return the declared end that a page shows, None where the walk goes on.

    Raises:
        ProtocolError: `continuation_missing`, `continuation_invalid`, `reported_invalid`, or
            `end_signals_disagree`, also for an empty page before the declared end.
    """
    if all(each.word in SHAPES for each in ends):
        return _shape_end({each.word for each in ends}, progress)
    headers = received.answer.headers
    said = {_name(each): _says(each, received.around, headers, count, progress) for each in ends}
    if all(said.values()):
        return End(signal="+".join(sorted(said)))
    ending = [name for name, ends_here in said.items() if ends_here]
    if ending or not progress.records:
        told = ", ".join(ending) or "an empty page"
        others = ", ".join(name for name, ends_here in said.items() if not ends_here)
        raise ProtocolError(
            "end_signals_disagree", f"{told} says the end; {others} says that more follows"
        )
    return None


def _shape_end(words: set[RowEndWord], progress: Progress) -> End | None:
    if not progress.records:
        return End(signal="empty_page")
    short = progress.asked is not None and progress.records < progress.asked
    if "short_page" in words and short and progress.seen_full:
        return End(signal=INFERRED)
    return None


def _says(
    end: RowEnd,
    around: Any,
    headers: Mapping[str, str],
    count: HttpCountFacts | None,
    progress: Progress,
) -> bool:
    if end.word == "total_reached":
        total = None if count is None else count_of(around, headers, count)
        if total is None or progress.read is None:
            raise ProtocolError("continuation_missing", "the page reports no count of the whole")
        left = total if count is not None and count.means == "remaining" else total - progress.read
        return left <= 0
    value = value_at(around, end.at or ())
    where = ".".join(end.at or ())
    if value is ABSENT:
        raise ProtocolError(
            "continuation_missing", f"no field at {where}; expected it on every page"
        )
    match end.word:
        case "total_pages" if type(value) is int and value >= 0 and progress.pages is not None:
            return progress.pages >= value
        case "false" if isinstance(value, bool):
            return not value
        case "null":
            return value is None
        case "equals":
            return type(value) is type(end.value) and value == end.value
        case _:
            raise ProtocolError(
                "continuation_invalid", f"{where} does not hold what {end.word} needs"
            )


def _name(end: RowEnd) -> str:
    return end.word if end.at is None else f"{'.'.join(end.at)}:{end.word}"
