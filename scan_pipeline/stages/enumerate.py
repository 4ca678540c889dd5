"""First stage: follow the source to its declared end, every event durable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from scan_pipeline.core.contract_digests import ContractDigests
from scan_pipeline.core.errors import (
    CancelledError,
    KeyDestroyedError,
    ProtocolError,
    ScanPipelineError,
    TamperedError,
)
from scan_pipeline.core.findings import finding
from scan_pipeline.core.page import Continuation, End, Opening, Position, Refusal
from scan_pipeline.core.scan import Scan, scan_json
from scan_pipeline.core.walk import Walk
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.reconciling.evidence import check_chain
from scan_pipeline.stages.syncing.beginning import Beginning, begins
from scan_pipeline.stages.walking.connector_checks import other_code
from scan_pipeline.stages.walking.reading_again import ReadingAgain
from scan_pipeline.stages.walking.recorder import Recorder
from scan_pipeline.stages.walking.released import released
from scan_pipeline.stages.walking.stopped import (
    CANCELLED,
    FINISHED,
    Stopped,
    limited,
    stopped_by,
    windowed,
)
from scan_pipeline.stages.walking.stored_pages import StoredPages
from scan_pipeline.stages.walking.taken_up import CREDENTIAL, Asker, changed_since
from scan_pipeline.stages.walking.walks import follows
from scan_pipeline.store.events import Event, EventLog
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore, committed

Progress: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Told of the walk's running figures after each page."""


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
        unchecked: what changed without a check, as expected and found; see `connector_checks`.
        shard: number of the walk in its generation.
        after: events of the walk that came before it; its open event names where that ended.
        beginning: where a round of changes begins; None where everything is asked for.
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
        unchecked: dict[str, str] | None = None,
        shard: int = FIRST_WALK,
        after: Sequence[Event] = (),
        beginning: Beginning | None = None,
    ) -> None:
        self._scan, self._source, self._store = scan, source, store
        self._digests, self._schema_fingerprint = digests, schema_fingerprint
        self._clock, self._check_cancelled = clock, check_cancelled
        self._interruptions = (CancelledError, *interruptions)
        self._progress, self._unchecked = progress, unchecked
        self._walk = Walk(scan.source, scan.contract)
        self._shard, self._after_walk, self._beginning = shard, after, beginning
        self._since = None if beginning is None else beginning.checkpoint
        self._stored = StoredPages(store, source=source, shard=shard, since=self._since)
        self._aside: list[Refusal] = []
        self._again = ReadingAgain(
            scan,
            source=source,
            store=store,
            walk=self._walk,
            shard=shard,
            check_cancelled=check_cancelled,
            refused=self._aside.append,
            since=self._since,
        )

    def run(self, *, restart_of: str | None) -> None:
        """Walk to an end of some kind and close the generation; a closed one is left as it is.

        Raises:
            WriterConflictError: another writer holds the generation; nothing more is written.
            ConfigurationError: a secret or key is missing; nothing was asked of the source.
            TamperedError: the stored events cannot be read, or do not begin with an open event.
        """
        past = self._store.events(self._shard)
        if past and past[-1].event == "close":
            return
        if past and past[0].event != "open":
            raise TamperedError(
                "pages", f"event {past[0].seq} comes first; expected the open event"
            )
        pages = [event for event in past if event.event == "page"]
        log = EventLog(last=past[-1] if past else None, pages=len(pages))
        recorder = Recorder(
            self._store.admission(shard=self._shard),
            scan=self._scan.name,
            generation=self._store.generation,
            shard=self._shard,
            sealer=self._store.sealer(),
            operation=self._scan.operation,
            committed=committed(past[-1] if past else None),
            sealed=self._store.is_sealed,
        )
        try:
            broken = self._remember(past, pages)
            opened, opening, failed = self._open(log, recorder, past, restart_of)
            stopped = broken or failed or self._follow(log, recorder, pages, opening, opened)
            if stopped.traversal == "cancelled":
                # An interruption strikes anywhere, also between linking an event and handing it
                # over: the walk goes on from what the recorder has.
                recorder.flush()
                log = EventLog(last=recorder.last or past[-1])
            facts = self._close_facts(recorder, stopped, opening)
            self._put_aside(log, recorder)
            checkpoint = self._walk.checkpoint if stopped.traversal == "finished" else None
            recorder.put(log.close(facts, at=self._clock(), checkpoint=checkpoint))
            recorder.finish()
        finally:
            recorder.drop()

    def _remember(self, past: list[Event], pages: list[Event]) -> Stopped | None:
        """Let the walk admit its stored pages again, by the same rules.

        What it noticed and counted before a break is stored nowhere: it follows from the pages.
        """
        try:
            if past:
                check_chain(past)
            for page in self._stored.pages(pages):
                self._walk.before_request(page.position, seconds=0.0)
                self._walk.admit(page)
        except (ProtocolError, TamperedError, KeyDestroyedError) as error:
            return self._stopped(error)
        return None

    def _open(
        self, log: EventLog, recorder: Recorder, past: list[Event], restart_of: str | None
    ) -> tuple[datetime, Opening, Stopped | None]:
        """Commit the open event before the first page is asked for, or take up an old one."""
        asker = Asker(self._source, self._store)
        self._source.tell_aside(self._aside.append)
        opening, failed = Opening(), None
        self._source.allow(self._scan.contract.limits.seconds, used=0.0)
        try:
            opening = self._source.opening()
        except ScanPipelineError as error:
            failed = self._stopped(error)
        for begun in (*past[:1], *self._after_walk[:1]):
            self._walk.findings += other_code(begun.facts, self._source.adapter)
            failed = failed or changed_since(
                begun, opening, asker, consistency=self._scan.contract.consistency
            )
        if self._beginning is not None and failed is None:
            failed = self._beginning.not_ours(opening, self._source)
        if past:
            self._put_aside(log, recorder)
            return past[0].received_at, Opening(**past[0].facts["before"]), failed
        now = self._clock()
        facts = {
            "scan": self._scan.name,
            "generation": self._store.generation,
            "restart_of": restart_of,
            "contract": scan_json(self._scan),
            "schema_fingerprint": self._schema_fingerprint,
            "digests": self._digests.__dict__,
            "adapter": self._source.adapter.__dict__,
            "unchecked": self._unchecked,
            CREDENTIAL: asker.digest(),
            "before": dict(opening.__dict__),
            **follows(self._after_walk),
            **begins(self._scan, self._beginning),
        }
        recorder.put(log.open(facts, at=now))
        self._put_aside(log, recorder)
        recorder.flush()
        return now, opening, failed

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
                    return limited(hit, page=self._walk.pages or None)
                self._source.allow(self._scan.contract.limits.seconds, used=elapsed)
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
        except self._interruptions:
            return CANCELLED
        except ScanPipelineError as error:
            return self._stopped(error)
        if self._walk.ends_at_window():
            return windowed(self._scan.source.result_window, page=self._walk.pages)
        return FINISHED

    def _after(self, continuation: Continuation, position: Position) -> Position | None:
        if isinstance(continuation, End):
            return None
        return replace(position, token=continuation.token, pin=self._walk.pin)

    def _take_up(self, pages: list[Event], opening: Opening) -> Position | None:
        """Return where to ask next: the first page, or after the last one committed."""
        if not pages:
            return Position(high_water_mark=opening.high_water_mark, since=self._since)
        return self._again.going_on_after(pages[-1], opening)

    def _put_aside(self, log: EventLog, recorder: Recorder) -> None:
        """Hand over what was refused beside the walk's way: it leaves the walk where it stands."""
        for refusal in self._aside:
            recorder.put(log.refused(refusal))
        self._aside.clear()

    def _close_facts(
        self, recorder: Recorder, stopped: Stopped, opening: Opening
    ) -> dict[str, Any]:
        """Return the close event's facts: how it stopped, the recheck, the identity after."""
        recheck: list[dict[str, Any]] = []
        after = None
        findings = [*self._walk.findings, *stopped.findings]
        if stopped.stop_reason == "end_signal":
            self._source.allow(self._scan.contract.limits.seconds, used=0.0)
            try:
                recheck = self._recheck(recorder, opening)
                position = Position(pin=self._walk.pin, high_water_mark=opening.high_water_mark)
                after = dict(self._source.closing(position).__dict__)
            except self._interruptions:
                findings.append(finding("cancelled", found="after the end, before the recheck"))
            except ScanPipelineError as error:
                findings += self._stopped(error).findings
        findings += released(self._source, interruptions=self._interruptions)
        return {
            "traversal": stopped.traversal,
            "stop_reason": stopped.stop_reason,
            "limits_hit": [stopped.limit.name] if stopped.limit else [],
            "before": dict(opening.__dict__),
            "after": after,
            "recheck": recheck,
            "findings": [dict(each.__dict__) for each in findings],
        }

    def _recheck(self, recorder: Recorder, opening: Opening) -> list[dict[str, Any]]:
        """Read pages again where a pin is to be proven."""
        if self._scan.contract.consistency != "snapshot" or self._walk.pin is None:
            return []
        recorder.flush()
        return self._again.recheck(opening)

    def _stopped(self, error: ScanPipelineError) -> Stopped:
        """Turn an error that ends a walk into the way it stopped; raise any other."""
        return stopped_by(error, page=self._walk.pages + 1)
