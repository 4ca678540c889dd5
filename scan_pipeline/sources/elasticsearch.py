"""The `elasticsearch` protocol: a search walked under a point in time, hit after hit.

From the documentation, all read 2026-11-30:

- Elasticsearch: elastic.co/docs/reference/elasticsearch/rest-apis/paginate-search-results, and of
  its API the pages on opening and closing a point in time and on search. `search_after` takes the
  sort values of the last hit. Query and sort stay as they were, and the newest `pit_id` is used,
  which may differ from the one that was sent and denotes the same point in time. Each search under
  one is sorted by `_shard_doc` last, unique per document and constant within it. `_shards`,
  `timed_out`, `terminated_early` and `_clusters` say what an answer lacks. `hits.total` is exact
  with `relation: eq`, which `track_total_hits: true` asks for.
- OpenSearch: docs.opensearch.org/latest/search-plugins/searching-data/point-in-time and
  point-in-time-api. The same search; a point in time may be made with shards missing unless
  `allow_partial_pit_creation` is false. `_shard_doc` only since 3.3
  (github.com/opensearch-project/OpenSearch/pull/18924).

A walk that is taken up goes on under the newest name that its stored pages show; should the source
have forgotten that one, the walk expires and begins anew.

Neither says that a page with fewer hits than asked for is the last, so the walk goes on until no
hits come. A point in time sees what was refreshed before it was opened, and nothing later.
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import httpx2

from scan_pipeline.core.canonical import canonical_json, digest_of, leaf_hashes
from scan_pipeline.core.errors import ConfigurationError, ContractError, ProtocolError
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import Opening, Page, Position, Refusal, Reported
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.sources.elastic.answers import (
    Found,
    has_document,
    kept,
    name_in,
    read_found,
    read_token,
)
from scan_pipeline.sources.elastic.facts import ElasticsearchSource, search_body
from scan_pipeline.sources.elastic.points_in_time import CLOSING, JSON, PointsInTime
from scan_pipeline.sources.http.envelope import ABSENT, value_at
from scan_pipeline.sources.http.responses import Answer, BodyMatch, ResponseClass
from scan_pipeline.sources.http.side_questions import principal_in
from scan_pipeline.sources.http.signing_in import open_transport
from scan_pipeline.sources.http.transport import Call, Refused, Transport, read_json
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import Noticed, RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "elasticsearch/1"

GONE: Final = "search_context_missing_exception"

CLOSING_ATTEMPTS: Final = 2
"""Sends of the request that closes a point in time."""

_CAUSES: Final = (
    ("error", "type"),
    ("error", "caused_by", "type"),
    *(("error", "root_cause", str(number), "type") for number in range(3)),
    *(("error", "failed_shards", str(number), "reason", "type") for number in range(3)),
)
"""Where an error names what caused it."""

RESPONSES: Final = tuple(
    ResponseClass(status=404, body=BodyMatch(at=at, equals=GONE), means="expired") for at in _CAUSES
)
"""A point in time whose context is gone, on one shard or all: its walk cannot go on."""


class Elasticsearch(Source):
    """Walks an `ElasticsearchSource`.

    A position's token is `{"after": <sort values as sent>, "shards": n}`; its pin is the newest
    name of the point in time. A first page without a pin opens one; what was opened or asked under
    is closed by `let_go`, and by `close` where that was not called.
    """

    def __init__(self, facts: ElasticsearchSource, surroundings: Surroundings) -> None:
        self._facts, self._surroundings = facts, surroundings
        self.adapter = AdapterRevision(name="elasticsearch", revision=REVISION)
        self._lent = surroundings.inner
        if facts.cluster is not None and self._lent is None:
            self._lent = _nodes(facts)
        self._transport = self._transport_with(surroundings, (*facts.responses, *RESPONSES))
        few = min(CLOSING_ATTEMPTS, surroundings.retries.attempts)
        hurried = replace(
            surroundings, retries=replace(surroundings.retries, attempts=few, max_wait=1.0)
        )
        self._closing = self._transport_with(hurried, CLOSING)
        self._points = PointsInTime(facts, self._transport, closing=self._closing)
        self._held: str | None = None

    @property
    def facts(self) -> ElasticsearchSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._transport.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Keep within what is left of `limits.seconds`; closing has bounds of its own."""
        self._transport.allowance.grant(limit, used=used)

    def principal(self) -> bytes | None:
        """Return what the scan's credential says of who asks."""
        auth = self._facts.auth
        return None if auth is None else auth.principal_bytes(self._surroundings.environ)

    def opening(self) -> Opening:
        """Return who we are, where the source is asked."""
        principal, tenant = self._identity()
        return Opening(principal=principal, tenant=tenant)

    def closing(self, position: Position) -> Opening:
        """Return who we are by now."""
        del position
        return self.opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return the hits behind the position's; see `Source.fetch`."""

        def tell(status: int | None, reason: str, digest: bytes, at: datetime) -> None:
            refused(
                Refusal(position=position, status=status, reason=reason, body_digest=digest, at=at)
            )

        after, shards = None, None
        if position.token is not None:
            told = read_token(position.token)
            after, shards = bytes(told.after), told.shards
        pit, opened = self._point_in_time(position, refused=tell)
        pinned = pit is not None

        def read(answer: Answer) -> Found:
            try:
                return read_found(
                    answer.body,
                    sorted_by=len(self._facts.order),
                    pinned=pinned,
                    after=after,
                    shards=shards if opened is None else opened,
                )
            except ProtocolError:
                # No page, and yet it may name anew what has to be closed.
                self._held = name_in(answer.body) or self._held
                raise

        sent = self._transport.send(self._search(pit, after), read=read, refused=tell)
        found = sent.value
        self._held = found.point_in_time
        return Page(
            position=position,
            fingerprint=self._fingerprint(),
            continuation=found.continuation,
            body=found.body,
            records=len(found.records),
            leaf_hashes=leaf_hashes(found.records),
            reported=Reported(total=found.total, pin=found.point_in_time),
            attempts=sent.attempts,
            requested_at=sent.requested_at,
            received_at=sent.received_at,
        )

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the hits of an admitted body, each with its document's members beside its own."""
        return kept(body)

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield a note where the first hit came without its document, though that was asked for."""
        narrowed = {"_source", "stored_fields"} & self._facts.search.keys()
        if records and not narrowed and not has_document(records[0]):
            yield Noticed(row=0, code="document_missing", expected="_source", found="no document")

    def let_go(self) -> tuple[Finding, ...]:
        """Close the point in time, however the walk stopped."""
        held, self._held = self._held, None
        return () if held is None else self._points.close(held)

    def close(self) -> None:
        """Close what is still open: the point in time, the connections."""
        try:
            self.let_go()
        finally:
            self._transport.close()
            self._closing.close()
            if self._lent is not None and self._lent is not self._surroundings.inner:
                self._lent.close()

    def _point_in_time(
        self, position: Position, *, refused: Refused
    ) -> tuple[str | None, int | None]:
        """Return the point in time to ask under, and its shards where it was opened just now."""
        if self._facts.snapshot is None:
            return None, None
        if position.pin is not None:
            self._held = position.pin
            return position.pin, None
        if position.token is not None:
            raise ContractError(
                "a later page was asked for without its point in time; expected the contract to "
                "say consistency: snapshot"
            )
        opened = self._points.open(refused=refused)
        self._held = opened.id
        return opened.id, opened.shards

    def _search(self, pit: str | None, after: bytes | None) -> Call:
        body = search_body(self._facts)
        if pit is not None:
            body["pit"] = {"id": pit, "keep_alive": self._facts.keep_alive}
        content = canonical_json(body)
        if after is not None:  # digit for digit: a parser would round what no double holds
            content = content[:-1] + b',"search_after":' + after + b"}"
        return Call(
            url=self._facts.tool.removeprefix("POST ") if pit is None else self._url("/_search"),
            params=(("allow_partial_search_results", "false"),),
            method="POST",
            headers=JSON,
            content=content,
        )

    def _identity(self) -> tuple[str | None, str | None]:
        if not self._facts.asks_identity:
            return None, None
        opensearch = self._facts.engine == "opensearch"
        path = "/_plugins/_security/authinfo" if opensearch else "/_security/_authenticate"
        around = self._transport.send(
            Call(url=self._url(path)), read=read_json, refused=self.refused_aside
        ).value
        principal, _ = principal_in(
            around,
            at=("user_name" if opensearch else "username",),
            tenant_at=None,
            where=self._url(path),
        )
        key = value_at(around, ("api_key", "id"))
        return principal if key is ABSENT else f"{principal} (API key {key})", None

    def _fingerprint(self) -> bytes:
        """Digest what must be equal on every request: all but position, pin and page size."""
        facts = self._facts
        frozen: dict[str, Any] = {
            "engine": facts.engine,
            "url": facts.url,
            "index": facts.index,
            "search": {name: each for name, each in search_body(facts).items() if name != "size"},
            "auth": None if facts.auth is None else facts.auth.scheme,
        }
        return digest_of(frozen)

    def _url(self, path: str) -> str:
        return f"{self._facts.url.rstrip('/')}{path}"

    def _transport_with(
        self, surroundings: Surroundings, responses: tuple[ResponseClass, ...]
    ) -> Transport:
        facts = self._facts
        return open_transport(
            facts.url,
            replace(surroundings, inner=self._lent),
            auth=facts.auth,
            responses=responses,
            network=facts.network,
        )


def _nodes(facts: ElasticsearchSource) -> httpx2.BaseTransport:
    """Return the official client's transport; its package is an extra, imported where it is used.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        module = importlib.import_module("scan_pipeline.sources.elastic.nodes")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"source.cluster needs {error.name}, which is not installed; expected "
            "pip install 'scan-pipeline[elasticsearch]'"
        ) from error
    return module.Nodes(facts.url, facts.cluster)


PROTOCOL: Final = Protocol(facts=ElasticsearchSource, open=Elasticsearch)
