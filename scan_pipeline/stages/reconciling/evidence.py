"""What the stored events say of a walk: read back, linked again, and summed up."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.chain import ChainBrokenError, chain_after, chain_over, chain_start
from scan_pipeline.core.checkpoint import CHECKPOINT, SINCE, Round, Since
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.walk_evidence import PinEvidence, Recheck, WalkEvidence
from scan_pipeline.store.events import Event


def check_chain(events: Sequence[Event]) -> bytes:
    """Link the events again and return the chain's last digest.

    Raises:
        TamperedError: an event is missing, moved, altered, or of another walk.
    """
    if not events or events[0].event != "open":
        raise TamperedError("pages", "no open event; expected the walk's first row")
    for event in events:
        if digest_of(event.facts) != event.facts_digest:
            raise TamperedError(
                "pages", f"event {event.seq}: its facts are not those it was stored with"
            )
    try:
        chain = chain_over(events[0].facts_digest, links=[event.link() for event in events[1:]])
    except ChainBrokenError as error:
        raise TamperedError("pages", str(error)) from error
    if events[0].chain != chain_start(events[0].facts_digest):
        raise TamperedError("pages", "event 0: the chain does not begin with the open event")
    linked = events[0].chain
    for event in events[1:]:
        linked = chain_after(linked, link=event.link())
        if linked != event.chain:
            raise TamperedError("pages", f"event {event.seq}: it is not where the chain says")
    ordinals = [event.page for event in events if event.event == "page"]
    if ordinals != list(range(1, len(ordinals) + 1)):
        raise TamperedError("pages", "the pages are not numbered from 1 without a gap")
    return chain


def walk_evidence(scan: Scan, events: Sequence[Event]) -> WalkEvidence:
    """Sum up a closed walk for the judgement."""
    pages = [event for event in events if event.event == "page"]
    close = events[-1].facts if events[-1].event == "close" else None
    findings = tuple(Finding(**each) for each in close["findings"]) if close else ()
    intact = True
    try:
        check_chain(events)
    except TamperedError as error:
        intact = False
        findings = (*findings, finding("chain_broken", expected="linked events", found=error))
    unchecked = events[0].facts.get("unchecked") if events else None
    if unchecked:
        findings = (*findings, finding("contract_unchecked", **unchecked))
    before = Opening(**events[0].facts["before"]) if events else Opening()
    after = close and close["after"]
    return WalkEvidence(
        traversal=close["traversal"] if close else "interrupted",
        stop_reason=close["stop_reason"] if close else "abandoned",
        end_signal=pages[-1].end_signal if pages else None,
        limits_hit=tuple(close["limits_hit"]) if close else (),
        chain_intact=intact,
        pin=_pin_evidence(scan, pages, close),
        bound_sent=before.high_water_mark is not None,
        before=before,
        after=Opening(**after) if after else None,
        total=first_total(scan, pages),
        findings=findings,
        unrepeated=tuple(sorted({name for e in pages for name in e.facts.get("unrepeated", ())})),
        round=_round(scan, events, close),
    )


def _round(scan: Scan, events: Sequence[Event], close: dict[str, Any] | None) -> Round | None:
    """Return which round of changes the walk was, None where its source tracks none."""
    if scan.source.checkpoint is None or not events:
        return None
    since = events[0].facts.get(SINCE)
    return Round(
        since=None if since is None else Since(**since),
        checkpoint=None if close is None else close.get(CHECKPOINT),
    )


def moment(at: datetime) -> str:
    """Return a moment in UTC as receipts write it, to the microsecond."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def first_total(scan: Scan, pages: Sequence[Event]) -> int | None:
    """Return the first exact count the source reported for the whole."""
    if not scan.source.exact_total:
        return None
    return next((total for total in _totals(pages) if total is not None), None)


def total_moved(scan: Scan, pages: Sequence[Event]) -> bool:
    """Say whether the source's exact count was not the same on every page."""
    return scan.source.exact_total and len({*_totals(pages)} - {None}) > 1


def _totals(pages: Sequence[Event]) -> Iterator[int | None]:
    """Yield the total that each page reported, or implied by what it said remains."""
    read = 0
    for event in pages:
        read += event.returned or 0
        total, remaining = event.facts["total"], event.facts["remaining"]
        yield read + remaining if total is None and remaining is not None else total


def _pin_evidence(scan: Scan, pages: Sequence[Event], close: dict[str, Any] | None) -> PinEvidence:
    if scan.contract.consistency != "snapshot" or not pages:
        return PinEvidence()
    version = pages[0].facts["pin"]
    pin = scan.source.snapshot
    # What a continuation carries is not ours to read: there, every answer names its version.
    carried = pin is not None and pin.travels_in == "continuation"
    asked = "pin" if carried else "sent_pin"
    sent, named = True, version
    for event in pages[1:]:
        sent = sent and event.facts[asked] == named
        # A number is no text; what we send is text whatever the source named.
        sent = sent and (not carried or _is_number(event) == _is_number(pages[0]))
        named = (pin is not None and pin.rotates and event.facts["pin"]) or named
    checked = close["recheck"] if close else []
    recheck: Recheck = "not_done"
    if checked:
        recheck = "equal" if all(each["equal"] for each in checked) else "differs"
    return PinEvidence(version=version, sent_on_every_request=sent, recheck=recheck)


def _is_number(page: Event) -> bool:
    return page.facts.get("pin_is_number", False)
