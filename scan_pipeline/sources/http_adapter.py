"""An adapter behind HTTP: requests with retries, a fixed origin, and refusals told."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.value import record
from scan_pipeline.sources.adapter import Adapter, AdapterFacts
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.network import NetworkFacts
from scan_pipeline.sources.http.responses import Answer, ResponseClass
from scan_pipeline.sources.http.signing_in import open_transport
from scan_pipeline.sources.http.transport import Call, read_json
from scan_pipeline.sources.surroundings import Surroundings


@record
class HttpAdapterFacts(AdapterFacts):
    """The facts of a source of one's own behind HTTP.

    Attributes:
        url: the collection; its origin is the only one that is ever asked.
        auth: how to prove who we are; secrets are references.
        network: how the network is reached: proxy, CA, client certificate.
        responses: what statuses mean here, where they differ from HTTP.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth", "network")

    url: str
    auth: Auth | None = None
    network: NetworkFacts | None = None
    responses: tuple[ResponseClass, ...] = ()


F = TypeVar("F", bound=HttpAdapterFacts)


class HttpAdapter(Adapter[F]):
    """A source of one's own behind HTTP; `ask` calls `get_json` or `post_json`."""

    def __init__(self, facts: F, surroundings: Surroundings) -> None:
        super().__init__(facts, surroundings)
        self._transport = open_transport(
            facts.url,
            surroundings,
            auth=facts.auth,
            responses=facts.responses,
            network=facts.network,
        )

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return super().waited + self._transport.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; see `Source.allow`."""
        super().allow(limit, used=used)
        self._transport.allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what the scan's credential says of who asks."""
        auth = self.facts.auth
        return None if auth is None else auth.principal_bytes(self.surroundings.environ)

    def get_json(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the answer's JSON, numbers exact (`int` and `Decimal`).

        Args:
            url: an address of the origin.
            params: added to its query.
            headers: without secrets, which `auth` adds.

        Raises:
            DestinationRefusedError: the address, or a redirect, leaves the origin.
            SourceUnavailableError, AccessRefusedError, SnapshotExpiredError,
            ContinuationConsumedError, ProtocolError: see `Source.fetch`.
        """
        call = Call(
            url=url, params=tuple((params or {}).items()), headers=tuple((headers or {}).items())
        )
        return self._sent(call)

    def post_json(
        self, url: str, content: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Post JSON and return the answer's; raises as `get_json`."""
        told = {"content-type": "application/json", **(headers or {})}
        call = Call(
            url=url,
            headers=tuple(told.items()),
            method="POST",
            content=canonical_json(dict(content)),
        )
        return self._sent(call)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _sent(self, call: Call) -> Any:
        fetching = self._fetching
        sent = self._transport.send(
            call, read=_read, refused=fetching.tell, repeatable=not fetching.once_only
        )
        value, from_cache = sent.value
        fetching.answered(sent.attempts, from_cache=from_cache)
        return value


def _read(answer: Answer) -> tuple[Any, bool]:
    """Return an answer's JSON, and whether a cache on the way gave it."""
    return read_json(answer), answer.from_cache
