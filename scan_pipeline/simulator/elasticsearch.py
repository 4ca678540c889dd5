"""The registry as a search engine: the documented contract of Elasticsearch and OpenSearch.

Which pages were consulted is said in `scan_pipeline.sources.elasticsearch`. Served are
`POST /<index>/_pit`, `DELETE /_pit`, `POST /<index>/_refresh`, `POST /_search`,
`POST /<index>/_search` and `GET /_security/_authenticate`; for OpenSearch
`POST /<index>/_search/point_in_time`, `DELETE /_search/point_in_time` and
`GET /_plugins/_security/authinfo` in their place.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import Answer, RequestRefusedError, compact, json_answer
from scan_pipeline.simulator.collection import Collection
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.mutations import Mutation
from scan_pipeline.simulator.points_in_time import Names, PointInTime, PointsInTime
from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.principals import Principal, authenticate
from scan_pipeline.simulator.registry import Clock, utc_now
from scan_pipeline.simulator.search_faults import SearchFault, damaged_facts
from scan_pipeline.simulator.search_index import (
    Document,
    Layout,
    Ordered,
    documents_of,
    matching,
    sort_of,
)

_REFUSALS: Final[Mapping[str, tuple[int, str]]] = {
    "context_missing": (404, "search_context_missing_exception"),
    "rejected": (429, "es_rejected_execution_exception"),
    "unavailable": (503, "search_phase_execution_exception"),
}


@record
class SearchRequest:
    """One request as the engine sees it; `path` is decoded and has no query."""

    method: str
    path: str
    params: Mapping[str, str]
    authorization: str | None
    body: bytes


class SearchEngine:
    """Answers requests one at a time.

    Attributes:
        points: its points in time.
        asked: every request, in order.

    Args:
        size: how many customers, from 0.
        engine: whose API it speaks.
        layout: how documents are spread.
        faults: what breaks.
        mutations: what changes after which page.
        names: what becomes of the names of points in time.
        closing: what comes of closing one.
        clock: returns an aware moment.
    """

    def __init__(
        self,
        *,
        size: int = CUSTOMERS,
        engine: Literal["elasticsearch", "opensearch"] = "elasticsearch",
        layout: Layout | None = None,
        faults: tuple[SearchFault, ...] = (),
        mutations: tuple[Mutation, ...] = (),
        names: Names = "kept",
        closing: Literal["right", "fails", "unsuccessful"] = "right",
        clock: Clock = utc_now,
    ) -> None:
        self.points = PointsInTime(names)
        self.asked: list[SearchRequest] = []
        self._opensearch, self._layout = engine == "opensearch", layout or Layout()
        self._faults, self._closing, self._clock = faults, closing, clock
        self._attempts: Counter[int] = Counter()
        self._lock = Lock()
        self._collection = Collection(
            "customers", rows=population("customers", size), scripted=mutations
        )

    def answer(self, request: SearchRequest) -> Answer:
        """Answer one request."""
        with self._lock:
            self.asked.append(request)
            try:
                return self._answered(request)
            except RequestRefusedError as error:
                return _refused(error)

    def _answered(self, request: SearchRequest) -> Answer:
        principal = _principal(request.authorization)
        steps = request.path.strip("/").split("/")
        index = None if steps[0].startswith("_") else steps.pop(0)
        pit, who = ("_pit", "_security/_authenticate")
        if self._opensearch:
            pit, who = ("_search/point_in_time", "_plugins/_security/authinfo")
        match request.method, "/".join(steps), index:
            case "POST", "_search", _:
                return self._search(request, principal, index)
            case "POST", action, str() if action == pit:
                return self._open(request, principal, index)
            case "DELETE", action, None if action == pit:
                return self._close(request)
            case "GET", action, None if action == who:
                return self._identity(request, principal)
            case "POST", "_refresh", str():
                # Each shard has a replica that is not assigned, as on a cluster of one node.
                shards = self._shards(index)
                told = {"total": 2 * shards, "successful": shards, "failed": 0}
                return json_answer({"_shards": told})
            case _:
                raise RequestRefusedError(400, "illegal_argument_exception", "no handler found")

    def _open(self, request: SearchRequest, principal: Principal, index: str) -> Answer:
        made = self.points.add(
            self._documents(principal, index),
            shards=self._shards(index),
            keep_alive=request.params["keep_alive"],
            now=self._clock().timestamp(),
        )
        named = "pit_id" if self._opensearch else "id"
        return json_answer({named: made.names[-1], "_shards": _all_of(made.shards)})

    def _close(self, request: SearchRequest) -> Answer:
        if self._closing == "fails":
            raise RequestRefusedError(500, "illegal_state_exception", "cannot free contexts")
        asked = json.loads(request.body)
        names = asked["pit_id"] if self._opensearch else [asked["id"]]
        fails = self._closing == "unsuccessful"
        done = {each: not fails and self.points.close(each) for each in names}
        status = 200 if any(done.values()) or fails else 404
        if self._opensearch:
            told = {"pits": [{"successful": each, "pit_id": name} for name, each in done.items()]}
        else:
            told = {"succeeded": all(done.values()), "num_freed": sum(done.values())}
        return Answer(status=status, body=compact(told))

    def _search(self, request: SearchRequest, principal: Principal, index: str | None) -> Answer:
        asked = json.loads(request.body)
        pit = self._point_in_time(asked, index)
        ordered = self._ordered(asked, pit, principal=principal, index=index)
        start, size = ordered.start_after(asked.get("search_after")), asked["size"]
        kinds = self._striking(start // size + 1, is_last=start + size >= len(ordered.documents))
        for each in kinds & _REFUSALS.keys():
            if each == "context_missing" and pit is not None:
                self.points.drop(pit)
            raise RequestRefusedError(*_REFUSALS[each], each)
        shown = ordered
        if "pit_not_honoured" in kinds:
            found = matching(self._documents(principal, None), asked.get("query"))
            shown = Ordered(found, self._sort(asked, pit))
        hits = [] if "shard_failed_empty" in kinds else shown.documents[start : start + size]
        if {"shard_failed", "timed_out"} & kinds:
            hits = [each for each in hits if each.shard != 0]
        facts: dict[str, Any] = {
            "took": 1,
            "timed_out": False,
            "_shards": _all_of(self._shards(index) if pit is None else pit.shards),
            "total": {"value": len(ordered.documents), "relation": "eq"},
        }
        if pit is not None:
            facts["pit_id"] = self.points.answered(pit)
        self._collection.let_happen(through_page=start // size + 1)
        facts = damaged_facts(kinds, facts, total=len(ordered.documents))
        return _found(facts, [each.hit(ordered.fields) for each in hits])

    def _point_in_time(self, asked: Mapping[str, Any], index: str | None) -> PointInTime | None:
        if "pit" not in asked:
            return None
        if index is not None:
            raise RequestRefusedError(
                400, "action_request_validation_exception", "[indices] cannot be used with [pit]"
            )
        pit, now = asked["pit"], self._clock().timestamp()
        return self.points.find(pit["id"], keep_alive=pit.get("keep_alive"), now=now)

    def _ordered(
        self,
        asked: Mapping[str, Any],
        pit: PointInTime | None,
        *,
        principal: Principal,
        index: str | None,
    ) -> Ordered:
        sort = self._sort(asked, pit)
        if pit is not None:
            return pit.ordered(asked.get("query"), sort)
        return Ordered(matching(self._documents(principal, index), asked.get("query")), sort)

    def _sort(self, asked: Mapping[str, Any], pit: PointInTime | None) -> list[tuple[str, int]]:
        """Return the order; in Elasticsearch a point in time breaks every tie."""
        sort = sort_of(asked["sort"])
        named = any(field == "_shard_doc" for field, _ in sort)
        if named and pit is None:
            raise RequestRefusedError(
                400, "action_request_validation_exception", "[_shard_doc] needs [pit]"
            )
        implied = pit is not None and not self._opensearch and not named
        return [*sort, ("_shard_doc", 1)] if implied else sort

    def _striking(self, page: int, *, is_last: bool) -> frozenset[str]:
        self._attempts[page] += 1
        attempt = self._attempts[page]
        return frozenset(
            each.kind
            for each in self._faults
            if each.strikes(page=page, is_last=is_last, attempt=attempt)
        )

    def _documents(self, principal: Principal, index: str | None) -> list[Document]:
        if index is not None and not self._layout.resolve(index):
            return []
        rows = self._collection.head.rows
        if principal.tenant is not None:
            rows = [row for row in rows if row.traits.tenant == principal.tenant]
        return documents_of(rows, self._layout)

    def _shards(self, index: str | None) -> int:
        known = index is None or self._layout.resolve(index)
        return self._layout.shards * self._layout.indices if known else 0

    def _identity(self, request: SearchRequest, principal: Principal) -> Answer:
        if self._opensearch:
            return json_answer({"user_name": principal.name, "tenants": {}})
        told: dict[str, Any] = {"username": principal.name, "authentication_type": "token"}
        if (request.authorization or "").startswith("ApiKey "):
            told |= {"authentication_type": "api_key", "api_key": {"id": "VuaCfGcB"}}
        return json_answer(told)


def create_search_app(engine: SearchEngine) -> Starlette:
    """Return a search engine as an ASGI application, to be served on a port."""

    async def respond(request: Request) -> Response:
        answer = engine.answer(
            SearchRequest(
                method=request.method,
                path=request.url.path,
                params=dict(request.query_params),
                authorization=request.headers.get("authorization"),
                body=await request.body(),
            )
        )
        return Response(answer.body, status_code=answer.status, media_type=answer.content_type)

    return Starlette(routes=[Route("/{path:path}", respond, methods=["GET", "POST", "DELETE"])])


def _principal(authorization: str | None) -> Principal:
    scheme, _, token = (authorization or "").partition(" ")
    try:
        return authenticate(f"Bearer {token}" if scheme == "ApiKey" else authorization)
    except RequestRefusedError as error:
        raise RequestRefusedError(401, "security_exception", str(error)) from error


def _all_of(shards: int) -> dict[str, int]:
    """Say that every shard answered; one without a match is skipped, and counts as successful."""
    return {"total": shards, "successful": shards, "skipped": 0, "failed": 0}


def _found(facts: Mapping[str, Any], hits: Sequence[bytes]) -> Answer:
    around = {name: value for name, value in facts.items() if name != "total"}
    head = compact(around)[:-1] + b',"hits":{"total":' + compact(facts["total"])
    body = head + b',"max_score":null,"hits":[' + b",".join(hits) + b"]}}"
    return Answer(status=200, body=body)


def _refused(error: RequestRefusedError) -> Answer:
    cause = {"type": error.code, "reason": str(error)}
    told = {"error": {"root_cause": [cause], **cause}, "status": error.status}
    return Answer(status=error.status, body=compact(told))
