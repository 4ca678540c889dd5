"""The `page_token` protocol: the next request repeats the first one and adds an opaque token.

The shape is that of AIP-158 (google.aip.dev/158, read 2026-11-30): pages may be short or empty
before the end, tokens are opaque, and every parameter but the page size stays as it was.
"""

from typing import Final, Literal

from scan_pipeline.core.page import Continuation, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.sources.end_signals import NextFacts, continuation
from scan_pipeline.sources.http_facts import HttpFacts
from scan_pipeline.sources.http_source import HttpSource, Received
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.sources.transport import Call

REVISION = "page_token/1"


@record
class PageTokenSource(HttpFacts):
    """The facts of one collection behind a page token.

    Attributes:
        next: where the token lies, how it is sent back, and what says the end.
    """

    protocol: Literal["page_token"]
    next: NextFacts


class PageToken(HttpSource):
    """Walks a `PageTokenSource`."""

    def __init__(self, facts: PageTokenSource, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings)
        self._facts = facts
        self.adapter = AdapterRevision(name="page_token", revision=REVISION)

    @property
    def facts(self) -> PageTokenSource:
        """Return what is declared of the source."""
        return self._facts

    def call(self, position: Position) -> Call:
        """Repeat the first request, with the token where there is one."""
        params = self.frozen_params(position)
        token = position.token if position.token is not None else self._facts.next.first
        if token is not None:
            params[self._facts.next.send_as] = token
        return Call(
            url=self._facts.url,
            params=tuple(params.items()),
            headers=tuple(self._facts.headers.items()),
        )

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the token, or the end that the source declared."""
        del position
        envelope = received.envelope
        return continuation(envelope.around, self._facts.next, records=len(envelope.records))


PROTOCOL: Final = Protocol(facts=PageTokenSource, open=PageToken)
