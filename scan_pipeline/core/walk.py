"""The rules of one walk, without any IO."""

from collections.abc import Iterable
from math import ceil
from typing import Any

from scan_pipeline.core.canonical import items_digest
from scan_pipeline.core.chain import cursor_digest
from scan_pipeline.core.contract import Contract
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.page import End, Page, Position, Reported
from scan_pipeline.core.page_doubts import doubts_about
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import MAY_MOVE, LimitName, Severity

NO_PROGRESS_PAGES = 3
"""Consecutive pages of records already read after which a source-led walk stops."""

NEAR = 0.8
"""Share of a limit at which it is told."""


@record
class LimitHit:
    """A limit that stops the walk before its next request."""

    name: LimitName
    allowed: float
    reached: float


class Walk:
    """One walk over one collection; refuses what its contract does not allow.

    Rules, checked before each request (`before_request`):

    - no limit of the contract is reached;
    - the request is new: its continuation was not followed before, beyond what
      `limits.repeated_cursors` tolerates.

    Rules, checked for each page (`admit`):

    - the frozen part of the request is the one the walk began with;
    - under a pin, the first page names the version and every later page the same one; a later page
      may be silent where the request names it, and not where a continuation carries it;
      where names rotate, the next request has to use the newest;
    - an exact total does not move; a page holds as many records as it says; nothing remains at
      the end (an estimate that disagrees is noted, and decides nothing);
    - what a cache kept is no page where the source's present state is what counts, a secret that
      changes must be known to be the same principal's, and two walks go by no offset (all noted);
    - records already read do not come again: at once a break where we compute the position
      ourselves, after `NO_PROGRESS_PAGES` in a row where the source leads.

    A broken rule raises ProtocolError or is kept as a finding; which of the two depends on whether
    going on can still tell the reader something.
    """

    def __init__(self, source: SourceFacts, contract: Contract) -> None:
        self._source, self._contract = source, contract
        self._requested: set[bytes] = set()
        self._items: dict[bytes, int] = {}
        self._fingerprint: bytes | None = None
        self._empty_run = self._repeat_run = self._repeated_cursors = self._largest = 0
        self._near: set[LimitName] = set()
        self.pages = self.records = self.bytes = self.empty_pages = 0
        self.total: int | None = None
        self.pin: str | None = None
        self._pin_is_number = False
        self.checkpoint: str | None = None
        self.findings: list[Finding] = []

    def before_request(self, position: Position, *, seconds: float) -> LimitHit | None:
        """Check that one more request is allowed.

        Args:
            position: what would be asked for.
            seconds: time since the open event without declared waits.

        Returns:
            The limit that forbids the request, or None.

        Raises:
            ProtocolError: `cursor_repeated`, the request was made before.
        """
        asked = cursor_digest(position.token)
        if asked in self._requested:
            self._repeated_cursors += 1
            if self._repeated_cursors > self._contract.limits.repeated_cursors:
                raise ProtocolError(
                    "cursor_repeated",
                    f"page {self.pages} names a continuation that was followed before; expected a "
                    f"new one (limits.repeated_cursors is "
                    f"{self._contract.limits.repeated_cursors})",
                )
        for name, allowed, reached in self._limits(seconds):
            if reached >= allowed:
                return LimitHit(name=name, allowed=allowed, reached=reached)
            if reached >= NEAR * allowed and name not in self._near and name != "empty_pages":
                self._near.add(name)
                self.findings.append(
                    finding(
                        "limit_near",
                        page=self.pages,
                        expected=f"{name} <= {allowed:g}",
                        found=reached,
                    )
                )
        self._requested.add(asked)
        return None

    def admit(self, page: Page) -> bytes:
        """Take one page into the walk and return its items digest.

        Raises:
            ProtocolError: the page breaks a rule and must not be admitted.
        """
        ordinal = self.pages + 1
        if self._fingerprint is not None and page.fingerprint != self._fingerprint:
            raise ProtocolError(
                "request_changed",
                f"page {ordinal} was asked for with another filter, order or principal than page 1",
            )
        self._check_pin(page, ordinal)
        items = items_digest(page.leaf_hashes)
        earlier = self._items.get(items) if page.records else None
        if earlier is not None:
            self._repeat_run += 1
            if self._source.positions_are_ours or self._repeat_run >= NO_PROGRESS_PAGES:
                raise ProtocolError(
                    "no_progress",
                    f"page {ordinal} holds the records of page {earlier}; expected new ones",
                )
            declared = self._contract.delivery != "exactly_once"
            self.findings.append(
                finding(
                    "page_repeated",
                    page=ordinal,
                    expected="new records",
                    found=f"page {earlier}",
                    severity="note" if declared else None,
                )
            )
        else:
            self._repeat_run = 0
        self._check_counts(page, ordinal)
        for doubt in doubts_about(page, ordinal, source=self._source, contract=self._contract):
            self._note_once(doubt)
        self._fingerprint = page.fingerprint
        if isinstance(page.continuation, End):
            self.checkpoint = page.continuation.checkpoint
        self._count(items, returned=page.records, body_bytes=len(page.body))
        return items

    def is_same(self, page: Page, *, items: bytes) -> bool:
        """Say whether a page that was read again is the one that was admitted.

        Args:
            page: as it reads now.
            items: items digest of the one that was admitted.

        Raises:
            ProtocolError: `answer_from_cache`; that a cache keeps it says nothing of the pin.
        """
        if page.reported.from_cache and self._contract.consistency == "snapshot":
            raise ProtocolError(
                "answer_from_cache",
                "a page that was read again was kept by a cache on the way; expected what the "
                "source says now",
            )
        of_pin = self.pin is None or self.is_of_pin(page.reported)
        return of_pin and items_digest(page.leaf_hashes) == items

    def is_of_pin(self, reported: Reported) -> bool:
        """Say whether an answer is of the pinned version, by what it reports; nothing is of it too.

        Where a version's name rotates, the name reported is what the next request has to use.
        A number is no text: a source that names `1` and then `"1"` names two versions.
        """
        pin = self._source.snapshot
        if reported.pin is None:
            return True
        if pin is not None and pin.rotates:
            self.pin = reported.pin
        named = (reported.pin, reported.pin_is_number)
        return named == (self.pin, self._pin_is_number)

    def ends_at_window(self) -> bool:
        """Say whether the end may be that of the source's result window, not of the collection."""
        window = self._source.result_window
        whole = self.total is not None and self.records >= self.total
        return window is not None and self.records >= window and not whole

    def facts(self) -> dict[str, Any]:
        """Return the walk's running figures."""
        return {
            "pages": self.pages,
            "records": self.records,
            "bytes": self.bytes,
            "total": self.total,
        }

    def _count(self, items: bytes, *, returned: int, body_bytes: int) -> None:
        self.pages += 1
        self.records += returned
        self.bytes += body_bytes
        self._largest = max(self._largest, returned)
        if returned:
            self._items.setdefault(items, self.pages)
            self._empty_run = 0
        else:
            self._empty_run += 1
            self.empty_pages += 1

    def _check_pin(self, page: Page, ordinal: int) -> None:
        if self._contract.consistency != "snapshot" or self._source.snapshot is None:
            return
        reported = page.reported.pin
        unseen = self._source.snapshot.travels_in == "continuation"
        if reported is None and (self.pin is None or unseen):
            raise ProtocolError(
                "pin_not_reported", f"page {ordinal} names no version at snapshot.at"
            )
        if self.pin is None:
            self.pin, self._pin_is_number = reported, page.reported.pin_is_number
        elif not self.is_of_pin(page.reported):
            found = _as_named(reported, is_number=page.reported.pin_is_number)
            expected = _as_named(self.pin, is_number=self._pin_is_number)
            raise ProtocolError(
                "snapshot_changed",
                f"page {ordinal} comes from version {found}; expected {expected}",
            )

    def _note_once(self, noticed: Finding) -> None:
        if all(each.code != noticed.code for each in self.findings):
            self.findings.append(noticed)

    def _check_counts(self, page: Page, ordinal: int) -> None:
        reported, count = page.reported, self._source.count
        weight: Severity | None = (
            "note" if count is not None and count.exactness == "estimate" else None
        )
        if reported.page is not None and reported.page != page.records:
            self.findings.append(
                finding(
                    "page_short_of_its_count",
                    page=ordinal,
                    expected=reported.page,
                    found=page.records,
                    severity=weight,
                )
            )
        if isinstance(page.continuation, End) and reported.remaining:
            self.findings.append(
                finding(
                    "remaining_at_end",
                    page=ordinal,
                    expected=0,
                    found=reported.remaining,
                    severity=weight,
                )
            )
        if not self._source.exact_total:
            return
        total = reported.total
        if total is None and reported.remaining is not None:
            total = self.records + page.records + reported.remaining
        if self.total is None:
            self.total = total
        elif total is None:
            self._note_once(
                finding("count_dropped", page=ordinal, expected=self.total, found="no count")
            )
        elif total != self.total:
            moved = "warning" if self._contract.consistency in MAY_MOVE else "error"
            self._note_once(
                finding(
                    "count_changed", page=ordinal, expected=self.total, found=total, severity=moved
                )
            )

    def _limits(self, seconds: float) -> Iterable[tuple[LimitName, float, float]]:
        limits = self._contract.limits
        absolute: tuple[tuple[LimitName, float | None, float], ...] = (
            ("pages", limits.pages, self.pages),
            ("records", limits.records, self.records),
            ("bytes", limits.bytes, self.bytes),
            ("seconds", limits.seconds, seconds),
        )
        for name, allowed, reached in absolute:
            if allowed is not None:
                yield name, allowed, reached
        yield "empty_pages", limits.empty_pages + 1, self._empty_run
        if limits.over_count is not None and self.total is not None and self.pages:
            allowed = self.total * (1 + limits.over_count)
            if self.records > self.total:
                yield "records", allowed, self.records
            implied = pages_implied(self.total, page_size=self._largest)
            if implied is not None and self.pages > implied:
                yield "pages", implied * (1 + limits.over_count), self.pages


def _as_named(pin: str | None, *, is_number: bool) -> str:
    return f"the number {pin}" if is_number else repr(pin)


def pages_implied(total: int, *, page_size: int) -> int | None:
    """Return how many full pages a count implies, at least one; None before a record was seen."""
    return max(1, ceil(total / page_size)) if page_size else None
