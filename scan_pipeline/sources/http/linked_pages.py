"""Pages reached by links: each followed whole, and held to what was asked for.

Path and parameters of a link are the server's, and ours are not added again. What it repeats of
ours must say what we said; the pin and the bound of a walk must be repeated, since nothing else
would tell that they still hold.
"""

from abc import abstractmethod
from urllib.parse import parse_qsl

import httpx2

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, Next, Position
from scan_pipeline.sources.http.addresses import shown_link
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.source import HttpSource
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.http.uri_references import resolved
from scan_pipeline.sources.surroundings import Surroundings


class LinkedPages(HttpSource):
    """Asks for pages by the links to them.

    Args:
        facts: the collection.
        surroundings: the world around it.
        origins: origins that links may lead to, beside the source's own.
    """

    def __init__(
        self, facts: HttpFacts, surroundings: Surroundings, *, origins: tuple[str, ...]
    ) -> None:
        super().__init__(facts, surroundings, origins=origins)
        self._linked = facts

    @abstractmethod
    def link_of(self, position: Position) -> str | None:
        """Return the absolute address of a position's page, None for the one that we make."""

    def call(self, position: Position) -> Call:
        """Follow the link whole, with our headers again; the first page is asked for by us.

        Raises:
            ProtocolError: `request_changed`, the link asks for something else than we did.
        """
        first, link = self.request.call(position), self.link_of(position)
        if link is None:
            return first
        self._check(link, position)
        return Call(url=link, headers=first.headers)

    def leads_to(self, link: str, *, position: Position) -> str:
        """Return a link made absolute, as the page at a position shows it."""
        return resolved(link.strip(), base=self._asked(position))

    def unrepeated(self, continuation: Continuation) -> tuple[str, ...]:
        """Return the parameters of ours that a link leaves out; it is followed all the same."""
        if not isinstance(continuation, Next):
            return ()
        link = self.link_of(Position(token=continuation.token)) or ""
        said = parse_qsl(link.partition("?")[2], keep_blank_values=True)
        return tuple(sorted(self._ours().keys() - {name for name, _ in said}))

    def _ours(self) -> dict[str, str]:
        """Return the parameters that say what is asked for."""
        ours = dict(parse_qsl(httpx2.URL(self._linked.url).query.decode(), keep_blank_values=True))
        return ours | dict(self._linked.params)

    def _asked(self, position: Position) -> str:
        """Return the address that a page was asked for at; what it links to is relative to it."""
        link = self.link_of(position)
        if link is not None:
            return link
        call = self.request.call(position)
        return str(httpx2.URL(call.url).copy_merge_params(list(call.params)))

    def _check(self, link: str, position: Position) -> None:
        """Hold a link's parameters against ours; our page size is the one that may change."""
        ours = self._ours()
        held = {each.name: str(each.value) for each in self.request.held_still(position)}
        said = parse_qsl(link.partition("?")[2], keep_blank_values=True)
        for name, value in said:
            expected = (ours | held).get(name, value)
            if value != expected:
                raise ProtocolError(
                    "request_changed",
                    f"the link to {shown_link(link)} asks for another {name}; expected the one "
                    "that the walk began with",
                )
        missing = sorted(held.keys() - {name for name, _ in said})
        if missing:
            raise ProtocolError(
                "request_changed",
                f"the link to {shown_link(link)} does not repeat {', '.join(missing)}; expected "
                "what holds the collection still on every request",
            )
