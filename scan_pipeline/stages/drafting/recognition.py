"""Which of the candidates is right: the one whose pages come, through the adapter of a scan."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scan_pipeline.core.value import adapter
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.transport import Call, Transport
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.drafting.answers import FirstAnswer, written
from scan_pipeline.stages.drafting.candidates import Candidate, candidates, page_size
from scan_pipeline.stages.drafting.keys import key_of
from scan_pipeline.stages.drafting.providers import documented, matching
from scan_pipeline.stages.drafting.question import Question
from scan_pipeline.stages.drafting.trial import Trials, Tried


def ask_first(question: Question, surroundings: Surroundings) -> tuple[bytes, Mapping[str, str]]:
    """Read the first page as it was typed, through the transport of every scan.

    Raises:
        AccessRefusedError, SourceUnavailableError, ProtocolError: as `Transport.send`.
    """
    auth = None
    if question.auth is not None:
        auth = adapter(Auth).validate_json(json.dumps(question.auth))
    transport = Transport(
        question.url,
        credentials=lambda: auth.headers(surroundings.environ) if auth else {},
        retries=surroundings.retries,
        responses=(),
        inner=surroundings.inner,
        clock=surroundings.clock,
        sleep=surroundings.sleep,
    )
    call = Call(
        url=question.url,
        params=tuple(question.params.items()),
        headers=tuple(question.headers.items()),
    )
    try:
        answer = transport.send(call, read=lambda each: each, refused=lambda *_: None).value
    finally:
        transport.close()
    return answer.body, dict(answer.headers)


def recognised(
    question: Question, first: FirstAnswer, trials: Trials, *, collection: str
) -> Tried | None:
    """Return the first candidate that brings other records, else one that ends at once.

    Args:
        question: what was typed.
        first: the first answer.
        trials: asks.
        collection: name of the collection.
    """
    found = matching(question.url, first)
    if found is not None:
        tried = trials.of(_of_provider(question, first, *found))
        if tried is not None:
            return tried
    if first.records_at is None:
        return None
    place: dict[str, Any] = {"records_at": written(first.records_at)}
    place |= {"record_field": "value"} if first.bare else {}
    place |= {"page_size": size} if (size := page_size(question.params)) else {}
    objects = [each for each in first.records if isinstance(each, Mapping)]
    key = key_of(objects, collection=collection)
    alone = key[0] if key is not None and len(key) == 1 else None
    whole: Tried | None = None
    for each in candidates(first, question.params, alone):
        if each.blind and whole is not None:
            break
        sources = tuple({**place, **source} for source in each.sources)
        tried = trials.of(replace(each, sources=sources))
        if tried is not None and len(tried.pages) > 1:
            return tried
        whole = whole or tried
    return whole


def _of_provider(question: Question, first: FirstAnswer, provider: str, by: str) -> Candidate:
    """Return a provider's documented facts as a candidate."""
    facts: dict[str, Any] = {"provider": provider}
    shipped = documented(provider)
    if "records_at" not in shipped and first.records_at is not None:
        facts["records_at"] = written(first.records_at)
    size = page_size(question.params)
    if size and size["send_as"] == (shipped.get("page_size") or {}).get("send_as"):
        facts["page_size"] = {"value": size["value"]}
    return Candidate(
        why=f"recognised as {provider} by {by}",
        sources=(facts,),
        ends="as the provider documents it",
        provider=provider,
    )
