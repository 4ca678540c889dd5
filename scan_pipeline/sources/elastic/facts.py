"""What a scan file declares of a search in Elasticsearch or OpenSearch."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Literal

import httpx2
from pydantic import Field, JsonValue

from scan_pipeline.core.contract import Contract
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.source_facts import CountFacts, SnapshotFacts, SourceFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import AssumptionBasis
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.addresses import shown
from scan_pipeline.sources.http.network import NetworkFacts
from scan_pipeline.sources.http.responses import ResponseClass

SHARD_DOC: Final = "_shard_doc"
"""The sort field of both engines that is unique within a point in time."""

SEARCH_MEMBERS: Final = frozenset(
    {
        "_source",
        "docvalue_fields",
        "fields",
        "min_score",
        "query",
        "runtime_mappings",
        "script_fields",
        "seq_no_primary_term",
        "slice",
        "stored_fields",
        "version",
    }
)
"""What a search may say: which documents, and what of them. All else pages, stops early (`timeout`,
`terminate_after`), folds documents into one (`collapse`) or adds what is no document."""

NEVER_UNIQUE: Final = frozenset({"_doc", "_score"})
"""Sort fields that documents share: `_doc` starts anew in each shard."""


@record
class ClusterFacts:
    """How the official client's transport reaches a cluster.

    Attributes:
        nodes: addresses of further nodes, asked in turn; one that fails is left out for a while.
        ca_certs: path of a CA bundle.
        fingerprint: SHA-256 of the certificate of a node or of its CA, which is trusted alone.
    """

    nodes: tuple[str, ...] = ()
    ca_certs: str | None = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}$")] | None = (
        None
    )

    def __post_init__(self) -> None:
        for node in self.nodes:
            if not _is_address(node):
                raise ContractError(
                    f"{shown(node)} is more than the address of a node; expected scheme, host and "
                    "port alone"
                )


@record
class ElasticsearchSource(SourceFacts):
    """The facts of one search.

    Attributes:
        engine: whose API it is.
        url: address of the cluster or of one node.
        cluster: reach it through the official client's transport; needs the extra `elasticsearch`.
        index: index, alias, data stream, or several with commas and wildcards, as in a path.
        search: what is searched for and what comes back, e.g. `query` and `_source`.
        sort: the order, as in a search; in Elasticsearch `_shard_doc` is put behind it.
        tie_breaker: fields of `sort` that together are unique for each document.
        size: hits of one page; more than `index.max_result_window` are refused by the source.
        keep_alive: how long the source keeps a point in time after each request.
        refresh: whether to make earlier writes visible before it is opened; needs that right.
        identity: whether the source is asked who we are; None for where `auth` is declared.
        auth: how to prove who we are; secrets are references.
        network: the way out of here: proxy, CA bundle, client certificate; not beside `cluster`.
        responses: what statuses mean here, looked up before the engine's own.
    """

    OPERATION: ClassVar[tuple[str, ...]] = (
        "size",
        "keep_alive",
        "auth",
        "network",
        "cluster",
        "refresh",
    )
    QUERY: ClassVar[tuple[str, ...]] = ("url", "index", "search")
    positions_are_ours: ClassVar[bool] = True

    protocol: Literal["elasticsearch"]
    engine: Literal["elasticsearch", "opensearch"] = "elasticsearch"
    url: str
    cluster: ClusterFacts | None = None
    index: Annotated[str, Field(min_length=1)]
    search: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    sort: tuple[str | Mapping[str, JsonValue], ...] = ()
    tie_breaker: tuple[str, ...] = ()
    size: PositiveInt = 1_000
    keep_alive: Annotated[str, Field(pattern=r"^[1-9][0-9]*(ms|s|m|h|d)$")] = "5m"
    refresh: bool = False
    identity: bool | None = None
    auth: Auth | None = None
    network: NetworkFacts | None = None
    count: CountFacts | None = CountFacts(
        at=("hits", "total", "value"), exactness="exact", basis="provider_documented"
    )
    snapshot: SnapshotFacts | None = SnapshotFacts(
        at=("pit_id",), send_as="pit.id", basis="provider_documented", rotates=True
    )
    responses: tuple[ResponseClass, ...] = ()

    def __post_init__(self) -> None:
        if self.high_water_mark is not None or self.continuation != "repeatable":
            raise ContractError(
                "found high_water_mark or another continuation than repeatable; expected neither: "
                "a page of a point in time can be asked for as often as wanted"
            )
        if self.network is not None and self.cluster is not None:
            raise ContractError("found network and cluster; expected one way to the nodes")
        if strange := sorted(set(self.search) - SEARCH_MEMBERS):
            known = ", ".join(sorted(SEARCH_MEMBERS))
            raise ContractError(f"search holds {', '.join(strange)}; expected only {known}")
        self._check_order()

    @property
    def order(self) -> tuple[str | Mapping[str, JsonValue], ...]:
        """Return the sort that is sent: in Elasticsearch's points in time `_shard_doc` comes last.

        The engine would add it by itself since 7.12; named, an older one refuses.
        """
        if self._has_shard_doc and SHARD_DOC not in self.sort_fields:
            return (*self.sort, SHARD_DOC)
        return self.sort

    @property
    def sort_fields(self) -> tuple[str, ...]:
        """Return the names of the declared sort's fields."""
        return tuple(each if isinstance(each, str) else next(iter(each), "") for each in self.sort)

    @property
    def several(self) -> bool:
        """Whether the index is a pattern or a list, by its name; an alias cannot be told."""
        return any(each in self.index for each in "*,?") or self.index == "_all"

    @property
    def asks_identity(self) -> bool:
        """Whether the source is asked who we are."""
        return self.auth is not None if self.identity is None else self.identity

    @property
    def tool(self) -> str:
        """Return what is called."""
        at = "" if self.snapshot is not None else f"/{self.index}"
        return f"POST {self.url.rstrip('/')}{at}/_search"

    @property
    def believed(self) -> tuple[tuple[str, AssumptionBasis], ...]:
        """Return what has to be believed: that writes were visible, that the order ties none."""
        shards = SHARD_DOC in (*self.sort_fields, *self.order)
        refreshed: AssumptionBasis = "observed" if self.refresh else "assumed"
        unique: AssumptionBasis = "provider_documented" if shards else "user_declared"
        return (("earlier_writes_refreshed", refreshed), ("order_ties_no_documents", unique))

    def contradictions(self, contract: Contract) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield where a contract asks for what a search cannot give."""
        if self.snapshot is not None and contract.consistency != "snapshot":
            told = (
                "a point in time is read under consistency: snapshot; expected that, or "
                "source.snapshot: null to search what is there at each request"
            )
            yield ("contract", "consistency"), told
        if self.several and "_id" in contract.key and "_index" not in contract.key:
            told = (
                f"an _id is unique within one index, and {self.index} names several; expected "
                "[_index, _id]"
            )
            yield ("contract", "key"), told

    @property
    def _has_shard_doc(self) -> bool:
        return self.engine == "elasticsearch" and self.snapshot is not None

    def _check_order(self) -> None:
        """Refuse an order that may tie documents: a page between two of them would lose one."""
        fields = self.sort_fields
        if any(not isinstance(each, str) and len(each) != 1 for each in self.sort):
            raise ContractError("sort holds an entry of several fields; expected one of each")
        if SHARD_DOC in fields and self.snapshot is None:
            raise ContractError(f"{SHARD_DOC} sorts points in time alone; remove it from sort")
        if missing := sorted(set(self.tie_breaker) - set(fields)):
            raise ContractError(
                f"tie_breaker names {', '.join(missing)}, which sort does not; expected its fields"
            )
        if self._has_shard_doc or SHARD_DOC in fields:
            return
        unique = set(self.tie_breaker) - NEVER_UNIQUE
        if not unique:
            where = "search without a point in time" if self.snapshot is None else self.engine
            raise ContractError(
                f"sort may tie documents, and a page that ends between two of them loses one; a "
                f"{where} needs tie_breaker, the fields of sort that are unique for each document "
                f"(never {' or '.join(sorted(NEVER_UNIQUE))})" + self._shard_doc_hint()
            )
        if self.several and unique == {"_id"}:
            raise ContractError(
                f"tie_breaker is _id, unique within one index, and {self.index} names several; "
                "expected sort and tie_breaker to name _index too"
            )

    def _shard_doc_hint(self) -> str:
        known = self.engine == "opensearch" and self.snapshot is not None
        return f", or {SHARD_DOC} in sort, which OpenSearch has since 3.3" if known else ""


def _is_address(url: str) -> bool:
    """Say whether a URL is scheme, host and port, and nothing else."""
    parsed = httpx2.URL(url)
    more = (parsed.userinfo, parsed.query, parsed.fragment, parsed.path.strip("/"))
    return parsed.scheme in ("http", "https") and bool(parsed.host) and not any(more)


def search_body(facts: ElasticsearchSource) -> dict[str, Any]:
    """Return the frozen part of every search of a walk."""
    return {
        **facts.search,
        "sort": list(facts.order),
        "size": facts.size,
        "track_total_hits": True,
    }
