"""What may befall a source in the middle of a walk, as closed words."""

from typing import Final, Literal, TypeAlias, get_args

from scan_pipeline.core.value import record

FaultKind: TypeAlias = Literal[
    "none",
    "continuation_repeated",
    "continuation_cycle",
    "page_repeated",
    "throttled",
    "unavailable",
    "timed_out",
    "response_lost",
    "rows_inserted",
    "rows_deleted",
    "pin_changed",
    "pin_ignored",
    "expired",
    "continuation_missing",
    "signals_disagree",
    "error_with_success",
    "login_page",
    "body_cut",
    "page_emptied",
    "last_page_full",
    "no_records",
    "other_signal",
]
"""What happens at a page:

- `continuation_repeated`: its continuation is the one that it was asked for with.
- `continuation_cycle`: its continuation leads back to the page before it.
- `page_repeated`: it and every later page hold the records of the page before, and go on.
- `throttled`, `unavailable`: the first answer is 429 with `Retry-After`, or 503, or the like.
- `timed_out`, `response_lost`: the source did its part; the answer does not arrive.
- `rows_inserted`, `rows_deleted`: one row at the front comes or goes before it is read (under a
  high-water mark, one beyond the mark comes).
- `pin_changed`: it, and every later page, name another version.
- `pin_ignored`: rows come and go although the version that is named stays the same.
- `expired`: the version or continuation is gone, once.
- `continuation_missing`: what says whether something follows is not in the answer.
- `signals_disagree`: one signal says the end and another does not.
- `error_with_success`: an error where the status says success, with records beside it.
- `login_page`: an HTML page with status 200.
- `body_cut`: the body breaks off, and nothing else says so.
- `page_emptied`: no records; the walk goes on from where it was.

And of the whole collection: `last_page_full` (it fills its pages exactly), `no_records`,
`other_signal` (the end in the shape of another of its declared signals).
"""

FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

OF_THE_COLLECTION: Final = frozenset({"none", "last_page_full", "no_records", "other_signal"})
"""Kinds that are so from the beginning; the others strike at a page."""


@record
class Fault:
    """One thing that befalls a source.

    Attributes:
        kind: what.
        page: at which page request, from 1; of no meaning for kinds of the collection.
        variant: which of several shapes, from 0.
    """

    kind: FaultKind
    page: int = 2
    variant: int = 0

    @property
    def strikes(self) -> bool:
        """Whether it strikes at a page."""
        return self.kind not in OF_THE_COLLECTION


CALM: Final = Fault(kind="none")


class NotExercisedError(Exception):
    """A bench cannot do this to its source, or the source has nothing of the kind to break."""
