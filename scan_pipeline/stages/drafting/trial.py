"""Two pages, asked as a scan would ask: through the adapter, its checks and its limits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scan_pipeline.core.canonical import parse_exact
from scan_pipeline.core.errors import (
    AccessRefusedError,
    EvidenceError,
    RestartError,
    ScanPipelineError,
    SourceUnavailableError,
)
from scan_pipeline.core.page import Next, Page, Position
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.catalogue import open_source, parse_scan
from scan_pipeline.sources.source import Source
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.stages.drafting.answers import FirstAnswer, at, first_answer
from scan_pipeline.stages.drafting.candidates import Candidate

REQUESTS: Final = 12
"""Requests of one draft, at most; two pages need three of them where the first guess is right."""

_CONTRACT: Final = {"key": ["_"], "consistency": "live"}
"""Facts that a page does not need and a scan must have."""


@record
class Tried:
    """A candidate that brought its pages.

    Attributes:
        candidate: what it was.
        facts: the source facts that worked, beside what the person gave.
        pages: one page where the first is the last, else two.
        records: the records of each, as parsed; those that are no objects left out.
    """

    candidate: Candidate
    facts: Mapping[str, Any]
    pages: tuple[Page, ...]
    records: tuple[tuple[Mapping[str, Any], ...], ...]

    def answers(self, first: FirstAnswer) -> list[FirstAnswer]:
        """Return the pages taken apart; headers are those of the first request."""
        headers = [first.headers, *[{}] * len(self.pages)]
        return [
            _as(first, first_answer(page.body, head))
            for page, head in zip(self.pages, headers, strict=False)
        ]


class Trials:
    """Tries candidates, and counts what it asks.

    Attributes:
        requests: how many requests were sent, those before included.
        refused: what did not work: what was tried, and why not.

    Args:
        known: source facts that are known already.
        surroundings: the world around the source.
        first: body of the first page as typed.
        requests: how many requests were sent before.
    """

    def __init__(
        self, known: Mapping[str, Any], surroundings: Surroundings, *, first: bytes, requests: int
    ) -> None:
        self._known, self._surroundings, self._first = known, surroundings, first
        self.requests = requests
        self.refused: list[tuple[str, str]] = []

    def of(self, candidate: Candidate) -> Tried | None:
        """Return a candidate with its pages, None where it does not bring other records.

        Raises:
            AccessRefusedError: the source refused our credentials.
            SourceUnavailableError: it did not answer.
        """
        token: str | None = None
        first: Page | None = None
        for facts in candidate.sources:
            if self.requests + 2 > REQUESTS:
                self.refused.append((candidate.why, f"{REQUESTS} requests were sent already"))
                return None
            try:
                source = open_source(scan_of(self._known, facts), self._surroundings)
            except ScanPipelineError as error:
                self.refused.append((candidate.why, str(error)))
                return None
            try:
                if first is None or candidate.blind:
                    first = self._fetch(source, Position())
                    if source.facts.positions_are_ours and not self._as_typed(source, first):
                        first = None
                        self.refused.append((candidate.why, "its first page is not the one typed"))
                        continue
                    if not isinstance(first.continuation, Next):
                        return self._tried(candidate, facts, source, (first,))
                    token = first.continuation.token
                pin = _version_in(first, source)
                second = self._fetch(source, Position(token=token, pin=pin))
                if not set(second.leaf_hashes) & set(first.leaf_hashes):
                    return self._tried(candidate, facts, source, (first, second))
                sent = _sent_as(facts)
                self.refused.append((candidate.why, f"{sent} brings the first page's records"))
            except (AccessRefusedError, SourceUnavailableError):
                raise
            except (EvidenceError, RestartError) as error:
                self.refused.append((candidate.why, f"{_sent_as(facts)}: {error}"))
                if first is None:
                    return None
            finally:
                source.close()
        return None

    def page(self, facts: Mapping[str, Any], position: Position) -> Page | None:
        """Return one page, None where the source refuses the request.

        Raises:
            AccessRefusedError, SourceUnavailableError: as `of`.
        """
        source = open_source(scan_of(self._known, facts), self._surroundings)
        try:
            return self._fetch(source, position)
        except (AccessRefusedError, SourceUnavailableError):
            raise
        except (EvidenceError, RestartError):
            return None
        finally:
            source.close()

    def _fetch(self, source: Source, position: Position) -> Page:
        self.requests += 1
        return source.fetch(position, refused=lambda _: None)

    def _as_typed(self, source: Source, page: Page) -> bool:
        return list(source.records(self._first)) == list(source.records(page.body))

    def _tried(
        self,
        candidate: Candidate,
        facts: Mapping[str, Any],
        source: Source,
        pages: Sequence[Page],
    ) -> Tried:
        records = tuple(tuple(_objects(source.records(page.body))) for page in pages)
        return Tried(candidate=candidate, facts=facts, pages=tuple(pages), records=records)


def scan_of(known: Mapping[str, Any], facts: Mapping[str, Any]) -> Scan:
    """Return a scan of a source, with no more of a contract than reading a page needs."""
    source = merged(known, facts)
    return parse_scan({"name": "draft", "source": source, "contract": dict(_CONTRACT)})


def merged(known: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return source facts in which a parameter that a walk sends is not sent for us as well."""
    following, size = facts.get("next") or {}, facts.get("page_size") or known.get("page_size")
    sent = {following.get("send_as"), (size or {}).get("send_as")}
    sent |= {each["send_as"] for each in following.get("after") or ()}
    params = {name: v for name, v in (known.get("params") or {}).items() if name not in sent}
    both = {**known, **facts}
    both.pop("params", None)
    given = {**params, **(facts.get("params") or {})}
    return both | ({"params": given} if given else {})


def _version_in(page: Page, source: Source) -> str | None:
    """Return the version that a page names where the source's facts say that one does."""
    snapshot = source.facts.snapshot
    if snapshot is None:
        return None
    value = at(parse_exact(page.body), snapshot.at)
    return None if value is None else str(value)


def _objects(records: Sequence[bytes]) -> Sequence[Mapping[str, Any]]:
    parsed = (parse_exact(each) for each in records)
    return [each for each in parsed if isinstance(each, Mapping)]


def _sent_as(facts: Mapping[str, Any]) -> str:
    following = facts.get("next") or {}
    names = [following.get("send_as"), *(e["send_as"] for e in following.get("after") or ())]
    return next((f"sent as {name}, it" for name in names if name), "it")


def _as(first: FirstAnswer, other: FirstAnswer) -> FirstAnswer:
    """Return an answer whose records lie where those of the first one do."""
    return FirstAnswer(
        body=other.body,
        size=other.size,
        headers=other.headers,
        records_at=first.records_at,
        bare=first.bare,
        others=first.others,
    )
