"""One list of the Kubernetes API over HTTP: how a chunk is asked for, and what makes one.

The documents are cited in `sources.kubernetes`.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from scan_pipeline.core.errors import AccessRefusedError, ProtocolError
from scan_pipeline.core.page import Continuation, Next, Position
from scan_pipeline.core.source_facts import SnapshotFacts
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.end_signals import EndSignal, NextFacts, continuation
from scan_pipeline.sources.http.envelope import value_at
from scan_pipeline.sources.http.facts import HttpCountFacts, HttpFacts, IdentityFacts, PageSize
from scan_pipeline.sources.http.held_credentials import HeldCredentials
from scan_pipeline.sources.http.request import Added
from scan_pipeline.sources.http.responses import BodyMatch, ResponseClass
from scan_pipeline.sources.http.source import HttpSource, Received
from scan_pipeline.sources.http.transport import Call
from scan_pipeline.sources.kubernetes_access import ClusterAccess
from scan_pipeline.sources.surroundings import Surroundings

PARTIAL: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

REVIEW: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
"""Tells who the server takes us for; since Kubernetes 1.28, and every user may ask by default."""

NEXT: Final = NextFacts(
    at=("metadata", "continue"),
    send_as="continue",
    ends_when=(EndSignal(word="empty_string"), EndSignal(word="absent")),  # pyright: ignore[reportCallIssue]
)


@record
class ResourceFacts:
    """What is listed, as `kubectl api-resources` shows it.

    Attributes:
        group: API group; empty for the core group (pods, services).
        version: e.g. `v1`.
        plural: name in paths, e.g. `pods`.
        kind: kind of one object, e.g. `Pod`; that of a list is the same with `List` behind it.
    """

    group: Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$")] = ""
    version: Annotated[str, Field(pattern=r"^v[0-9]+((alpha|beta)[0-9]+)?$")]
    plural: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]

    @property
    def api_version(self) -> str:
        """Return group and version as objects name them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None) -> str:
        """Return the path of the list."""
        root = "/apis" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}/{self.api_version}{inside}/{self.plural}"


class KubernetesList(HttpSource):
    """Asks for chunks.

    Args:
        resource: what is listed.
        access: how the cluster is reached.
        surroundings: the world around it.
        namespace: where; None for everywhere.
        selectors: label and field selector, by the name of their parameter.
        metadata_only: whether objects come as their metadata alone.
        limit: objects of one chunk.
        user: the only user that may be walked as.
    """

    def __init__(
        self,
        resource: ResourceFacts,
        access: ClusterAccess,
        surroundings: Surroundings,
        *,
        namespace: str | None,
        selectors: Mapping[str, str],
        metadata_only: bool,
        limit: int,
        user: str | None,
    ) -> None:
        api_version, kind = resource.api_version, resource.kind
        if metadata_only:
            api_version, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
        self._api_version, self._expected_user, self._limit = api_version, user, limit
        self._access = access
        facts = HttpFacts(
            protocol="kubernetes",
            url=f"{access.server}{resource.path(namespace)}",
            params=selectors,
            headers={"accept": PARTIAL if metadata_only else "application/json"},
            records_at=("items",),
            page_size=PageSize(send_as="limit", value=limit),
            count=HttpCountFacts(
                at=("metadata", "remainingItemCount"), means="remaining", exactness="estimate"
            ),
            snapshot=SnapshotFacts(
                at=("metadata", "resourceVersion"),
                send_as="resourceVersion",
                travels_in="continuation",
            ),
            success=BodyMatch(at=("kind",), equals=f"{kind}List"),
            errors_at=(),
            responses=(ResponseClass(status=401, means="refresh"),),
            identity=IdentityFacts(
                url=f"{access.server}{REVIEW}",
                body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                at=("status", "userInfo", "username"),
                expect=user,
            ),
        )
        self._facts = facts
        super().__init__(
            facts,
            surroundings,
            credentials=HeldCredentials(access.headers),
            network=access.network(),
        )

    @property
    def facts(self) -> HttpFacts:
        """Return what the list comes to over HTTP."""
        return self._facts

    def principal(self) -> bytes | None:
        """Return what the credential says of who asks; the facts here hold none."""
        return self._access.principal()

    def user(self) -> str | None:
        """Return the user that the server takes us for; None where it does not say.

        Raises:
            ProtocolError: it is another than the one expected.
        """
        try:
            return self.opening().principal
        except AccessRefusedError:
            if self._expected_user is not None:
                raise
        except ProtocolError as error:  # servers before 1.28 do not know the question
            if self._expected_user is not None or error.code != "request_rejected":
                raise
        return None

    def call(self, position: Position) -> Call:
        """Repeat the first request with its token; without one and under a pin, read that again."""
        added = list[Added]()
        if position.token is not None:
            added.append(Added(name="continue", value=position.token, place="query"))
        elif position.pin is not None:
            added.append(Added(name="resourceVersionMatch", value="Exact", place="query"))
        return self.request.call(position, continuation=added)

    def follows(self, received: Received, position: Position) -> Continuation:
        """Return the server's token, or the end: an empty one in an envelope with a version."""
        del position
        around = received.around
        if value_at(around, ("apiVersion",)) != self._api_version:
            raise ProtocolError(
                "error_envelope", f"the list is of another API version than {self._api_version}"
            )
        version = value_at(around, ("metadata", "resourceVersion"))
        if not isinstance(version, str) or not version:
            raise ProtocolError(
                "pin_not_reported",
                "the list names no metadata.resourceVersion; expected one beside its continuation",
            )
        found = continuation(around, NEXT, records=len(received.records))
        if isinstance(found, Next) and len(received.records) > self._limit:
            raise ProtocolError(
                "page_size_not_honoured",
                f"{len(received.records)} objects came beside a token; expected at most "
                f"{self._limit} (KEP-365: more than limit must not be returned with a token)",
            )
        return found
