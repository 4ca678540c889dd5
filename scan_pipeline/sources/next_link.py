"""The `next_link` protocol: the source names the whole address of the next page.

The link lies in the body (OData JSON Format 4.01, control information nextLink,
docs.oasis-open.org; Microsoft Graph, learn.microsoft.com/graph/paging) or in a `Link` header (RFC
8288), absolute or relative (RFC 3986); all read 2026-11-30. It is used whole: path and parameters
are the server's, and ours are not added again. What it repeats of ours must say what we said; the
pin and the bound of a walk must be repeated, since nothing else would tell that they still hold.
"""

from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl

from pydantic import Field

from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import Continuation, Next, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Basis
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.counters import counts_rows
from scan_pipeline.sources.http.end_signals import EndSignal, end_of
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.link_header import target_of
from scan_pipeline.sources.http.linked_pages import LinkedPages
from scan_pipeline.sources.http.source import Received
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "next_link/1"


@record
class LinkFacts:
    """Where the next link lies and what says the end.

    Attributes:
        at: where in the body the link lies; names with dots are a list, `["@odata.nextLink"]`.
        relation: relation of the `Link` header that names the next page, where the body does not.
        ends_when: the declared end signals; those without `at` speak of the link.
        origins: origins that links may lead to beside the source's own. Credentials stay at home.
        keeps_query: why a link is believed to ask what we asked although it does not repeat it.
    """

    at: FieldPath = ()
    relation: str | None = None
    ends_when: Annotated[tuple[EndSignal, ...], Field(min_length=1)]
    origins: tuple[str, ...] = ()
    keeps_query: Basis | None = None

    def __post_init__(self) -> None:
        if bool(self.at) == (self.relation is not None):
            raise ContractError("next needs exactly one of: at, relation")
        for each in self.origins:
            origin_of(each)


@record
class NextLinkSource(HttpFacts):
    """The facts of one collection whose pages name the next one.

    Attributes:
        next: where the link lies and what says the end.
    """

    protocol: Literal["next_link"]
    next: LinkFacts

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "GET":
            raise ContractError("a next link is followed by GET; expected no other method")
        self.check_reads(self.next.at, *(each.at for each in self.next.ends_when))

    @property
    def kept_query_basis(self) -> Basis | None:
        """Return why a link is believed to keep what it does not repeat."""
        return self.next.keeps_query

    def counter_in(self, token: str) -> str | None:
        """Return the parameter by which a link counts rows or pages."""
        said = parse_qsl(token.partition("?")[2], keep_blank_values=True)
        return next((name for name, value in said if counts_rows(name, value)), None)


class NextLink(LinkedPages):
    """Walks a `NextLinkSource`; a position's token is the absolute address of its page."""

    def __init__(self, facts: NextLinkSource, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings, origins=facts.next.origins)
        self._facts = facts
        self.adapter = AdapterRevision(name="next_link", revision=REVISION)

    @property
    def facts(self) -> NextLinkSource:
        """Return what is declared of the source."""
        return self._facts

    def link_of(self, position: Position) -> str | None:
        """Return the link that led to a page."""
        return position.token

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the link made absolute, or the end that the source declared."""
        facts = self._facts.next
        if facts.relation is not None:
            target = target_of(received.answer.headers.get("link"), relation=facts.relation)
            link = ABSENT if target is None else target
            where = f"rel={facts.relation} of the Link header"
        else:
            link, where = value_at(received.around, facts.at), ".".join(facts.at)
        end = end_of(
            received.around,
            facts.ends_when,
            at=facts.at,
            records=len(received.records),
            token=link,
        )
        if end is not None:
            return end
        if link is ABSENT:
            raise ProtocolError(
                "continuation_missing", f"no link at {where}; expected one or a declared end"
            )
        if not isinstance(link, str) or not link.strip():
            raise ProtocolError("continuation_invalid", f"{where} holds no link; expected a URL")
        return Next(token=self.leads_to(link, position=position))


PROTOCOL: Final = Protocol(facts=NextLinkSource, open=NextLink)
