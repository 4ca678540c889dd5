"""First stage: follow the source to its declared end, every event durable."""

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from scan_pipeline.core.canonical import items_digest
from scan_pipeline.core.contract import ContractDigests, Scan, scan_json
from scan_pipeline.core.errors import (
    AccessRefusedError,
    CancelledError,
    ConfigurationError,
    ContinuationConsumedError,
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    SourceUnavailableError,
)
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.page import End, Opening, Position, Refusal
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import StopReason, Traversal
from scan_pipeline.core.walk import LimitHit, PastPage, Walk
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.recorder import Recorder
from scan_pipeline.store.events import Event, EventLog, open_token
from scan_pipeline.store.generations import GenerationStore, committed

SHARD = 0

Progress: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Told of the walk's running figures after each page."""


@record
class Stopped:
    """How a walk stopped."""

    traversal: Traversal
    stop_reason: StopReason
    findings: tuple[Finding, ...] = ()
    limit: LimitHit | None = None


_STOPS: tuple[tuple[type[ScanPipelineError], StopReason], ...] = (
    (SnapshotExpiredError, "snapshot_expired"),
    (ContinuationConsumedError, "continuation_consumed"),
    (AccessRefusedError, "access_refused"),
    (SourceUnavailableError, "source_unavailable"),
)


class Enumeration:
    """One walk of one generation, begun or taken up again.

    Args:
        scan: what is enumerated.
        source: its open source.
        store: the generation's tables.
        digests: digests of the contract's blocks.
        schema_fingerprint: digest of the record schema's content.
        clock: time in UTC.
        check_cancelled: called before each request; raises CancelledError to end the walk.
        interruptions: exceptions from outside that mean the same.
        progress: told of the running figures.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        source: Source,
        store: GenerationStore,
        digests: ContractDigests,
        schema_fingerprint: str,
        clock: Callable[[], datetime],
        check_cancelled: Callable[[], None],
        interruptions: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        progress: Progress = lambda _: None,
    ) -> None:
        self._scan, self._source, self._store = scan, source, store
        self._digests, self._schema_fingerprint = digests, schema_fingerprint
        self._clock, self._check_cancelled = clock, check_cancelled
        self._interruptions = (CancelledError, *interruptions)
        self._progress = progress
        self._walk = Walk(scan.source, scan.contract)

    def run(self, *, restart_of: str | None) -> None:
        """Walk to an end of some kind and close the generation; a closed one is left as it is.

        Raises:
            WriterConflictError: another writer holds the generation; nothing more is written.
            ConfigurationError: a secret or key is missing; nothing was asked of the source.
        """
        past = self._store.events()
        if past and past[-1].event == "close":
            return
        pages = [event for event in past if event.event == "page"]
        log = EventLog(last=past[-1] if past else None, pages=len(pages))
        recorder = Recorder(
            self._store.admission(shard=SHARD),
            scan=self._scan.name,
            generation=self._store.generation,
            shard=SHARD,
            sealer=self._store.sealer(),
            operation=self._scan.operation,
            committed=committed(past[-1] if past else None),
            sealed=self._store.is_sealed,
        )
        try:
            opened, opening, failed = self._open(log, recorder, past, restart_of)
            stopped = failed or self._follow(log, recorder, pages, opening, opened)
            facts = self._close_facts(recorder, stopped, opening)
            recorder.put(log.close(facts, at=self._clock()))
            recorder.finish()
        finally:
            recorder.drop()

    def _open(
        self, log: EventLog, recorder: Recorder, past: list[Event], restart_of: str | None
    ) -> tuple[datetime, Opening, Stopped | None]:
        """Commit the open event before the first page is asked for, or take up an old one."""
        opening, failed = Opening(), None
        try:
            opening = self._source.opening()
        except ConfigurationError as error:
            if not isinstance(error, AccessRefusedError):
                raise
            failed = self._stopped(error)
        except ScanPipelineError as error:
            failed = self._stopped(error)
        if past:
            return past[0].received_at, self._as_opened(past[0], opening), failed
        now = self._clock()
        facts = {
            "scan": self._scan.name,
            "generation": self._store.generation,
            "restart_of": restart_of,
            "contract": scan_json(self._scan),
            "schema_fingerprint": self._schema_fingerprint,
            "digests": self._digests.__dict__,
            "adapter": self._source.adapter.__dict__,
            "before": _opening_facts(opening),
        }
        recorder.put(log.open(facts, at=now))
        recorder.flush()
        return now, opening, failed

    def _as_opened(self, opened: Event, now: Opening) -> Opening:
        """Return the opening of a walk that is taken up, noting another identity."""
        before = Opening(**opened.facts["before"])
        if (now.principal, now.tenant) != (before.principal, before.tenant):
            self._walk.findings.append(
                finding("principal_changed", expected=before.principal, found=now.principal)
            )
        return before

    def _follow(
        self,
        log: EventLog,
        recorder: Recorder,
        pages: list[Event],
        opening: Opening,
        opened: datetime,
    ) -> Stopped:
        """Ask for page after page until something ends the walk."""

        def refused(refusal: Refusal) -> None:
            recorder.put(log.refused(refusal))

        try:
            position = self._take_up(pages, opening)
            while position is not None:
                self._check_cancelled()
                elapsed = (self._clock() - opened).total_seconds() - self._source.waited
                hit = self._walk.before_request(position, seconds=elapsed)
                if hit is not None:
                    return self._limited(hit)
                page = self._source.fetch(position, refused=refused)
                try:
                    items = self._walk.admit(page)
                except ProtocolError as error:
                    body = sha256(page.body).digest()
                    refused(
                        Refusal(
                            position=position,
                            status=None,
                            reason=error.code,
                            body_digest=body,
                            at=page.received_at,
                        )
                    )
                    raise
                recorder.put(log.page(page, items=items))
                if self._scan.source.continuation == "single_use":
                    recorder.flush()
                self._progress(self._walk.facts())
                position = self._after(page.continuation, position)
            return Stopped(traversal="finished", stop_reason="end_signal")
        except self._interruptions:
            return Stopped(
                traversal="cancelled", stop_reason="cancelled", findings=(finding("cancelled"),)
            )
        except ConfigurationError as error:
            if not isinstance(error, AccessRefusedError):
                raise
            return self._stopped(error)
        except (ProtocolError, SnapshotExpiredError) as error:
            return self._stopped(error)
        except (ContinuationConsumedError, SourceUnavailableError) as error:
            return self._stopped(error)

    def _after(self, continuation: Any, position: Position) -> Position | None:
        if isinstance(continuation, End):
            return None
        return Position(
            token=continuation.token,
            pin=self._walk.pin,
            high_water_mark=position.high_water_mark,
        )

    def _take_up(self, pages: list[Event], opening: Opening) -> Position | None:
        """Return where to ask next: the first page, or after the last one committed.

        Raises:
            ProtocolError: `page_changed_on_resume`, the last page reads differently now.
            ContinuationConsumedError: the walk's continuations cannot be used again.
        """
        first = Position(high_water_mark=opening.high_water_mark)
        if not pages:
            return first
        if self._scan.source.continuation != "repeatable":
            raise ContinuationConsumedError(
                "the walk broke off and its continuations work only once; a new generation must "
                "begin"
            )
        self._walk.remember(_past(event) for event in pages)
        last = pages[-1]
        again = Position(
            token=self._token(last, "cursor_in"),
            pin=self._walk.pin,
            high_water_mark=opening.high_water_mark,
        )
        page = self._source.fetch(again, refused=lambda _: None)
        if items_digest(page.leaf_hashes) != last.items_digest:
            raise ProtocolError(
                "page_changed_on_resume",
                f"page {len(pages)} holds other records than when it was admitted",
            )
        if last.end_signal is not None:
            return None
        return Position(
            token=self._token(last, "cursor_out"),
            pin=self._walk.pin,
            high_water_mark=opening.high_water_mark,
        )

    def _token(self, event: Event, column: str) -> str | None:
        return open_token(
            event,
            scan=self._scan.name,
            generation=self._store.generation,
            shard=SHARD,
            sealer=self._store.sealer(),
            column=column,
        )

    def _close_facts(
        self, recorder: Recorder, stopped: Stopped, opening: Opening
    ) -> dict[str, Any]:
        """Return the close event's facts: how it stopped, the recheck, the identity after."""
        recheck: list[dict[str, Any]] = []
        after = None
        findings = [*self._walk.findings, *stopped.findings]
        if stopped.stop_reason == "end_signal":
            try:
                recheck = self._recheck(recorder, opening)
                position = Position(pin=self._walk.pin, high_water_mark=opening.high_water_mark)
                after = _opening_facts(self._source.closing(position))
            except self._interruptions:
                findings.append(finding("cancelled", found="after the end, before the recheck"))
            except ScanPipelineError as error:
                late = self._stopped(error)
                findings += late.findings
        return {
            "traversal": stopped.traversal,
            "stop_reason": stopped.stop_reason,
            "limits_hit": [stopped.limit.name] if stopped.limit else [],
            "before": _opening_facts(opening),
            "after": after,
            "recheck": recheck,
            "findings": [dict(each.__dict__) for each in findings],
        }

    def _recheck(self, recorder: Recorder, opening: Opening) -> list[dict[str, Any]]:
        """Read the first page and seeded random ones again under the pin, and compare.

        An echoed pin proves nothing by itself. Where continuations work only once, the first
        page alone can be read again.
        """
        if self._scan.contract.consistency != "snapshot" or self._walk.pin is None:
            return []
        recorder.flush()
        pages = [event for event in self._store.events() if event.event == "page"]
        chosen = [pages[0]]
        if self._scan.source.continuation == "repeatable" and len(pages) > 1:
            seeded = random.Random(f"{self._scan.name}/{self._store.generation}")  # noqa: S311
            wanted = min(self._scan.operation.recheck_pages, len(pages) - 1)
            chosen += seeded.sample(pages[1:], wanted)
        checked = list[dict[str, Any]]()
        for event in chosen:
            self._check_cancelled()
            position = Position(
                token=self._token(event, "cursor_in"),
                pin=self._walk.pin,
                high_water_mark=opening.high_water_mark,
            )
            page = self._source.fetch(position, refused=lambda _: None)
            same = items_digest(page.leaf_hashes) == event.items_digest
            named = page.reported.pin in (None, self._walk.pin)
            checked.append({"page": event.page, "equal": same and named})
        return checked

    def _limited(self, hit: LimitHit) -> Stopped:
        # Money and time were bounded by the contract; what was read stays, as pages and no more.
        return Stopped(
            traversal="interrupted",
            stop_reason="limit_reached",
            findings=(
                finding(
                    "limit_reached",
                    page=self._walk.pages or None,
                    expected=f"{hit.name} below {hit.allowed:g}",
                    found=f"{hit.reached:g}",
                ),
            ),
            limit=hit,
        )

    def _stopped(self, error: ScanPipelineError) -> Stopped:
        """Turn an error that ends a walk into the way it stopped."""
        if isinstance(error, ProtocolError):
            expected, found = "the declared protocol", str(error)
            return Stopped(
                traversal="failed",
                stop_reason="protocol_broken",
                findings=(
                    finding(error.code, page=self._walk.pages + 1, expected=expected, found=found),
                ),
            )
        for kind, reason in _STOPS:
            if isinstance(error, kind):
                return Stopped(
                    traversal="interrupted",
                    stop_reason=reason,
                    findings=(finding(reason, page=self._walk.pages + 1, found=str(error)),),
                )
        raise error


def _past(event: Event) -> PastPage:
    return PastPage(
        cursor_in=event.cursor_in_digest,
        items=event.items_digest,
        returned=event.returned or 0,
        body_bytes=event.body_bytes or 0,
        total=event.facts["total"],
        pin=event.facts["pin"],
        fingerprint=bytes.fromhex(event.facts["fingerprint"]),
    )


def _opening_facts(opening: Opening) -> dict[str, Any]:
    return dict(opening.__dict__)
