"""The `kubernetes` protocol: one list of the Kubernetes API, in chunks of one resource version.

From kubernetes.io/docs/reference/using-api/api-concepts ("Retrieving large results sets in chunks",
"Resource versions", "410 Gone responses"), from ListMeta and ListOptions of the API reference, and
from KEP-365 and KEP-2523; all read 2026-11-30:

- A list names its `resourceVersion`. It is the same in every chunk, which shows one consistent
  snapshot: what is created, changed or deleted later does not show. Versions are opaque and are
  compared for equality alone.
- `continue` carries that version; `resourceVersion` and `resourceVersionMatch` beside it are
  refused with 400 and 422. With `limit` and without `continue`, `resourceVersionMatch=Exact` reads
  one version again, or answers 410 once it is compacted (after 5 minutes by default).
- An empty or absent `continue` beside a `limit` says that nothing is left, and the chunks together
  are what one list without a limit would be: that makes the end a denominator. A chunk may hold
  fewer than `limit`, none, or all there are where a server does not support it; more than `limit`
  beside a token it must not.
- A 410 may offer a token that goes on at the newest version. It leads to an inconsistent list and
  is never taken: error bodies are not read for continuations.
- `remainingItemCount` is meant for estimates, is left out under selectors and at the end, and
  clients should not rely on it.
- A user may list a resource as a whole or not at all; rights never narrow a list in silence.
"""

import importlib
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from scan_pipeline.core.errors import ConfigurationError, ContractError, ProtocolError
from scan_pipeline.core.page import Opening, Page, Position
from scan_pipeline.core.receipt import AdapterRevision
from scan_pipeline.core.source_facts import CountFacts, SnapshotFacts, SourceFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import Basis
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.envelope import split_records
from scan_pipeline.sources.kubernetes_access import ClusterAccess, DirectAccess
from scan_pipeline.sources.kubernetes_list import KubernetesList, ResourceFacts
from scan_pipeline.sources.protocols import Protocol
from scan_pipeline.sources.source import RefusedCallback, Source
from scan_pipeline.sources.surroundings import Surroundings

REVISION = "kubernetes/1"

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A DNS label (RFC 1123), as namespaces are named; nothing that could leave its place in a path."""


@record
class KubernetesSource(SourceFacts):
    """The facts of one list of a cluster.

    Attributes:
        access: where server and credentials come from: a kubeconfig, the pod we run in, or `url`
            and `auth` of this file.
        context: context of the kubeconfig. It must be named: the current one changes unseen.
        kubeconfig: its path; None for where kubectl looks, `KUBECONFIG` or `~/.kube/config`.
        url: the API server; beside a kubeconfig, the one that it must lead to.
        auth: how to prove who we are, for `access: direct` alone.
        resource: what is listed.
        namespace: where; None for all namespaces, or for resources that have none.
        label_selector: as kubectl takes it, sent as it is.
        field_selector: likewise.
        metadata_only: ask for each object's metadata and nothing else (PartialObjectMetadata).
        limit: objects of one chunk; the server may send fewer, or all.
        user: the only user that this scan may be walked as.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("limit", "auth", "kubeconfig")
    QUERY: ClassVar[tuple[str, ...]] = (
        "url",
        "context",
        "resource",
        "namespace",
        "label_selector",
        "field_selector",
        "metadata_only",
    )

    protocol: Literal["kubernetes"]
    access: Literal["kubeconfig", "in_cluster", "direct"] = "kubeconfig"
    context: str | None = None
    kubeconfig: str | None = None
    url: str | None = None
    auth: Auth | None = None
    resource: ResourceFacts
    namespace: Name | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    metadata_only: bool = False
    limit: PositiveInt = 500
    user: str | None = None
    count: CountFacts | None = CountFacts(
        at=("metadata", "remainingItemCount"),
        means="remaining",
        exactness="estimate",
        basis="provider_documented",
    )
    snapshot: SnapshotFacts | None = SnapshotFacts(
        at=("metadata", "resourceVersion"),
        send_as="resourceVersion",
        travels_in="continuation",
        basis="provider_documented",
    )
    continuation_basis: Basis | None = "provider_documented"
    end_signal_basis: Basis | None = "provider_documented"

    def __post_init__(self) -> None:
        own = {"context": self.context, "kubeconfig": self.kubeconfig, "url": self.url}
        given = {name for name, value in {**own, "auth": self.auth}.items() if value is not None}
        needed, allowed = _ACCESS[self.access]
        if not needed <= given or given - allowed:
            raise ContractError(
                f"access: {self.access} needs {sorted(needed) or 'nothing'} and takes "
                f"{sorted(allowed)}; found {sorted(given) or 'nothing'}"
            )
        if self.url is not None:
            origin_of(self.url)
        kind = type(self)
        documented = {name: kind.__dataclass_fields__[name].default for name in _DOCUMENTED}
        changed = [name for name, value in documented.items() if getattr(self, name) != value]
        if changed:
            raise ContractError(
                f"found {', '.join(changed)} of your own; expected none: Kubernetes documents them"
            )

    @property
    def tool(self) -> str:
        """Return what is listed, and of which cluster."""
        cluster = self.url or (f"context {self.context}" if self.context else "the pod's cluster")
        return f"GET {self.resource.path(self.namespace)} of {cluster}"


_ACCESS: Final = {
    "kubeconfig": ({"context"}, {"context", "kubeconfig", "url"}),
    "in_cluster": (set[str](), {"url"}),
    "direct": ({"url"}, {"url", "auth"}),
}
"""By access, the fields that must be given, and those that may be."""

_DOCUMENTED: Final = (
    "count",
    "snapshot",
    "high_water_mark",
    "continuation",
    "result_window",
    "continuation_basis",
    "end_signal_basis",
)


class Kubernetes(Source):
    """Walks a `KubernetesSource`; a position's token is the server's own `continue`.

    A credential may be renewed in mid-walk, and then must stand for the same user: who we are is
    asked again before a chunk counts that came by it.
    """

    def __init__(self, facts: KubernetesSource, surroundings: Surroundings) -> None:
        self._facts, self._surroundings = facts, surroundings
        self.adapter = AdapterRevision(name="kubernetes", revision=REVISION)
        self._user: str | None = None
        self._changes = 0

    @property
    def facts(self) -> KubernetesSource:
        """Return what is declared of the source."""
        return self._facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._list.waited if "_list" in self.__dict__ else 0.0

    @cached_property
    def _access(self) -> ClusterAccess:
        """How the cluster is reached, read for the first request alone."""
        return _access(self._facts, self._surroundings)

    @cached_property
    def _list(self) -> KubernetesList:
        """The list, made for the first request: later stages open sources and ask nothing."""
        facts = self._facts
        return KubernetesList(
            facts.resource,
            self._access,
            self._surroundings,
            namespace=facts.namespace,
            selectors={
                name: value
                for name, value in (
                    ("labelSelector", facts.label_selector),
                    ("fieldSelector", facts.field_selector),
                )
                if value is not None
            },
            metadata_only=facts.metadata_only,
            limit=facts.limit,
            user=facts.user,
        )

    def principal(self) -> bytes | None:
        """Return what the credential says of who asks."""
        return self._access.principal()

    def allow(self, limit: float | None, *, used: float) -> None:
        """Bound the requests; see `Source.allow`."""
        self._list.allow(limit, used=used)

    def opening(self) -> Opening:
        """Return who the server says we are, where it does."""
        self._user = self._list.user()
        self._changes = self._list.credential_changes
        return Opening(principal=self._user)

    def closing(self, position: Position) -> Opening:
        """Return who the server says we are now."""
        del position
        return Opening(principal=self._list.user())

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one chunk; see `Source.fetch`."""
        page = self._list.fetch(position, refused=refused)
        if self._list.credential_changes != self._changes:
            self._check_user()
        return page

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the objects of an admitted body."""
        return split_records(body, records_at=("items",))

    def close(self) -> None:
        """Close the connections."""
        if "_list" in self.__dict__:
            self._list.close()

    def _check_user(self) -> None:
        user = self._list.user()
        self._changes = self._list.credential_changes
        if user != self._user:
            raise ProtocolError(
                "principal_changed",
                f"the renewed credential is of {user}; expected {self._user}, whom the walk began "
                "as",
            )


def _access(facts: KubernetesSource, surroundings: Surroundings) -> ClusterAccess:
    environ = surroundings.environ
    if facts.access == "direct":
        return DirectAccess(facts.url or "", auth=facts.auth, environ=environ)
    try:
        loader = importlib.import_module("scan_pipeline.sources.kubernetes_config")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a kubeconfig is read by the official client, and {error.name} is not installed; "
            "expected pip install 'scan-pipeline[kubernetes]'"
        ) from error
    loaded: ClusterAccess = loader.LoadedAccess(
        context=facts.context,
        kubeconfig=facts.kubeconfig,
        expected=facts.url,
        environ=environ,
    )
    return loaded


PROTOCOL: Final = Protocol(facts=KubernetesSource, open=Kubernetes)
