"""What the engine asks of any source, whatever its protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from scan_pipeline.core.canonical import key_bytes
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import Opening, Page, Position, Refusal
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import record

RefusedCallback: TypeAlias = Callable[[Refusal], None]
"""Told of every answer that was not a page, at once, whether it is retried or not."""


@record
class Noticed:
    """What a source's facts let us see inside a record.

    Attributes:
        row: which of the records, from 0.
        code: the finding's code.
        expected: what should have been.
        found: what was.
    """

    row: int
    code: str
    expected: str
    found: str


@record
class Beside:
    """What a source's facts let us see in a page beside its records.

    Attributes:
        code: the finding's code.
        expected: what should have been.
        found: what was.
    """

    code: str
    expected: str
    found: str


@record
class Removal:
    """A record that is none: it says that one was removed.

    Attributes:
        reason: why, in the source's word; `removed` where it gives none.
        key: its key by field, where the record names it otherwise than by its key fields; a single
            one may stand under the empty name. None where the fields stand in it.
    """

    reason: str
    key: Mapping[str, str | int] | None = None

    def key_by(self, fields: Sequence[str]) -> str | None:
        """Return its canonical key, None where it names another one."""
        named = self.key or {}
        if len(fields) == 1 and "" in named:
            return key_bytes([named[""]]).decode()
        if {*fields} != {*named}:
            return None
        return key_bytes([named[each] for each in fields]).decode()


class Source(ABC):
    """One open connection to one collection; knows how to advance and how it ends.

    A source holds no state of the walk: the position it is given says everything.
    """

    adapter: AdapterRevision
    _hearer: RefusedCallback | None = None

    @property
    @abstractmethod
    def facts(self) -> SourceFacts:
        """Return what is declared of the source."""

    @property
    @abstractmethod
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""

    def allow(self, limit: float | None, *, used: float) -> None:
        """Be told, before requests, of `limits.seconds` and of what is used of it.

        A source that can bound its requests keeps within it and raises TimeLimitError past it.
        What is asked before the open event and after the end is bounded by the whole limit again.

        Args:
            limit: the limit, which no single wait that the source asks for may outlast; None where
                there is none.
            used: seconds used of it so far, without waits that the source asked for.
        """
        del limit, used

    def tell_aside(self, refused: RefusedCallback) -> None:
        """Be told, before requests, who hears of answers refused beside the pages.

        Beside them are `opening` and `closing`, and whatever else is asked that is no page: who we
        are, a bound, a token of the source's state, counts.
        """
        self._hearer = refused

    def refused_aside(self, status: int | None, reason: str, digest: bytes, at: datetime) -> None:
        """Tell of an answer refused beside the pages.

        Args:
            status: HTTP status, None where no answer came.
            reason: one word, as in `Refusal`.
            digest: SHA-256 of what came.
            at: when it came, UTC.
        """
        if self._hearer is not None:
            self._hearer(
                Refusal(
                    position=Position(),
                    status=status,
                    reason=reason,
                    body_digest=digest,
                    at=at,
                    asked="beside",
                )
            )

    def principal(self) -> bytes | None:
        """Return what tells one principal from another, None where no credential is sent.

        It is resolved for this call, equal for as long as the principal is the same (a client's
        name, not its token of the hour), and kept by nobody: only a keyed digest of it is stored.

        Raises:
            ConfigurationError: a secret is missing.
        """
        return None

    @abstractmethod
    def opening(self) -> Opening:
        """Return what the source says of itself before the first page.

        Raises:
            AccessRefusedError: the source refused our credentials.
            SourceUnavailableError: it did not answer within the retries allowed.
            ProtocolError: it answered with something else than was declared.
        """

    @abstractmethod
    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page.

        Raises:
            ProtocolError: the answer was not a page by the declared protocol.
            SnapshotExpiredError: the version or continuation is gone.
            ContinuationConsumedError: a continuation that works once may be used up.
            AccessRefusedError: the source refused our credentials or rights.
            SourceUnavailableError: it did not answer within the retries allowed.
            TimeLimitError: what `allow` granted is used up.
        """

    @abstractmethod
    def closing(self, position: Position) -> Opening:
        """Return what the source says of itself after the last page, under the same pin."""

    @abstractmethod
    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of an admitted body, in page order, as their bytes.

        Raises:
            ProtocolError: the body is not a page.
        """

    def checkpoint_in(self, body: bytes, position: Position) -> str | None:
        """Return the checkpoint of an admitted last page, None where the source has none.

        Args:
            body: its body.
            position: what it was asked for at.
        """
        del body, position

    def removals(self, records: Sequence[bytes]) -> Mapping[int, Removal]:
        """Return which records say that one was removed, by row from 0."""
        del records
        return {}

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield what the source's facts let us see inside records, e.g. a list that was cut."""
        del records
        return iter(())

    def beside(self, body: bytes) -> Iterator[Beside]:
        """Yield what the source's facts let us see in an admitted body beside its records."""
        del body
        return iter(())

    def let_go(self) -> tuple[Finding, ...]:
        """End what the source holds for this walk (a point in time), however the walk stopped.

        Called once, after the last request of the walk and before its close event. What could not
        be ended is told and not raised: the walk is what it is.
        """
        return ()

    @abstractmethod
    def close(self) -> None:
        """Let go of connections, and of what is held still; of no use afterwards."""
