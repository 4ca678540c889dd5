"""The official client's transport below ours: which node is asked, and how TLS is checked.

`elastic_transport` 9.4 is what elasticsearch-py stands on, and knows no product: it serves
OpenSearch alike. It keeps the pool of nodes and pins certificates. What the evidence rests on stays
with the transport above: the body as sent, retries, refusals, credentials, no redirects. So its own
retries are off, it parses nothing, and no content coding is asked for, since it undoes one without
a check of its end. It knows no proxies. (elastic-transport-python.readthedocs.io/en/latest and the
installed source, read 2026-11-30)
"""

from typing import Any, Final

import httpx2
from elastic_transport import (
    ConnectionTimeout,
    NodeConfig,
    Serializer,
    SerializerCollection,
    TlsError,
    Transport,
    TransportError,
)
from elastic_transport.client_utils import url_to_node_config
from urllib3.exceptions import NewConnectionError

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.sources.elastic.facts import ClusterFacts

_NOT_OURS: Final = frozenset({"host", "content-length", "connection", "accept-encoding"})
"""Headers of the request above that belong to one connection, or ask for what is not wanted."""


class Nodes(httpx2.BaseTransport):
    """Sends requests for one origin to the nodes of its cluster.

    Args:
        url: the cluster's address; the first node. Its path stands in every request already.
        cluster: the other nodes, and how TLS is checked.
    """

    def __init__(self, url: str, cluster: ClusterFacts) -> None:
        configs = [_config(each, cluster) for each in (url, *cluster.nodes)]
        self._transport = Transport(
            configs,
            serializers={"application/json": _AsSent()},
            max_retries=0,
            retry_on_status=(),
            randomize_nodes_in_pool=False,
            meta_header=False,
        )
        self._transport.serializers = _NothingParsed()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask one node.

        Raises:
            httpx2.ConnectError: no connection was made, so that nothing was sent.
            httpx2.ReadError, httpx2.ReadTimeout: the answer was lost.
        """
        headers = {name: value for name, value in request.headers.items() if name not in _NOT_OURS}
        try:
            found = self._transport.perform_request(
                request.method,
                request.url.raw_path.decode("ascii"),
                body=request.read() or None,
                headers=headers,
                request_timeout=request.extensions.get("timeout", {}).get("read"),
            )
        except ConnectionTimeout as error:
            raise httpx2.ReadTimeout("no answer in time", request=request) from error
        except TransportError as error:
            unsent = isinstance(error, TlsError) or isinstance(error.__cause__, NewConnectionError)
            kind = httpx2.ConnectError if unsent else httpx2.ReadError
            raise kind(type(error).__name__, request=request) from error
        told = [(name, value) for name, value in found.meta.headers.items()]
        return httpx2.Response(found.meta.status, headers=told, content=found.body, request=request)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class _AsSent(Serializer):
    """Hands bytes through in both directions."""

    def dumps(self, data: Any) -> bytes:
        return data

    def loads(self, data: bytes) -> Any:
        return data


class _NothingParsed(SerializerCollection):
    """Takes every content type for bytes: a proxy's page of HTML is the reader's to refuse."""

    def __init__(self) -> None:
        super().__init__({"application/json": _AsSent()})

    def get_serializer(self, mimetype: str | None) -> Serializer:
        del mimetype
        return self.default_serializer


def _config(url: str, cluster: ClusterFacts) -> NodeConfig:
    try:
        config = url_to_node_config(url, use_default_ports_for_scheme=True)
    except ValueError as error:
        raise ConfigurationError(f"{url} is no address of a node: {error}") from error
    changes: dict[str, Any] = {"path_prefix": ""}
    if config.scheme == "https":
        changes |= {"ca_certs": cluster.ca_certs, "ssl_assert_fingerprint": cluster.fingerprint}
    return config.replace(**changes)
