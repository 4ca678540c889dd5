"""What an error of AWS means for a walk.

Codes come from botocore's own tables (botocore/retries/standard.py, 1.44.8: what is throttled and
what passes) and from the common errors of the services (docs.aws.amazon.com/AmazonS3/latest/API/
ErrorResponses, /IAM/latest/APIReference/CommonErrors, /amazondynamodb/latest/developerguide/
Programming.Errors; codes as known, the pages were not opened). A scan file may say otherwise.

Everything but the token is equal on every request of a walk. So a service that calls a parameter
invalid, and took the request that had no token, means the token: it is gone, or never was one.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    DestinationRefusedError,
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    TransientSourceError,
)
from scan_pipeline.core.value import record
from scan_pipeline.sources.amazon.facts import AwsSource
from scan_pipeline.sources.http.responses import MAX_DECLARED_WAIT, declared_wait

Means: TypeAlias = Literal[
    "wait", "retry", "refused", "expired", "consumed", "window", "rejected", "elsewhere"
]

WAIT: Final = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
    }
)
PASSES: Final = frozenset(
    {
        "RequestTimeout",
        "RequestTimeoutException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
REFUSED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AllAccessDisabled",
        "AuthFailure",
        "AuthorizationError",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
"""Codes about who asks; `ExpiredToken` and `InvalidToken` are of the session, not of the walk."""

EXPIRED: Final = frozenset(
    {
        "ExpiredIteratorException",
        "ExpiredNextToken",
        "ExpiredNextTokenException",
        "InvalidMarker",
        "InvalidNextToken",
        "InvalidNextTokenException",
        "InvalidPaginationToken",
        "InvalidPaginationTokenException",
        "PaginationTokenExpired",
    }
)
INVALID: Final = frozenset(
    {
        "InvalidArgument",
        "InvalidInput",
        "InvalidInputException",
        "InvalidParameter",
        "InvalidParameterException",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidRequest",
        "InvalidRequestException",
        "ValidationError",
        "ValidationException",
    }
)
"""Codes that mean the token where the request was taken without one."""

ELSEWHERE: Final = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "TemporaryRedirect",
    }
)

_BY_CODE: Final[Mapping[Means, frozenset[str]]] = {
    "wait": WAIT,
    "retry": PASSES,
    "refused": REFUSED,
    "expired": EXPIRED,
    "elsewhere": ELSEWHERE,
}


_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,79}")


@record
class AwsError:
    """An answer that is an error: its status, code, and the wait it asks for, in seconds."""

    status: int
    code: str
    wait: float | None = None


@record
class Understood:
    """One word for the event, and what the error comes to."""

    reason: str
    error: ScanPipelineError


def understand(error: AwsError, *, facts: AwsSource, with_token: bool) -> Understood:
    """Say what an error answer means; its message is never told, since it may quote a token.

    Args:
        error: the answer.
        facts: what the scan file declares.
        with_token: whether the request named a continuation.
    """
    means = _meaning(error, facts, with_token=with_token)
    told = f"{facts.tool} answered {error.status} {error.code}".removesuffix(f" {error.status}")

    def is_(reason: str, comes_to: ScanPipelineError) -> Understood:
        return Understood(reason=reason, error=comes_to)

    match means:
        case "retry" if with_token and facts.continuation == "single_use":
            told = f"{told}, and the continuation it was asked with works only once"
            return is_("server_error", ContinuationConsumedError(told))
        case "wait" | "retry":
            reason = "wait" if means == "wait" else "server_error"
            if error.wait is None or error.wait <= MAX_DECLARED_WAIT:
                return is_(reason, TransientSourceError(reason, told, wait=error.wait))
            told = f"{told} and asks for a wait of {error.wait:.0f} s; expected at most "
            told += f"{MAX_DECLARED_WAIT:.0f} s. Begin a new generation after that time"
            return is_(reason, SourceUnavailableError(told))
        case "refused":
            told = f"{told}; expected rights to read. Check the credentials the scan file names"
            return is_("access_refused", AccessRefusedError(told))
        case "expired":
            told = f"{told}: the continuation is gone; a new generation must begin"
            return is_("expired", SnapshotExpiredError(told))
        case "consumed":
            return is_("consumed", ContinuationConsumedError(f"{told}: the continuation is spent"))
        case "window":
            told = f"{told}: it shows no more results of this query; expected its end"
            return is_("window", SourceWindowError(told))
        case "elsewhere":
            told = f"{told}: what is asked for lies in another region; expected region to name it"
            return is_("destination_refused", DestinationRefusedError("destination_refused", told))
        case "rejected":
            told = f"{told}; expected a page. Check operation, params and region"
            return is_("rejected", ProtocolError("request_rejected", told))


def error_in(parsed: Mapping[str, Any], headers: Mapping[str, str], *, now: datetime) -> AwsError:
    """Read an error answer as botocore parsed it.

    Args:
        parsed: the answer.
        headers: its headers.
        now: the time, UTC.
    """
    status = int(parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(parsed.get("Error", {}).get("Code", ""))
    known = code.rpartition("#")[2].partition(":")[0]  # as in `com.amazonaws.x#Code:http://...`
    return AwsError(
        status=status,
        code=known if _CODE.fullmatch(known) else str(status),
        wait=declared_wait({n.lower(): v for n, v in headers.items()}, None, now),
    )


def _meaning(error: AwsError, facts: AwsSource, *, with_token: bool) -> Means:
    for each in facts.errors:
        if each.code == error.code:
            return each.means
    for means, codes in _BY_CODE.items():
        if error.code in codes:
            return means
    if error.code in INVALID or error.code.startswith(("InvalidParameter.", "InvalidNextToken")):
        return "expired" if with_token else "rejected"
    match error.status:
        case 401 | 403:
            return "refused"
        case 429 | 503:
            return "wait"
        case 408 | 500 | 502 | 504:
            return "retry"
        case status if 300 <= status < 400:
            return "elsewhere"
        case _:
            return "rejected"
