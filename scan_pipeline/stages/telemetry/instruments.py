"""What is measured of nights and readers, and under which names.

A trace is made from a night's stored events once it is over: they hold every moment that matters,
and so a walk costs the same with and without it. Names and attributes of OpenTelemetry's semantic
conventions are used where there is one (general HTTP attributes, `error.type`; read 2026-11-30,
opentelemetry-semantic-conventions 0.66b2); ours begin with `scan_pipeline.`. No address beyond the
host, no token, no key and no value of a record is in any of them.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from scan_pipeline.core.value import record
from scan_pipeline.stages.enumerate import Progress
from scan_pipeline.stages.reporting.course import waits
from scan_pipeline.stages.reporting.material import Ledger
from scan_pipeline.store.events import Event
from scan_pipeline.store.receipts import StoredReceipt

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SCOPE: Final = "scan_pipeline"

SCAN: Final = "scan_pipeline.scan"

PAGE_SPANS: Final = 500
"""Pages of one walk that get a span of their own, at most; those sent more than once always do."""

_WORD: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@record
class NightSeen:
    """A night that is over.

    Attributes:
        stored: its receipt.
        ledger: its events; None where they cannot be read.
        accepted_at: when the newest page of the newest accepted generation was read, None for none.
    """

    stored: StoredReceipt
    ledger: Ledger | None
    accepted_at: datetime | None


class Telemetry:
    """The instruments.

    Args:
        tracers: makes the tracer.
        meters: makes the meter.
    """

    def __init__(self, *, tracers: "TracerProvider", meters: "MeterProvider") -> None:
        self._tracer = tracers.get_tracer(SCOPE)
        meter = meters.get_meter(SCOPE)
        self._pages = meter.create_counter("scan_pipeline.pages", unit="{page}")
        self._records = meter.create_counter("scan_pipeline.records", unit="{record}")
        self._retries = meter.create_counter(
            "scan_pipeline.retries",
            unit="{send}",
            description="Sends after a request's first.",
        )
        self._refused = meter.create_counter(
            "scan_pipeline.refused", unit="{answer}", description="Answers that were not pages."
        )
        self._waits = meter.create_counter(
            "scan_pipeline.wait.time", unit="s", description="Time between sends of one request."
        )
        self._restarts = meter.create_counter(
            "scan_pipeline.restarts", unit="{restart}", description="Attempts begun from nothing."
        )
        self._duration = meter.create_histogram("scan_pipeline.walk.duration", unit="s")
        self._partial = meter.create_counter(
            "scan_pipeline.partial.time",
            unit="s",
            description="Time of walks whose generation was not accepted.",
        )
        self._lag = meter.create_gauge(
            "scan_pipeline.checkpoint.lag",
            unit="s",
            description="Age of the newest accepted generation when a receipt was issued.",
        )
        self._running = meter.create_gauge(
            "scan_pipeline.walk.pages", unit="{page}", description="Pages of the walk under way."
        )
        self._blocked = meter.create_counter(
            "scan_pipeline.readers.blocked",
            unit="{reader}",
            description="Readers that were refused, by error.type.",
        )

    def progress(self, scan: str, told: Progress) -> Progress:
        """Return what is told of a walk's running figures, and keeps the gauge beside it."""

        def both(facts: Mapping[str, Any]) -> None:
            self._running.set(facts["pages"], {SCAN: scan})
            told(facts)

        return both

    def night(self, seen: NightSeen) -> None:
        """Tell of one generation that has its receipt."""
        receipt = seen.stored.receipt
        scan = {SCAN: receipt.scan}
        outcome = {
            **scan,
            "scan_pipeline.coverage_status": receipt.coverage_status,
            "scan_pipeline.accepted": receipt.accepted,
        }
        began = datetime.fromisoformat(receipt.observation_started_at)
        ended = datetime.fromisoformat(receipt.completed_at)
        lasted = (ended - began).total_seconds()
        self._duration.record(lasted, outcome)
        self._pages.add(receipt.pages_observed, scan)
        self._records.add(receipt.records_observed, scan)
        self._refused.add(receipt.refused_responses, scan)
        self._restarts.add(int(receipt.restart_of is not None), scan)
        self._partial.add(0.0 if receipt.accepted else lasted, scan)
        if seen.accepted_at is not None:
            self._lag.set((ended - seen.accepted_at).total_seconds(), scan)
        pages = [] if seen.ledger is None else _pages(seen.ledger)
        self._retries.add(sum((each.attempts or 1) - 1 for each in pages), scan)
        spent = 0.0 if seen.ledger is None else sum(each.lasted for each in waits(seen.ledger))
        self._waits.add(spent, scan)
        self._trace(seen, outcome, began=began, ended=ended)

    def blocked(self, *, scan: str | None, why: str) -> None:
        """Count a reader that was refused.

        Args:
            scan: what it wanted to read, None where it did not get to say.
            why: one word.
        """
        scans = {} if scan is None else {SCAN: scan}
        self._blocked.add(1, {**scans, "error.type": why})

    def _trace(
        self, seen: NightSeen, outcome: Mapping[str, Any], *, began: datetime, ended: datetime
    ) -> None:
        from opentelemetry.trace import (  # noqa: PLC0415  # imported where telemetry is on
            Status,
            StatusCode,
            set_span_in_context,
        )

        receipt = seen.stored.receipt
        whole = self._tracer.start_span(
            f"scan {receipt.scan}",
            start_time=_ns(began),
            attributes={
                **outcome,
                "scan_pipeline.generation": receipt.scan_generation,
                "scan_pipeline.conclusion_scope": receipt.conclusion_scope,
                "scan_pipeline.stop_reason": receipt.stop_reason,
                "scan_pipeline.receipt_id": seen.stored.receipt_id,
            },
        )
        if not receipt.accepted:
            whole.set_status(Status(StatusCode.ERROR, receipt.stop_reason))
        inside = set_span_in_context(whole)
        if seen.ledger is not None:
            server = _server(seen.ledger.contract)
            for number, events in enumerate(seen.ledger.walks):
                self._walk(events, server, number=number, inside=inside)
        whole.end(_ns(ended))

    def _walk(
        self, events: Sequence[Event], server: Mapping[str, Any], *, number: int, inside: "Context"
    ) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context  # noqa: PLC0415

        walk = self._tracer.start_span(
            "walk",
            context=inside,
            start_time=_ns(events[0].received_at),
            attributes={"scan_pipeline.walk": number + 1},
        )
        own = set_span_in_context(walk)
        pages = [each for each in events if each.event == "page"]
        every = max(1, -(-len(pages) // PAGE_SPANS))
        for place, page in enumerate(pages):
            resent = (page.attempts or 1) - 1
            if not resent and place % every:
                continue
            span = self._tracer.start_span(
                "page",
                context=own,
                kind=SpanKind.CLIENT,
                start_time=_ns(page.requested_at or page.received_at),
                attributes={
                    **server,
                    "scan_pipeline.page": page.page or 0,
                    "scan_pipeline.returned": page.returned or 0,
                    "http.response.body.size": page.body_bytes or 0,
                    **({"http.request.resend_count": resent} if resent else {}),
                },
            )
            span.end(_ns(page.received_at))
        for each in events:
            if each.event == "refused":
                walk.add_event("refused", _refusal(each), timestamp=_ns(each.received_at))
        walk.end(_ns(events[-1].received_at))


def _pages(ledger: Ledger) -> list[Event]:
    return [each for events in ledger.walks for each in events if each.event == "page"]


def _refusal(event: Event) -> dict[str, Any]:
    """Return what kind of answer it was; only closed words, since an answer's own are not ours."""
    status, reason = event.facts.get("status"), str(event.facts.get("reason"))
    told = {} if status is None else {"http.response.status_code": int(status)}
    return {**told, "error.type": reason if _WORD.fullmatch(reason) else "other"}


def _server(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host that was asked, where the source has an address."""
    url = contract.get("source", {}).get("url")
    parts = urlsplit(url if isinstance(url, str) else "")
    host = {"server.address": parts.hostname} if parts.hostname else {}
    return {**host, **({"server.port": parts.port} if parts.port else {})}


def _ns(moment: datetime) -> int:
    """Return nanoseconds since 1970, as spans want them; exact to the microsecond."""
    return round(moment.timestamp() * 1_000_000) * 1000
