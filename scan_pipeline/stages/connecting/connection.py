"""A scan file held against its source: two pages are asked for, and nothing of them is kept.

Each question is answered in a line of its own: as declared, not as declared, not declared, or not
come to. The lines name fields and kinds, never a token, a secret or a value of a record.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ConfigurationError,
    ContractError,
    EvidenceError,
    NarrowError,
    ProtocolError,
    RestartError,
    ScanPipelineError,
)
from scan_pipeline.core.finding_kinds import KINDS
from scan_pipeline.core.page import End, Opening, Page, Position
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.walk import Walk
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.connecting.counts_of_pages import count_contradicted, counted
from scan_pipeline.stages.connecting.lines import QUESTIONS, Connection, Line
from scan_pipeline.stages.connecting.page_records import look_at

_NOT_AS_DECLARED: Final = (EvidenceError, RestartError, NarrowError, ContractError)
"""What comes of a source that is not as declared; everything else could not be asked."""


_SPOKEN_OF: Final[Mapping[str, str]] = {
    "records_missing": "records",
    "continuation_missing": "continuation",
    "continuation_invalid": "continuation",
    "end_signals_disagree": "continuation",
    "cursor_repeated": "continuation",
    "pin_not_reported": "snapshot",
    "snapshot_changed": "snapshot",
}
"""By the code of a page that was refused, the question that it answers."""


def check_connection(scan: Scan, *, source: Source) -> Connection:
    """Ask a source for what its scan file declares.

    Args:
        scan: the scan.
        source: its open source; at most two pages are asked of it.

    Raises:
        SourceUnavailableError: it did not answer.
        ConfigurationError: a secret is missing; nothing was asked.
    """
    asking = _Asking(scan, source)
    with suppress(_StopAsking):
        asking.run()
    told = {each.question: each for each in asking.lines}
    untold = (told.get(each, Line(question=each, result="not_evaluated")) for each in QUESTIONS)
    return Connection(lines=tuple(untold), pages=asking.pages)


class _StopAsking(Exception):  # noqa: N818  # no error: the rest follows from a line that failed
    """Nothing further can be asked."""


class _Asking:
    """Asks in order, and keeps a line for each answer."""

    def __init__(self, scan: Scan, source: Source) -> None:
        self._scan, self._source = scan, source
        self._walk = Walk(scan.source, scan.contract)
        self.lines: list[Line] = []
        self.pages = 0

    def run(self) -> None:
        opening = self._opening()
        start = Position(high_water_mark=opening.high_water_mark)
        first = self._page("first_page", start)
        self._passed("access", "the source answers our requests")
        self._passed("first_page", f"{len(first.body):,} bytes that parse as declared")
        self._continuation(first)
        second = self._second(first, start)
        pages = [first] if second is None else [first, second]
        self._records(pages)
        self._count(pages)
        self._snapshot(pages)
        self._partition_counts(start)

    def _opening(self) -> Opening:
        facts = self._scan.source
        asked = [name for name in ("identity", "high_water_mark") if getattr(facts, name, None)]
        try:
            opening = self._source.opening()
        except AccessRefusedError as error:
            self._refused(error)
            raise _StopAsking from error
        except ConfigurationError:
            raise
        except _NOT_AS_DECLARED as error:
            for name in asked or ["access"]:
                self._failed(name, error, expected="an answer as the scan file declares it")
            raise _StopAsking from error
        if "identity" in asked or opening.principal is not None:
            tenant = "" if opening.tenant is None else f" of tenant {opening.tenant}"
            self._passed("identity", f"{opening.principal}{tenant}")
        else:
            self._undeclared("identity", "the source is not asked as whom it sees us")
        if "high_water_mark" in asked:
            self._passed("high_water_mark", "a bound is named")
        else:
            self._undeclared("high_water_mark", "no bound is sent")
        return opening

    def _page(self, question: str, position: Position) -> Page:
        """Ask for a page and hold it against the rules of a walk."""
        self.pages += 1
        try:
            self._walk.before_request(position, seconds=0)
            page = self._source.fetch(position, refused=lambda _: None)
            self._walk.admit(page)
        except AccessRefusedError as error:
            self._refused(error)
            raise _StopAsking from error
        except ConfigurationError:
            raise
        except _NOT_AS_DECLARED as error:
            self._failed(question, error, expected="a page by the declared protocol")
            raise _StopAsking from error
        return page

    def _records(self, pages: Sequence[Page]) -> None:
        at = getattr(self._scan.source, "records_at", None)
        where = "" if at is None else f" at {'.'.join(at) or '$'}"
        number = sum(page.records for page in pages)
        self._passed("records", f"{number:,} records on {len(pages)} page(s){where}")
        if not number:
            return  # neither key nor schema can be looked at, which is not to say that they hold
        texts = [text for page in pages for text in self._source.records(page.body)]
        seen = look_at(self._scan, texts)
        expected = ", ".join(self._scan.contract.key)
        if seen.without_key:
            self._wrong(
                "key",
                found=f"{seen.without_key:,} of {number:,} records have no text or integer there",
                expected=f"{expected} in every record",
                remedy="correct contract.key: such a record cannot be counted, and fails the scan",
            )
        elif seen.twice and self._scan.contract.delivery != "at_least_once":
            self._wrong(
                "key",
                found=f"{seen.twice:,} keys stand twice on the pages",
                expected=f"{expected} once in the collection",
                remedy="name every field that makes a record, or declare delivery: at_least_once",
            )
        else:
            self._passed("key", f"{expected}: {', '.join(seen.key_kinds)}, in every record")
        if self._scan.record_schema is None:
            self._undeclared("record_schema", f"columns are inferred: {len(seen.fields)} fields")
        elif seen.nonconforming:
            told = "; ".join(f"{name} is not {kind}" for name, kind in seen.wrong[:5])
            self._wrong(
                "record_schema",
                found=f"{seen.nonconforming:,} of {number:,} records do not conform: {told}",
                expected="records of the declared columns",
                remedy="correct record_schema; or say how many may not conform, under accept",
            )
        else:
            extra = f"; without a column: {', '.join(seen.unknown[:5])}" if seen.unknown else ""
            self._passed("record_schema", f"all {number:,} records conform{extra}")

    def _continuation(self, page: Page) -> None:
        if isinstance(page.continuation, End):
            self._passed("continuation", f"the declared end: {page.continuation.signal}")
        else:
            self._passed("continuation", "the declared field says that more follows, and how")

    def _second(self, first: Page, start: Position) -> Page | None:
        if isinstance(first.continuation, End):
            self._undeclared("second_page", "there is none: the first page is the last")
            return None
        position = Position(
            token=first.continuation.token,
            pin=self._walk.pin,
            high_water_mark=start.high_water_mark,
        )
        page = self._page("second_page", position)
        again = set(first.leaf_hashes) & set(page.leaf_hashes)
        if again:
            self._wrong(
                "second_page",
                found=f"{len(again):,} records of the first page came again",
                expected="other records",
                remedy="correct source.next: the continuation may not be what the source reads",
            )
        else:
            self._passed("second_page", f"{page.records:,} other records")
        return page

    def _count(self, pages: Sequence[Page]) -> None:
        facts = self._scan.source.count
        if facts is None:
            self._undeclared("count", "the source is not asked how many there are")
            return
        still = self._scan.contract.consistency != "live"
        wrong = count_contradicted(facts, pages, self._walk.findings, still=still)
        if wrong is not None:
            self._wrong(
                "count",
                found=wrong,
                expected=f"a count that means {facts.means}, {facts.exactness}",
                remedy="correct source.count: where it stands, what it means, whether it is exact",
            )
            return
        self._passed(
            "count", f"{facts.means} {counted(pages[0], facts):,}, declared {facts.exactness}"
        )

    def _snapshot(self, pages: Sequence[Page]) -> None:
        snapshot = self._scan.source.snapshot
        if snapshot is None:
            self._undeclared("snapshot", "no version is pinned")
            return
        pins = {page.reported.pin for page in pages}
        if pins == {None}:
            self._wrong(
                "snapshot",
                found="no version on the page",
                expected="a version at source.snapshot.at",
                remedy="correct source.snapshot, or declare contract.consistency: live",
            )
        elif len(pins - {None}) > 1 and not snapshot.rotates:
            self._wrong(
                "snapshot",
                found="another version on the second page",
                expected="the one that was sent",
                remedy="correct source.snapshot.send_as, or declare contract.consistency: live",
            )
        else:
            self._passed("snapshot", "a version is named, and repeated where it was sent")

    def _partition_counts(self, start: Position) -> None:
        declared = getattr(self._scan.source, "partition_counts", None) is not None
        if not declared:
            self._undeclared("partition_counts", "the source is not asked to count by partition")
            return
        position = Position(pin=self._walk.pin, high_water_mark=start.high_water_mark)
        try:
            counts = self._source.closing(position).partition_counts
        except AccessRefusedError as error:
            self._refused(error)
            return
        except ConfigurationError:
            raise
        except _NOT_AS_DECLARED as error:
            self._failed("partition_counts", error, expected="counts by partition")
            return
        sure = any(e.question == "count" and e.result == "passed" for e in self.lines)
        total = self._walk.total if sure and self._scan.source.exact_total else None
        told = f"{len(counts or {}):,} partitions, {sum((counts or {}).values()):,} records"
        if total is not None and sum((counts or {}).values()) != total:
            self._wrong(
                "partition_counts",
                found=told,
                expected=f"{total:,} records, as the source's count says",
                remedy="see whether both count the same filter, under the same version",
            )
        else:
            self._passed("partition_counts", told)

    def _passed(self, question: str, found: str) -> None:
        self.lines.append(Line(question=question, result="passed", found=found))

    def _undeclared(self, question: str, found: str) -> None:
        self.lines.append(Line(question=question, result="not_declared", found=found))

    def _wrong(self, question: str, *, found: str, expected: str, remedy: str) -> None:
        self.lines.append(
            Line(question=question, result="failed", found=found, expected=expected, remedy=remedy)
        )

    def _failed(self, question: str, error: ScanPipelineError, *, expected: str) -> None:
        code = error.code if isinstance(error, ProtocolError) else None
        question = _SPOKEN_OF.get(code or "", question)
        known: Any = None if code is None else KINDS.get(code)
        remedy = "correct what the scan file declares of it" if known is None else known.remedy
        self._wrong(question, found=str(error), expected=expected, remedy=remedy)

    def _refused(self, error: AccessRefusedError) -> None:
        self._wrong(
            "access",
            found=str(error),
            expected="rights to read",
            remedy="look at source.auth, and at what its variable or file holds",
        )
