"""A cluster whose population is known: the list contract of the Kubernetes API, point by point.

From kubernetes.io/docs/reference/using-api/api-concepts, ListMeta and ListOptions of the API
reference, KEP-365, KEP-2523, and the validation of kubernetes/kubernetes
(apimachinery/pkg/apis/meta/internalversion/validation, apiserver/pkg/storage); read 2026-11-30:

- without `limit` everything comes; with it up to so many, and a token where more follows;
- the token carries the version of the first chunk and the next key; the version beside it is 400,
  `resourceVersionMatch` beside it 422;
- `resourceVersion` with `limit` and without a token reads that version exactly, matched or not;
- a compacted version is 410 `Expired`; where a token asked for it, the answer offers a weaker one,
  which goes on at the newest version;
- a version of the future is 504 with `Retry-After`;
- `remainingItemCount` is there only where more follows and no selector is in force;
- a namespace that does not exist lists as empty;
- errors are `Status` objects.

Everything else a real server does (watches, writes, admission, discovery) is not simulated.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scan_pipeline.simulator import kubernetes_faults as faulty
from scan_pipeline.simulator.answers import Answer
from scan_pipeline.simulator.collection import Collection, Revision
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.kubernetes_answers import (
    NEWEST,
    Chunk,
    StatusError,
    continue_token,
    first_of_kind,
    list_answer,
    opened_token,
    review,
    status_answer,
)
from scan_pipeline.simulator.kubernetes_objects import (
    FIRST_VERSION,
    LIST_PATH,
    Selection,
    SelectorError,
    objects_of,
    parse_selector,
)
from scan_pipeline.simulator.mutations import Mutation
from scan_pipeline.simulator.population import population

REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN: Final = "sample-token-cluster-reader"  # noqa: S105 - public, part of the simulator
READER: Final = "reader@cluster.example"
_PARTIAL: Final = "as=PartialObjectMetadataList"
_TOO_OLD: Final = "The provided continue parameter is too old to display a consistent list result."


class KubernetesCluster:
    """Answers requests one at a time.

    Attributes:
        asked: the parameters of every list request, in order.

    Args:
        size: how many customers, from 0.
        faults: what it does that it should not.
        users: by bearer token, who that is.
        by_certificate: who asks without a token, e.g. whom a client certificate names; None for
            nobody.
        reviews: whether it tells who asks; servers before 1.28 do not.
    """

    def __init__(
        self,
        *,
        size: int = CUSTOMERS,
        faults: Iterable[faulty.Fault] = (),
        users: Mapping[str, str] | None = None,
        by_certificate: str | None = None,
        reviews: bool = True,
    ) -> None:
        self.asked: list[dict[str, str]] = []
        self.users = dict({TOKEN: READER} if users is None else users)
        self._faults = tuple(faults)
        self._by_certificate, self._reviews = by_certificate, reviews
        self._collection = Collection("customers", rows=population("customers", size), scripted=())
        self._history: list[Revision] = [self._collection.head]
        self._compacted = 0
        self._replaced: str | None = None
        self._lock = Lock()

    def mutate(self, *mutations: Mutation) -> None:
        """Let customers change now; each change is a version."""
        with self._lock:
            for mutation in mutations:
                self._collection.apply(mutation)
                self._history.append(self._collection.head)

    def write_elsewhere(self) -> None:
        """Let an object of another resource be written: the version moves, no customer does."""
        with self._lock:
            self._history.append(self._collection.head)

    def compact(self) -> None:
        """Forget every version but the newest."""
        with self._lock:
            self._compacted = len(self._history) - 1

    def answer(
        self, method: str, path: str, params: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        """Answer one request; header names in lower case."""
        with self._lock:
            try:
                user = self._user(headers.get("authorization"))
                if (method, path) == ("POST", REVIEW_PATH) and self._reviews:
                    return review(self._replaced or user)
                if method != "GET" or (selection := _selection(path, params)) is None:
                    raise StatusError(404, "NotFound", "the server could not find the resource")
                return self._listed(selection, params, headers)
            except SelectorError as error:
                return status_answer(StatusError(400, "BadRequest", str(error)))
            except StatusError as error:
                return status_answer(error)

    def _user(self, authorization: str | None) -> str:
        scheme, _, token = (authorization or "").partition(" ")
        if authorization is None and self._by_certificate is not None:
            return self._by_certificate
        if scheme.lower() != "bearer" or token not in self.users:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return self.users[token]

    def _listed(
        self, selection: Selection, params: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        self.asked.append(dict(params))
        struck = [each for each in self._faults if each.strikes(len(self.asked))]
        if (sent := first_of_kind(struck, faulty.StatusSent)) is not None:
            raise StatusError(sent.status, sent.reason, "scripted", wait=sent.retry_after_s)
        if first_of_kind(struck, faulty.Compacted) is not None:
            self._history.append(self._collection.head)
            self._compacted = len(self._history) - 1
        if (replaced := first_of_kind(struck, faulty.UserReplaced)) is not None:
            self._replaced = replaced.user
        limit = _number(params, "limit")
        if first_of_kind(struck, faulty.LimitIgnored) is not None:
            limit = 0
        version, start = self._asked_version(params, limit)
        shown = version
        if drifted := first_of_kind(struck, faulty.VersionDrifted) or first_of_kind(
            struck, faulty.PinIgnored
        ):
            version = len(self._history) - 1
            shown = version if isinstance(drifted, faulty.VersionDrifted) else shown
        chunk = self._chunk(version, start, limit, selection, struck)
        return list_answer(chunk, shown, struck, partial=_PARTIAL in headers.get("accept", ""))

    def _asked_version(self, params: Mapping[str, str], limit: int) -> tuple[int, str]:
        """Return the index of the version to read, and the key to begin at."""
        token, asked = params.get("continue", ""), params.get("resourceVersion", "")
        match = params.get("resourceVersionMatch", "")
        _validate(token, asked, match)
        head = len(self._history) - 1
        if token:
            version, start = opened_token(token)
            if version == NEWEST:
                return head, start
            index = version - FIRST_VERSION
            if index < self._compacted:
                weaker = continue_token(NEWEST, start)
                raise StatusError(410, "Expired", _TOO_OLD, token=weaker)
            return index, start
        exact = match == "Exact" or (limit > 0 and not match)
        if not asked or asked == "0" or not exact:
            return head, ""
        if not asked.isdecimal():
            raise StatusError(400, "BadRequest", f'invalid resource version: "{asked}"')
        index = int(asked) - FIRST_VERSION
        if index > head:
            raise StatusError(504, "Timeout", "Too large resource version", wait=1)
        if index < self._compacted:
            raise StatusError(
                410, "Expired", "The resourceVersion for the provided list is too old."
            )
        return index, ""

    def _chunk(
        self,
        version: int,
        start: str,
        limit: int,
        selection: Selection,
        struck: list[faulty.Fault],
    ) -> Chunk:
        objects = objects_of(self._history[version], selection)
        first = bisect_left(objects, start, key=lambda each: each.key)
        size = limit or len(objects)
        if (short := first_of_kind(struck, faulty.ChunkShort)) is not None:
            size = min(size, short.objects)
        if first_of_kind(struck, faulty.LimitExceeded) is not None:
            size += 1
        end = min(len(objects), first + size)
        more = end < len(objects) and bool(limit)
        # Behind the last key that was looked at, as etcd3 storage has it; an empty chunk moves too.
        following = (objects[end - 1].key if end > first else start) + "\0" if more else ""
        if more and first_of_kind(struck, faulty.TokenRepeated) is not None:
            following = start or objects[first].key
        return Chunk(
            objects=objects[first:end],
            token=continue_token(FIRST_VERSION + version, following) if more else None,
            remaining=len(objects) - end if more and not selection.filters else None,
        )


def create_kubernetes_app(cluster: KubernetesCluster) -> Starlette:
    """Return a cluster as an ASGI application, to be served on a port."""

    async def answered(request: Request) -> Response:
        answer = cluster.answer(
            request.method,
            request.url.path,
            dict(request.query_params),
            {name.lower(): value for name, value in request.headers.items()},
        )
        headers = {"cache-control": "no-cache, private", **answer.headers}
        return Response(answer.body, answer.status, headers, answer.content_type)

    return Starlette(routes=[Route("/{path:path}", answered, methods=["GET", "POST"])])


def _validate(token: str, asked: str, match: str) -> None:
    wrong = None
    if match and not asked:
        wrong = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match and token:
        wrong = "resourceVersionMatch is forbidden when continue is provided"
    elif match not in ("", "Exact", "NotOlderThan"):
        wrong = f"Unsupported value: {match!r}"
    elif match == "Exact" and asked == "0":
        wrong = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if wrong is not None:
        raise StatusError(422, "Invalid", f"resourceVersionMatch: {wrong}")
    if token and asked not in ("", "0"):
        told = "specifying resource version is not allowed when using continue"
        raise StatusError(400, "BadRequest", told)


def _selection(path: str, params: Mapping[str, str]) -> Selection | None:
    """Return what a path lists, None where it is no list."""
    namespace = None
    if path != LIST_PATH:
        root, _, rest = path.partition("/namespaces/")
        namespace, _, plural = rest.partition("/")
        if f"{root}/{plural}" != LIST_PATH or not namespace:
            return None
    return Selection(
        namespace=namespace,
        labels=parse_selector(params.get("labelSelector", "")),
        fields=parse_selector(params.get("fieldSelector", "")),
    )


def _number(params: Mapping[str, str], name: str) -> int:
    text = params.get(name, "0")
    if not text.isdecimal():
        raise StatusError(400, "BadRequest", f"{name}: expected a number, found {text!r}")
    return int(text)
