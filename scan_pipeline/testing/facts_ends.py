"""What follows a page, written in the shape that a scan file declares."""

from collections.abc import Mapping
from typing import Any, Final

import httpx2

from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.end_signals import EndSignal
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.row_ends import SHAPES, RowEnd
from scan_pipeline.sources.last_key import LastKeySource
from scan_pipeline.sources.next_link import NextLinkSource
from scan_pipeline.sources.offset import OffsetSource
from scan_pipeline.sources.page_token import PageTokenSource
from scan_pipeline.testing.faults import NotExercisedError
from scan_pipeline.testing.paths import other_than, put

NOT_SHOWN: Final = frozenset({"total_reached"})
"""Signals that a token's protocol cannot read."""


@record
class Told:
    """What a page says of what follows.

    Attributes:
        token: continuation that leads on; for a link protocol the whole address. None at the end.
        more: whether anything follows.
        pages: pages of the whole collection.
        lies: fault of the signals: `signals_disagree` or `continuation_missing`; None for none.
    """

    token: str
    more: bool
    pages: int
    lies: str | None = None


class FactsEnds:
    """Writes what follows into answers, after the facts of their source.

    Args:
        facts: the source.
        variant: which of several shapes of the end, from 0.
    """

    def __init__(self, facts: HttpFacts, *, variant: int) -> None:
        self._facts = facts
        self._tokens: dict[FieldPath, list[EndSignal]] = {}
        self._rows: tuple[RowEnd, ...] = ()
        self.header: str | None = None
        self._at: FieldPath = ()
        if isinstance(facts, PageTokenSource):
            self.header, self._at = facts.next.header, facts.next.at
            self._group(facts.next.ends_when)
        elif isinstance(facts, NextLinkSource):
            self.header = None if facts.next.relation is None else "link"
            self._at = facts.next.at
            self._group(facts.next.ends_when)
        elif isinstance(facts, OffsetSource | LastKeySource):
            self._rows = facts.next.ends_when
        alternatives = self._tokens.get(self._at, [])
        if variant and variant >= len(alternatives):
            raise NotExercisedError("one shape of the end is declared, and no other")
        self._shown = alternatives[variant] if alternatives else None

    @property
    def by_empty_page(self) -> bool:
        """Whether the end is an empty page, so that every page before it names another."""
        return self._shown is not None and self._shown.word == "empty_page"

    def can_disagree(self) -> bool:
        """Say whether there is more than one field to disagree."""
        said = [each for each in self._rows if each.word not in SHAPES]
        return len(self._tokens) > 1 or len(said) > 1

    def can_be_missing(self) -> bool:
        """Say whether the walk reads a field that can be left out."""
        return bool(self._tokens) or any(each.at is not None for each in self._rows)

    def write(self, around: Any, headers: dict[str, str], told: Told) -> Any:
        """Return a body with what follows written into it; headers are added to."""
        if self._rows:
            return self._write_rows(around, told)
        return self._write_token(around, headers, told)

    def _group(self, signals: tuple[EndSignal, ...]) -> None:
        for each in signals:
            at = self._at if each.at is None else each.at
            self._tokens.setdefault(at, [])
            if each.word not in NOT_SHOWN:
                self._tokens[at].append(each)
        self._tokens.setdefault(self._at, [])
        if any(not signals for at, signals in self._tokens.items() if at != self._at):
            raise NotExercisedError("an end is declared that this protocol cannot read")

    def _write_token(self, around: Any, headers: dict[str, str], told: Told) -> Any:
        missing = told.lies == "continuation_missing"
        lying = told.lies == "signals_disagree"
        for at, signals in self._tokens.items():
            if at == self._at:
                continue
            # The flag beside the token is the one that lies: it says the end, and a token is there.
            more = told.more and not lying
            around = self._write_flag(around, at, signals[0], more=more)
        if missing:
            return around
        if told.more or self._shown is None or self.by_empty_page:
            return self._place(around, headers, told.token)
        match self._shown.word:
            case "absent" | "no_next_link":
                return around
            case "null":
                return self._place(around, headers, None)
            case "empty_string":
                return self._place(around, headers, "")
            case "false":
                return self._place(around, headers, False)
            case _:
                return self._place(around, headers, self._shown.value)

    def _place(self, around: Any, headers: dict[str, str], value: Any) -> Any:
        if self.header == "link":
            headers["link"] = f'<{value}>; rel="{self._relation}"'
        elif self.header is not None:
            headers[self.header] = str(value)
        else:
            return put(around, self._at, value)
        return around

    @property
    def _relation(self) -> str:
        facts = self._facts
        return (facts.next.relation if isinstance(facts, NextLinkSource) else None) or "next"

    def _write_flag(self, around: Any, at: FieldPath, signal: EndSignal, *, more: bool) -> Any:
        shapes: Mapping[str, tuple[Any, Any]] = {
            "null": (None, "more"),
            "empty_string": ("", "more"),
            "false": (False, True),
            "equals": (signal.value, other_than(signal.value)),
            "empty_page": ("more", "more"),
        }
        if signal.word in ("absent", "no_next_link"):
            return put(around, at, "more") if more else around
        end, goes_on = shapes[signal.word]
        return put(around, at, goes_on if more else end)

    def _write_rows(self, around: Any, told: Told) -> Any:
        fields = [each for each in self._rows if each.at is not None]
        if told.lies == "continuation_missing":
            fields = fields[1:]
        for number, each in enumerate(fields):
            lying = told.lies == "signals_disagree" and number == 0
            more = told.more and not lying
            match each.word:
                case "total_pages":
                    value = 0 if lying else told.pages
                case "false":
                    value = more
                case "null":
                    value = "more" if more else None
                case _:
                    value = other_than(each.value) if more else each.value
            around = put(around, each.at or (), value)
        return around


def link_to(request: httpx2.Request, facts: HttpFacts, added: Mapping[str, str]) -> str:
    """Return the address of the next page: that of this one, with what is added replaced."""
    url = httpx2.URL(facts.url)
    params = {**dict(request.url.params), **added}
    return str(url.copy_with(query=None).copy_merge_params(list(params.items())))
