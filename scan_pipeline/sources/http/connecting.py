"""Why no connection came about: a passing failure, or one that no other attempt will mend."""

import re
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx2

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ScanPipelineError,
    SourceUnavailableError,
    TransientSourceError,
)


def not_connected(error: httpx2.HTTPError, *, origin: str) -> ScanPipelineError | None:
    """Say what it comes to that a request never left; None where it may have.

    Args:
        error: what happened.
        origin: where the request was to go, for messages.
    """
    if isinstance(error, httpx2.ProxyError):
        return _proxy_refused(str(error), origin)
    if not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return None
    told = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if isinstance(told, ssl.SSLCertVerificationError):
        return SourceUnavailableError(
            f"the certificate of {origin} is not trusted ({told.verify_message}); expected one "
            "that the system trusts, or name its CA under network.ca_bundle"
        )
    why = type(error).__name__ if told is None or not told.reason else f"TLS: {told.reason}"
    return TransientSourceError("not_connected", f"no connection to {origin}: {why}")


def _proxy_refused(told: str, origin: str) -> ScanPipelineError:
    status = re.match(r"[1-5][0-9]{2}\b", told)
    said = f"answered {status[0]}" if status else "refused"
    where = f"no connection to {origin}: the proxy {said}"
    if status and int(status[0]) == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return AccessRefusedError(f"{where}; expected it to know us. Name network.proxy.user")
    return TransientSourceError("not_connected", where)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
