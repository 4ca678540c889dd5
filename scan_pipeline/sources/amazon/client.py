"""One botocore client for one walk: fixed region and endpoint, one send a call, every answer seen.

botocore would send again by itself, follow a bucket into another region, take its endpoint from
the surroundings and hand on an answer whose checksum is wrong once its attempts are used up. Here
each call is sent once (`total_max_attempts: 1`, botocore/config.py, 1.44.8, read 2026-11-30) and
sent again by the walk's own bounded layer; the endpoint is the scan
file's or the region's own; and a request to another host is refused before it leaves.
"""

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final
from zlib import crc32

import botocore.session
import httpx2
from botocore import UNSIGNED
from botocore import exceptions as of_botocore
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.config import Config
from botocore.parsers import ResponseParserError

from scan_pipeline.core.errors import (
    ConfigurationError,
    ContractError,
    DestinationRefusedError,
    ProtocolError,
    TransientSourceError,
)
from scan_pipeline.core.value import record
from scan_pipeline.sources.amazon import credentials
from scan_pipeline.sources.amazon.facts import AwsSource
from scan_pipeline.sources.amazon.inner import sent_over
from scan_pipeline.sources.amazon.refusals import AwsError, error_in
from scan_pipeline.sources.amazon.wire_checks import check_body
from scan_pipeline.sources.http.responses import kept_on_the_way
from scan_pipeline.sources.surroundings import Surroundings

NOT_CONNECTED: Final = (
    of_botocore.EndpointConnectionError,
    of_botocore.ConnectTimeoutError,
    of_botocore.ProxyConnectionError,
    of_botocore.SSLError,
)


@record
class Called:
    """A parsed answer that is no error.

    Attributes:
        parsed: as botocore parsed it.
        status: its HTTP status.
        body_digest: SHA-256 of its body.
        from_cache: whether it says that a cache on the way kept it.
    """

    parsed: Mapping[str, Any]
    status: int
    body_digest: bytes
    from_cache: bool


class AwsRefusedError(Exception):
    """A call was answered, and the answer is an error of the service.

    Attributes:
        error: the error.
        body_digest: SHA-256 of the answer's body.
    """

    def __init__(self, error: AwsError, body_digest: bytes) -> None:
        super().__init__(f"{error.status} {error.code}")
        self.error, self.body_digest = error, body_digest


class AwsClient:
    """Calls one service.

    Args:
        facts: what the scan file declares.
        service: the service that is called; the scan's own, or STS.
        endpoint_url: where it answers; None for the region's own endpoint.
        surroundings: the world around.
    """

    def __init__(
        self,
        facts: AwsSource,
        *,
        service: str,
        endpoint_url: str | None,
        surroundings: Surroundings,
    ) -> None:
        self._facts, self._surroundings, self._endpoint = facts, surroundings, endpoint_url
        self._status, self._digest = 0, sha256().digest()
        self._headers: Mapping[str, str] = {}
        self._origin: tuple[str, str | None, int | None] | None = None
        try:
            self.session = credentials.session_of(
                facts.auth, environ=surroundings.environ, create=self._of_sts
            )
            self._client = self._created(self.session, service, endpoint_url=endpoint_url)
        except of_botocore.UnknownServiceError as error:
            raise ContractError(
                f"found service {service!r}, which botocore {botocore.__version__} does not know; "
                "expected its name as in boto3"
            ) from error
        except credentials.MISSING as error:
            raise ConfigurationError(credentials.none_found(error)) from error
        events = self._client.meta.events
        events.register_first(f"before-sign.{self.service_id}", _past_caches)
        events.register_first(f"before-send.{self.service_id}", self._before_send)
        events.register_first(f"before-parse.{self.service_id}", self._received)

    @property
    def service_id(self) -> str:
        """Return the service's name in botocore's events."""
        return self._client.meta.service_model.service_id.hyphenize()

    @property
    def model(self) -> Any:
        """Return botocore's model of the service."""
        return self._client.meta.service_model

    @property
    def endpoint(self) -> str:
        """Return where requests go; S3 may put a bucket's name before the host."""
        return self._client.meta.endpoint_url

    @property
    def parser(self) -> str:
        """Return what parses the answers."""
        return f"botocore {botocore.__version__}"

    @property
    def operations(self) -> Mapping[str, str]:
        """Return the operations' own names, by the names boto3 gives them."""
        return self._client.meta.method_to_api_mapping

    def paginator_model(self, operation: str) -> Mapping[str, Any] | None:
        """Return botocore's paginator of an operation, by the operation's own name."""
        try:
            models = self.session.get_paginator_model(self.model.service_name)
            return models.get_paginator(operation)
        except (ValueError, of_botocore.UnknownServiceError, of_botocore.DataNotFoundError):
            return None

    def call(self, operation: str, params: Mapping[str, Any]) -> Called:
        """Send one request once and return its answer.

        Args:
            operation: as boto3 calls it.
            params: its parameters.

        Raises:
            AwsRefusedError: the answer is an error of the service.
            TransientSourceError: there was no answer, or a damaged one.
            ProtocolError: the answer is none of the service's wire protocol.
            DestinationRefusedError: the request would go elsewhere; nothing was sent there.
            ContractError: the operation does not take these parameters.
            ConfigurationError: there are no credentials.
        """
        self._status, self._digest, self._headers = 0, sha256().digest(), {}
        try:
            parsed = getattr(self._client, operation)(**params)
        except of_botocore.ClientError as error:
            refusal = error_in(error.response, self._headers, now=self._surroundings.clock())
            raise AwsRefusedError(refusal, self._digest) from None
        except of_botocore.ParamValidationError as error:
            raise ContractError(f"{self._facts.tool} does not take its params: {error}") from None
        except credentials.MISSING as error:
            raise ConfigurationError(credentials.none_found(error)) from error
        except NOT_CONNECTED as error:
            raise TransientSourceError(
                "not_connected", f"no connection to {self.endpoint}: {type(error).__name__}"
            ) from error
        except of_botocore.HTTPClientError as error:
            raise TransientSourceError(
                "connection_lost", f"the answer of {self.endpoint} was lost: {type(error).__name__}"
            ) from error
        except (
            ResponseParserError,
            of_botocore.BotoCoreError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:  # the last four are what its parsers raise on what they do not expect
            if not self._status:
                raise ContractError(
                    f"botocore does not send {self._facts.tool}: {type(error).__name__}; expected "
                    "params, region and endpoint that make a request"
                ) from error
            if self._status >= HTTPStatus.MULTIPLE_CHOICES:
                # What stands between us and the service answers in no protocol of its own: its
                # status says what it means, whatever the body.
                bare = {"ResponseMetadata": {"HTTPStatusCode": self._status}}
                refusal = error_in(bare, self._headers, now=self._surroundings.clock())
                raise AwsRefusedError(refusal, self._digest) from None
            raise ProtocolError(
                "body_unparsable",
                f"botocore cannot read the answer of {self._facts.tool}: {type(error).__name__}",
            ) from error
        if self._status != HTTPStatus.OK:  # 202 and the like say that there is no answer (RFC 9110)
            other = AwsError(status=self._status, code=str(self._status))
            raise AwsRefusedError(other, self._digest)
        return Called(
            parsed=parsed,
            status=self._status,
            body_digest=self._digest,
            from_cache=kept_on_the_way(self._headers),
        )

    def refused_with(self) -> tuple[int | None, bytes]:
        """Return status and body digest of the last answer; None where there was none."""
        return self._status or None, self._digest

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _created(self, session: botocore.session.Session, service: str, **options: Any) -> Any:
        timeout = self._surroundings.retries.timeout
        anonymous = self._facts.auth is not None and self._facts.auth.anonymous
        config = Config(
            connect_timeout=timeout,
            read_timeout=timeout,
            retries={"total_max_attempts": 1, "mode": "standard"},
            ignore_configured_endpoint_urls=True,
            signature_version=UNSIGNED if anonymous else None,
        )
        given = {"region_name": self._facts.region, **options, "config": config}
        return session.create_client(service, **given)

    def _of_sts(self, session: botocore.session.Session, service: str, **options: Any) -> Any:
        """Return the client that assumes a role, where STS is said to answer."""
        identity = self._facts.identity
        where = None if identity is None else identity.endpoint_url
        given = {**options, "endpoint_url": where or self._facts.endpoint_url}
        client = self._created(session, service, **given)
        client.meta.events.register_first("before-send.sts", self._over_inner)
        return client

    def _over_inner(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        inner = self._surroundings.inner
        return None if inner is None else sent_over(inner, request)

    def _before_send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        """Refuse a request to another host than the first one; hand others to the inner transport.

        A bucket's name may stand before the host (docs.aws.amazon.com/AmazonS3/latest/userguide/
        VirtualHosting), so that the first request says where the others go.
        """
        url = httpx2.URL(request.url)
        origin = (url.scheme, url.host, url.port)
        if self._origin is None:
            if self._endpoint is not None:
                self._check_endpoint(url)
            self._origin = origin
        if origin != self._origin:
            raise DestinationRefusedError(
                "destination_refused",
                f"the next request would go to {url.scheme}://{url.host}; expected "
                f"{self._origin[0]}://{self._origin[1]}. Name the region where the data lies",
            )
        return self._over_inner(request)

    def _check_endpoint(self, url: httpx2.URL) -> None:
        home = httpx2.URL(self._endpoint or "")
        at_home = url.host == home.host or url.host.endswith(f".{home.host}")
        if not at_home or (url.scheme, url.port) != (home.scheme, home.port):
            raise DestinationRefusedError(
                "destination_refused",
                f"a request would go to {url.scheme}://{url.host}; expected {self._endpoint}",
            )

    def _received(self, operation_model: Any, response_dict: Any, **_: Any) -> None:
        """Look at an answer as it came, before it is parsed.

        Raises:
            TransientSourceError: its checksum is wrong.
            ProtocolError: botocore would read something else in it than it says.
        """
        body, headers = response_dict["body"], response_dict["headers"]
        body = body if isinstance(body, bytes) else b""
        self._status = response_dict["status_code"]
        self._digest = sha256(body).digest()
        self._headers = {str(name).lower(): str(value) for name, value in headers.items()}
        sum_told = headers.get("x-amz-crc32")
        if sum_told is not None and str(sum_told) != str(crc32(body)):
            raise TransientSourceError(
                "connection_lost", f"an answer of {self._facts.tool} does not have its checksum"
            )
        if self._status == HTTPStatus.OK:
            check_body(
                body,
                answer=operation_model.output_shape,
                protocol=operation_model.service_model.resolved_protocol,
            )


def _past_caches(request: AWSRequest, **_: Any) -> None:
    """Ask caches on the way not to answer in the service's place (RFC 9111, section 5.2.1.4)."""
    if "Cache-Control" not in request.headers:
        request.headers["Cache-Control"] = "no-cache"
