"""Requests of botocore over the transport that a walk was given instead of the network."""

from typing import Any

import httpx2
from botocore import exceptions as of_botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse


class _Raw:
    """The body of an answer that came over an inner transport, as botocore reads it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> list[bytes]:
        return [self._body]


def sent_over(inner: httpx2.BaseTransport, request: AWSPreparedRequest) -> AWSResponse:
    """Send a request over the transport that the walk was given instead of the network."""
    names = {str(name): value for name, value in request.headers.items()}
    headers = {n: v.decode() if isinstance(v, bytes) else str(v) for n, v in names.items()}
    content = request.body if isinstance(request.body, bytes | str) else b""
    try:
        answer = inner.handle_request(
            httpx2.Request(request.method, request.url, headers=headers, content=content)
        )
        body = answer.read()
    except httpx2.ConnectError as error:
        raise of_botocore.EndpointConnectionError(endpoint_url=request.url) from error
    except httpx2.HTTPError as error:
        raise of_botocore.HTTPClientError(error=error) from error
    return AWSResponse(request.url, answer.status_code, dict(answer.headers), _Raw(body))
