"""The `page_token` protocol: the next request repeats the first one and adds an opaque token.

The shape is that of AIP-158 (google.aip.dev/158, read 2026-11-30): pages may be short or empty
before the end, tokens are opaque, and every parameter but the page size stays as it was. A token
lies in the body or in a response header, and travels as a parameter, as a header or in a JSON body
under a path, which is also how a GraphQL connection is walked (`variables.after`; GraphQL Cursor
Connections Specification, relay.dev/graphql/connections.htm, read 2026-11-30).
"""

from typing import Final, Literal

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.page import Continuation, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.counters import counts_rows
from scan_pipeline.sources.http.end_signals import NextFacts, continuation
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.request import Added
from scan_pipeline.sources.http.source import HttpSource, Received
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "page_token/1"


@record
class PageTokenSource(HttpFacts):
    """The facts of one collection behind a page token.

    Attributes:
        next: where the token lies, how it is sent back, and what says the end.
    """

    protocol: Literal["page_token"]
    next: NextFacts

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.next.send_in == "body" and self.method == "GET":
            raise ContractError("next.send_in: body needs method: POST")
        self.check_reads(self.next.at, *(each.at for each in self.next.ends_when))

    def counter_in(self, token: str) -> str | None:
        """Return the parameter by which a token counts rows or pages, as its name says."""
        return self.next.send_as if counts_rows(self.next.send_as, token) else None


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
        following = self._facts.next
        token = position.token if position.token is not None else following.first
        if token is None:
            return self.request.call(position)
        place = following.send_in or self._facts.send_in
        added = Added(name=following.send_as, value=token, place=place)
        return self.request.call(position, continuation=[added])

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the token, or the end that the source declared."""
        del position
        return continuation(
            received.around,
            self._facts.next,
            records=len(received.records),
            headers=received.answer.headers,
        )


PROTOCOL: Final = Protocol(facts=PageTokenSource, open=PageToken)
