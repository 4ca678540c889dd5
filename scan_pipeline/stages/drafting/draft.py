"""A draft: what two pages let one propose, every guess and every weaker guarantee named.

The first page is read as it was typed, and then two pages as a scan would ask for them. A draft
proposes; it never runs. It says `snapshot` only where the version is repeated under a pin and an
unknown version is refused, and leaves every count an estimate: that it is exact is for the
provider's documentation to say, and for a person to write down.
"""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from scan_pipeline.core.walk import pages_implied
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.drafting.answers import FirstAnswer, first_answer, told, written
from scan_pipeline.stages.drafting.figures import Figure, count_of
from scan_pipeline.stages.drafting.judgement import draft_contract
from scan_pipeline.stages.drafting.keys import columns_of, declared_key, key_of
from scan_pipeline.stages.drafting.pin import draft_pin
from scan_pipeline.stages.drafting.proposal import CONFIRM, Draft, Notes
from scan_pipeline.stages.drafting.providers import provided
from scan_pipeline.stages.drafting.question import Question
from scan_pipeline.stages.drafting.recognition import ask_first, recognised
from scan_pipeline.stages.drafting.trial import Trials, Tried, merged

SHOWN_TRIALS: Final = 6
"""Trials that a file tells of; `--json` tells of all."""


def draft(question: Question, *, surroundings: Surroundings, name: str | None = None) -> Draft:
    """Ask a source for two pages and propose a scan of it.

    Args:
        question: what was typed.
        surroundings: the world around the source.
        name: name of the scan; None for one that the address gives.

    Raises:
        AccessRefusedError: the source refused our credentials.
        SourceUnavailableError: it did not answer.
        ProtocolError: its answer is not JSON, or leads elsewhere.
    """
    body, headers = ask_first(question, surroundings)
    first, notes = first_answer(body, headers), Notes()
    named = name or name_in(question.url)
    trials = Trials(question.source, surroundings, first=body, requests=1)
    tried = recognised(question, first, trials, collection=named)
    known: dict[str, Any] = dict(question.source)
    if tried is None:
        _unrecognised(known, first, notes, trials)
        pages, records = [first], [each for each in first.records if isinstance(each, Mapping)]
        facts: dict[str, Any] = known
    else:
        facts = merged(known, tried.facts)
        pages, records = tried.answers(first), [each for page in tried.records for each in page]
        _say_source(tried, first, notes)
    count = None if "count" in provided(facts) else count_of(pages)
    total = _total(tried, count)
    if count is not None:
        facts["count"] = count.fact
        notes.say(
            "source.count",
            f"guess: {count.why}.",
            "An estimate decides nothing. Where the provider documents that it counts all that "
            "match, exactly, write exactness: exact; only then is it held against the records.",
        )
    pinned = tried is not None and draft_pin(tried, facts, pages, notes, trials)
    key = key_of(records, collection=named, declared=declared_key(first.body))
    sizes = [len(page.body) for page in tried.pages] if tried is not None else [first.size]
    largest = max((page.records for page in tried.pages), default=0) if tried else len(records)
    implied = None if total is None else pages_implied(total, page_size=largest)
    attributes = {
        "name": named,
        "source": _ordered(facts),
        "contract": draft_contract(facts, key, implied, records, notes, pinned=pinned),
    }
    if key is not None and tried is not None and not any(len(k) > 60 for r in records for k in r):
        attributes["record_schema"] = columns_of(records, key)
        notes.say(
            "record_schema",
            f"guess: types seen in {len(records):,} records. Another type later makes a record "
            "not conforming, never a changed value; fields that are not named here are kept apart, "
            "in _extra. Without this block columns are inferred from each night's pages.",
        )
    return Draft(
        attributes=attributes,
        notes=notes.notes,
        fill_in=notes.fill_in,
        heading=_heading(question, first, tried, len(records)),
        requests=trials.requests,
        pages=len(sizes),
        page_bytes=ceil(sum(sizes) / len(sizes)),
        pages_implied=implied,
        tried=tuple(trials.refused),
    )


def name_in(url: str) -> str:
    """Return a name for a scan, from the last telling part of an address."""
    parts = [re.sub(r"\.json$", "", each) for each in url.partition("://")[2].split("/")[1:]]
    telling = [each for each in parts if re.search(r"[A-Za-z]", each) and each != "_catalog"]
    cleaned = re.sub(r"[^a-z0-9]+", "_", (telling[-1] if telling else "scan").lower()).strip("_")
    return cleaned if re.match(r"^[a-z]", cleaned) else f"scan_{cleaned}".rstrip("_")


def _say_source(tried: Tried, first: FirstAnswer, notes: Notes) -> None:
    candidate, seen = tried.candidate, len(tried.pages)
    if candidate.provider is not None:
        notes.say(
            "source.provider",
            f"guess: {candidate.why}. Its documented facts (protocol, continuation, end) are "
            "filled in from the provider's file, and are part of the scope digest.",
        )
        return
    ways = "answered with other records" if seen > 1 else "answered, and named its end"
    notes.say(
        "source.protocol",
        f"guess: seen in {seen} page{'s' if seen > 1 else ''}: {candidate.why}; asked so, the "
        f"source {ways}.",
    )
    if seen == 1:
        notes.say(
            "source.protocol",
            "weaker: the first page is the last, so no second one was read: under which name a "
            f"continuation is sent back is a guess from the answer's own words; {CONFIRM}.",
        )
    notes.say(
        "source.next",
        f"guess: the end: {candidate.ends}. A walk that meets another shape fails, it never takes "
        f"it for the end; {CONFIRM}.",
        "assumed: a continuation may be used again. Where it works once, or dies with its "
        "connection, add continuation: single_use or connection_bound to source.",
    )
    if "records_at" in tried.facts:
        others = ", ".join(told(each) for each in first.others[:4])
        more = f"; other lists stand at {others}" if others else ""
        notes.say("source.records_at", f"guess: the longest list of the answer{more}.")


def _unrecognised(facts: dict[str, Any], first: FirstAnswer, notes: Notes, trials: Trials) -> None:
    if first.records_at is None:
        notes.leave(
            "source.records_at", "where the records lie, e.g. items; the answer has no list"
        )
    else:
        facts["records_at"] = written(first.records_at)
        notes.say("source.records_at", "guess: the longest list of the answer.")
    notes.leave(
        "source.protocol",
        "how the source goes on: page_token, next_link, offset or last_key. Nothing that was tried "
        "brought other records, so this answer may be the whole or a part of it: it proves neither",
    )
    notes.leave("source.next", "where the continuation lies, how it is sent, and what says the end")
    for why, reason in trials.refused[:SHOWN_TRIALS]:
        notes.say("source", f"tried: {why}: {reason}")


def _heading(
    question: Question, first: FirstAnswer, tried: Tried | None, records: int
) -> tuple[str, ...]:
    ways = "recognised no way to go on" if tried is None else f"read {len(tried.pages)} page(s)"
    identity = (
        "the source does not say as whom it was read; if it can, add identity: {url: ..., at: ...} "
        "to source, since another principal may see another population"
    )
    said = [f"GET {question.url}: {ways}, {records:,} records", identity]
    if first.bare:
        said.append("the records are single values; each is kept as a field named value")
    return tuple(said)


def _total(tried: Tried | None, count: Figure | None) -> int | None:
    if count is not None:
        return int(count.value)
    return None if tried is None else tried.pages[0].reported.total


def _ordered(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return source facts in the order in which people read them."""
    order = ("provider", "protocol", "url", "params", "headers", "auth", "records_at")
    order += ("record_field", "page_size", "next", "count", "snapshot")
    named = {name: facts[name] for name in order if name in facts}
    return named | {name: value for name, value in facts.items() if name not in named}
