"""What a source of one's own is made of: a page's worth of records, and what follows it.

A protocol that facts alone cannot describe is an `Adapter` of some sixty lines: it declares its
facts, and says for a position what came and what follows. Everything else (sending again, what was
refused, bodies, digests, times, the fingerprint of the frozen request) is made here.

A page's body is canonical JSON, one record a line; none for no records (`canonical-json/v1`).
Numbers keep their value: hand over `int` and `Decimal`, or the record's JSON text as bytes, and no
`float` that a parser made of digits.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from scan_pipeline.core.canonical import (
    CanonicalFormError,
    canonical_form,
    canonical_json,
    digest_of,
    leaf_hashes,
)
from scan_pipeline.core.contract_digests import stated
from scan_pipeline.core.errors import (
    ContinuationConsumedError,
    ProtocolError,
    TransientSourceError,
)
from scan_pipeline.core.page import (
    Continuation,
    End,
    Next,
    Opening,
    Page,
    Position,
    Refusal,
    Reported,
)
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import LeafEncoding
from scan_pipeline.sources.http.allowance import Allowance
from scan_pipeline.sources.http.resending import Resending
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

NOT_USED_UP: Final = frozenset({"not_connected", "wait"})
"""Reasons of a transient failure that leave a continuation unused, so that it may be sent again."""


@record
class AdapterRef:
    """Which class walks, and the revision of its code: declared, or a digest of its module."""

    name: str
    revision: str


@record
class AdapterFacts(SourceFacts):
    """The facts of a source of one's own; a subclass adds its fields, as `@record`.

    Attributes:
        adapter: the class. In a scan file its dotted path; the revision is filled in.
    """

    leaf_encoding: ClassVar[LeafEncoding] = "canonical-json/v1"

    protocol: Literal["adapter"] = "adapter"
    adapter: AdapterRef

    @property
    def tool(self) -> str:
        """Return what is called: the address, where the facts have one."""
        return str(getattr(self, "url", self.adapter.name))

    def counter_in(self, token: str) -> str | None:
        """Return `token` where a continuation is a bare number, which may be an offset or a page.

        Facts that say that positions are ours are held against `position_fields` instead; those of
        a source whose numbers are keys in some other way return None.
        """
        if self.positions_are_ours:
            return None
        return "token" if token.isascii() and token.isdigit() else None


F = TypeVar("F", bound=AdapterFacts)


@record
class Answered:
    """One page, as an adapter hands it over.

    Attributes:
        records: each a JSON value, or its JSON text as bytes, in the order they came.
        continuation: what follows, or the end as the source said it. There is no third case.
        total: count of the whole, where the source reports one.
        remaining: count of what is left after this page, likewise.
        page: count of this page, likewise.
        pin: version that the answer names, where there is one.
    """

    records: Sequence[Any]
    continuation: Continuation
    total: int | None = None
    remaining: int | None = None
    page: int | None = None
    pin: str | None = None


class Adapter(Source, Generic[F]):
    """A source of one's own.

    A subclass names its facts in `FACTS` and writes `ask`. `REVISION` says which behaviour it is
    of; without one, the digest of its module's text is taken. It holds no state of the walk.

    Args:
        facts: what the scan file declares.
        surroundings: the world around it.
    """

    FACTS: ClassVar[type[AdapterFacts]]
    REVISION: ClassVar[str | None] = None

    def __init__(self, facts: F, surroundings: Surroundings) -> None:
        self._facts, self.surroundings = facts, surroundings
        self.adapter = AdapterRevision(name=facts.adapter.name, revision=facts.adapter.revision)
        self._allowance = Allowance(clock=surroundings.clock)
        self._resending = Resending(
            surroundings.retries, sleep=surroundings.sleep, allowance=self._allowance
        )
        self._fetching = self._beside()

    @abstractmethod
    def ask(self, position: Position) -> Answered:
        """Return what the source answers for a position.

        Raises:
            TransientSourceError: asking again may help; `reason` is `not_connected` where nothing
                was sent, `wait` where the source asks for one, else e.g. `connection_lost`.
            ProtocolError: the answer is not a page by the protocol.
            SnapshotExpiredError: the version or continuation is gone.
            AccessRefusedError: the source refuses our credentials or rights.
        """

    @property
    def facts(self) -> F:
        """Return what is declared of the source."""
        return self._facts

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep the waits within `limits.seconds`; see `Source.allow`."""
        self._allowance.grant(limit, used=used)

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._resending.waited

    def opening(self) -> Opening:
        """Return what the source says of itself before the first page; nothing, unless written."""
        return Opening()

    def closing(self, position: Position) -> Opening:
        """Return what it says after the last page; the same, unless written otherwise."""
        del position
        return self.opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page; see `Source.fetch`."""
        try:
            return self._fetch(position, refused=refused)
        finally:
            self._fetching = self._beside()  # what is asked from here on is no page

    def _beside(self) -> "_Fetching":
        def tell(refusal: Refusal) -> None:
            self.refused_aside(refusal.status, refusal.reason, refusal.body_digest, refusal.at)

        return _Fetching(Position(), tell, once_only=False)

    def _fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        once_only = self._facts.continuation != "repeatable" and position.token is not None
        fetching = self._fetching = _Fetching(position, refused, once_only=once_only)
        clock = self.surroundings.clock
        requested_at = clock()

        def once(attempt: int) -> tuple[Answered, list[bytes], Reported, int]:
            try:
                answered = _checked(self.ask(position))
                lines = [_line(each) for each in answered.records]
                return answered, lines, _reported(answered, fetching), attempt
            except TransientSourceError as error:
                fetching.tell(None, error.reason, sha256().digest(), clock())
                if once_only and error.reason not in NOT_USED_UP:
                    raise ContinuationConsumedError(
                        f"{error}; its continuation works only once and may be used up"
                    ) from error
                raise
            except ProtocolError as error:
                if not fetching.told:
                    fetching.tell(None, error.code, sha256().digest(), clock())
                raise

        answered, lines, told, attempt = self._resending.send(once)
        return Page(
            position=position,
            fingerprint=self._fingerprint(position),
            continuation=answered.continuation,
            body=b"\n".join(lines),
            records=len(lines),
            leaf_hashes=leaf_hashes(lines),
            reported=told,
            attempts=max(attempt, fetching.sends),
            requested_at=requested_at,
            received_at=clock(),
        )

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body."""
        return body.split(b"\n") if body else ()

    def close(self) -> None:
        """Let go of nothing, unless written otherwise."""

    def _fingerprint(self, position: Position) -> bytes:
        """Digest what must be equal on every request: all facts but those of the operation."""
        facts: Mapping[str, Any] = stated(self._facts)
        frozen = {name: facts[name] for name in facts if name not in self._facts.OPERATION}
        return digest_of({"facts": frozen, "high_water_mark": position.high_water_mark})


class _Fetching:
    """One page on its way: what was refused, and how often was sent.

    Attributes:
        told: whether the last thing that came was refused, and told.
        sends: requests sent over HTTP.
        from_cache: whether a cache on the way gave one of the answers.
        once_only: whether the continuation may be sent only once.
    """

    def __init__(self, position: Position, refused: RefusedCallback, *, once_only: bool) -> None:
        self._position, self._refused = position, refused
        self.once_only = once_only
        self.told, self.sends, self.from_cache = False, 0, False

    def tell(self, status: int | None, reason: str, digest: bytes, at: datetime) -> None:
        self.told = True
        self._refused(
            Refusal(
                position=self._position, status=status, reason=reason, body_digest=digest, at=at
            )
        )

    def answered(self, sends: int, *, from_cache: bool) -> None:
        self.told = False
        self.sends += sends
        self.from_cache |= from_cache


def _checked(answered: object) -> Answered:
    """Return what an adapter handed over, if it is a page and what follows it.

    Raises:
        ProtocolError: `not_a_page` or `continuation_invalid`; the code that hands it over is not
            ours, and nothing else looks at the kinds of what it hands over.
    """
    if not isinstance(answered, Answered):
        raise ProtocolError(
            "not_a_page", f"ask returned a {type(answered).__name__}; expected Answered"
        )
    records: object = answered.records
    if isinstance(records, str | bytes | Mapping):
        raise ProtocolError(
            "not_a_page", f"records is a {type(records).__name__}; expected a list of records"
        )
    follows: object = answered.continuation
    if not isinstance(follows, Next | End):
        raise ProtocolError(
            "continuation_invalid",
            f"the continuation is a {type(follows).__name__}; expected Next or End",
        )
    return answered


def _reported(answered: Answered, fetching: _Fetching) -> Reported:
    """Return what the source said beside the records; raises ProtocolError where it said none."""
    return Reported(
        total=answered.total,
        remaining=answered.remaining,
        page=answered.page,
        pin=answered.pin,
        from_cache=fetching.from_cache,
    )


def _line(value: Any) -> bytes:
    """Return a record as one line of canonical JSON.

    Raises:
        ProtocolError: `body_unparsable`, JSON cannot say it exactly.
    """
    try:
        return canonical_form(value) if isinstance(value, bytes) else canonical_json(value)
    except CanonicalFormError as error:
        raise ProtocolError("body_unparsable", f"a record is not exact JSON: {error}") from error
