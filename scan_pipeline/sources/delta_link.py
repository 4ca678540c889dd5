"""The `delta_link` protocol: a next link goes on with a round, a delta link ends it.

OData 4.01, Part 1, section 11.3 "Requesting Changes" and JSON Format, section 15 (docs.oasis-open
.org, excerpts read 2026-11-30); Microsoft Graph, learn.microsoft.com/graph/delta-query-overview
(read 2026-11-30): pages name `@odata.nextLink`, the last one `@odata.deltaLink` in its place, never
both; what the delta link leads to is the next round. An item may come several times, also again in
a later round, in any order of pages; the last delivery holds.

The first round, a baseline, reads pages that may change meanwhile. So it follows the first delta
link at once, within the same walk: what changed while the pages were read comes with it, if the
source counts changes from the start of a round. Where it counts them from the end (the in-memory
service of odatapy 5.3 makes a link anew on every page), they come in no round, and no receipt says
`verified`; unless the link is taken from the first page, where it is made before the rest is read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.checkpoint import CheckpointFacts
from scan_pipeline.core.contract import Contract
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import Continuation, End, Next, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Basis
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.envelope import ABSENT, open_envelope, value_at
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.http.linked_pages import LinkedPages
from scan_pipeline.sources.http.removals import RemovedFacts, removals
from scan_pipeline.sources.http.source import Received
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import Noticed, Removal
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "delta_link/1"

SIGNAL: Final = "delta_link"

_NESTED: Final = b'@delta"'
"""How the name of a member ends that holds changes of a list (Graph's `members@delta`)."""


@record
class NextPageFacts:
    """Where the link to the next page of a round lies.

    Attributes:
        at: where in the body; names with dots are a list, `["@odata.nextLink"]`.
        origins: origins that links may lead to beside the source's own. Credentials stay at home.
        keeps_query: why a link is believed to ask what we asked although it does not repeat it.
    """

    at: FieldPath
    origins: tuple[str, ...] = ()
    keeps_query: Basis | None = None

    def __post_init__(self) -> None:
        for each in self.origins:
            origin_of(each)


@record
class DeltaFacts(CheckpointFacts):
    """Where the link to the next round lies.

    Attributes:
        at: where in the body, e.g. `["@odata.deltaLink"]`.
        shown_on: whether the last page of a round alone shows it, or every page.
        taken_from: which page's link is followed, where every page shows one.
    """

    at: FieldPath
    shown_on: Literal["last_page", "every_page"] = "last_page"
    taken_from: Literal["last_page", "first_page"] = "last_page"

    def __post_init__(self) -> None:
        if self.taken_from == "first_page" and self.shown_on != "every_page":
            raise ContractError(
                "delta.taken_from: first_page needs delta.shown_on: every_page; expected a link "
                "on the first page, or taken_from: last_page"
            )
        anew = self.shown_on == "every_page" and self.taken_from == "last_page"
        if anew and self.covers_since == "start":
            raise ContractError(
                "a link that every page shows is made anew on each, the last page's when the round "
                "is over; expected taken_from: first_page, or covers_since: end"
            )


@record
class DeltaLinkSource(HttpFacts):
    """The facts of one collection whose changes are followed round by round.

    Attributes:
        next: where the link to the next page lies.
        delta: where the link to the next round lies, and what it covers.
        removed: what tells a removal from a record; None where the source tells of none.
    """

    protocol: Literal["delta_link"]
    next: NextPageFacts
    delta: DeltaFacts
    removed: RemovedFacts | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "GET":
            raise ContractError("a delta link is followed by GET; expected no other method")
        if self.change_token is not None or self.snapshot or self.high_water_mark or self.count:
            raise ContractError(
                "a round of changes holds nothing still and counts no collection; expected none of "
                "change_token, snapshot, high_water_mark, count"
            )
        self.check_reads(self.next.at, self.delta.at)

    @property
    def checkpoint(self) -> CheckpointFacts:
        """Return what is known of its delta links."""
        return self.delta

    @property
    def change_token_basis(self) -> Basis | None:
        """Return why its delta link, the token of its state, is believed to cover all writes."""
        return self.delta.basis

    @property
    def kept_query_basis(self) -> Basis | None:
        """Return why a link is believed to keep what it does not repeat."""
        return self.next.keeps_query

    def contradictions(self, contract: Contract) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what rounds of changes cannot be held to."""
        if contract.mode != "sync":
            yield (
                ("contract", "mode"),
                "a delta link is followed round by round; expected mode: sync",
            )


@record
class _Stand:
    """Where a round stands.

    Attributes:
        link: address of the page; None for the very first one, which we make.
        of_changes: whether changes are read, or still all there is.
        held: the delta link of this part's first page, where that is the one to follow.
    """

    link: str | None = None
    of_changes: bool = False
    held: str | None = None

    def token(self) -> str:
        return canonical_json([self.link, self.of_changes, self.held]).decode()


class DeltaLink(LinkedPages):
    """Walks a `DeltaLinkSource`.

    A position's token is canonical JSON: the address of its page, whether it is one of changes, and
    the delta link that is held for the end. Its `since` is the delta link a round begins at.
    """

    def __init__(self, facts: DeltaLinkSource, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings, origins=facts.next.origins)
        self._facts = facts
        self.adapter = AdapterRevision(name="delta_link", revision=REVISION)

    @property
    def facts(self) -> DeltaLinkSource:
        """Return what is declared of the source."""
        return self._facts

    def link_of(self, position: Position) -> str | None:
        """Return the link that led to a page."""
        return _stand(position).link

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the next page's link, or the next round's as the end of this one."""
        return self._after(received.around, position)

    def checkpoint_in(self, body: bytes, position: Position) -> str | None:
        """Return the delta link that an admitted last page ended its round with."""
        around = open_envelope(body, records_at=self._facts.records_at).around
        follows = self._after(around, position)
        return follows.checkpoint if isinstance(follows, End) else None

    def removals(self, records: Sequence[bytes]) -> Mapping[int, Removal]:
        """Return which records say that one was removed."""
        return {} if self._facts.removed is None else removals(records, self._facts.removed)

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield each list inside a record that was cut, or of which only changes are there."""
        yield from super().noticed(records)
        for row, text in enumerate(records):
            if _NESTED in text:
                yield Noticed(
                    row=row, code="nested_delta", expected="lists whole", found="changes of a list"
                )

    def _after(self, around: Any, position: Position) -> Continuation:
        stand, facts = _stand(position), self._facts.delta
        following = self._link(around, self._facts.next.at, position)
        delta = self._link(around, facts.at, position)
        where = f"{'.'.join(self._facts.next.at)} or {'.'.join(facts.at)}"
        if delta is None and (following is None or facts.shown_on == "every_page"):
            raise ProtocolError(
                "continuation_missing",
                f"no link at {where}; expected the next page's or the next round's",
            )
        if delta is not None and following is not None and facts.shown_on == "last_page":
            raise ProtocolError(
                "end_signals_disagree",
                f"links at both {where}: the round ends and goes on; expected one of them",
            )
        held = (stand.held or delta) if facts.taken_from == "first_page" else None
        if following is not None:
            return Next(
                token=_Stand(link=following, of_changes=stand.of_changes, held=held).token()
            )
        named = held or delta
        if not stand.of_changes:  # what changed while the baseline was read
            return Next(token=_Stand(link=named, of_changes=True).token())
        return End(signal=SIGNAL, checkpoint=named)

    def _link(self, around: Any, at: FieldPath, position: Position) -> str | None:
        link = value_at(around, at)
        if link is ABSENT or link is None:
            return None
        if not isinstance(link, str) or not link.strip():
            raise ProtocolError(
                "continuation_invalid", f"{'.'.join(at)} holds no link; expected a URL"
            )
        return self.leads_to(link, position=position)


def _stand(position: Position) -> _Stand:
    if position.token is None:
        return _Stand(link=position.since, of_changes=position.since is not None)
    link, of_changes, held = json.loads(position.token)
    return _Stand(link=link, of_changes=of_changes, held=held)


PROTOCOL: Final = Protocol(facts=DeltaLinkSource, open=DeltaLink)
