"""What an answer without success means: HTTP's own meaning, or what the source documents.

`Retry-After` is honoured in both its forms (RFC 9110, section 10.2.3, read 2026-11-30), and so is
an epoch second in a header the source names. A 401 whose challenge says `invalid_token` speaks of a
token that has ended (RFC 6750, section 3.1, read 2026-11-30): another may be asked for.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal

from scan_pipeline.core.errors import (
    AccessRefusedError,
    ContinuationConsumedError,
    DestinationRefusedError,
    ProtocolError,
    ScanPipelineError,
    SnapshotExpiredError,
    SourceUnavailableError,
    SourceWindowError,
    StaleCredentialsError,
    TransientSourceError,
)
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.addresses import shown_link
from scan_pipeline.sources.http.envelope import parse_body, value_at

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z_]{1,39}")

_HIT: Final = re.compile(r";\s*hit\s*(?:=\s*\?1\s*)?(?:[;,]|$)")

_INVALID_TOKEN: Final = re.compile(r'\berror\s*=\s*"?invalid_token\b', re.IGNORECASE)

MAX_DECLARED_WAIT: Final = 3600.0
"""Longest wait a source may ask of us, in seconds; a longer one fails rather than shortens."""

Means = Literal["wait", "retry", "refused", "expired", "consumed", "window"]
HttpMeans = Means | Literal["refresh"]


@record
class BodyMatch:
    """A value in an error body that tells one refusal from another.

    Attributes:
        at: where it stands.
        equals: the value.
    """

    at: FieldPath
    equals: str | int | bool


@record
class ResponseClass:
    """What a status means at this source, where it differs from HTTP's own meaning.

    Attributes:
        status: HTTP status; one that says success is looked up where the answer is no page.
        header: headers that must have these values too.
        header_present: headers that must be there too, whatever their value.
        body: value in the error body that must be there too.
        means: `wait` and `retry` send again, `refresh` does so once with new credentials, `refused`
            ends for lack of rights, `expired` ends the generation, `consumed` says a single-use
            continuation is spent, `window` says that the source shows no more of this query's
            results.
        wait_until: header with the epoch second until which to wait, e.g. `x-ratelimit-reset`.
    """

    status: int
    header: Mapping[str, str] = field(default_factory=dict[str, str])
    header_present: tuple[str, ...] = ()
    body: BodyMatch | None = None
    means: HttpMeans
    wait_until: str | None = None


@record
class Answer:
    """One complete HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def from_cache(self) -> bool:
        """Whether it says that it was kept on the way and not made by the source for us.

        RFC 9111, section 5.1, `Age`, and RFC 9211, section 2.1, `Cache-Status: ...; hit` (both
        read 2026-11-30). Some caches write an age of 0 on what they have just fetched.
        """
        return kept_on_the_way(self.headers)


def kept_on_the_way(headers: Mapping[str, str]) -> bool:
    """Say whether an answer's headers tell of a cache; see `Answer.from_cache`.

    Args:
        headers: by name in lower case, or in any case where the mapping knows no case.
    """
    age = headers.get("age", "0").strip()
    return age != "0" or bool(_HIT.search(headers.get("cache-status", "")))


@record
class RefusedAnswer:
    """An answer without success, understood: one word for the event, and the error it comes to."""

    reason: str
    error: ScanPipelineError


def understand(
    answer: Answer,
    *,
    origin: str,
    responses: tuple[ResponseClass, ...],
    repeatable: bool,
    now: datetime,
) -> RefusedAnswer:
    """Say what an answer without success means.

    Args:
        answer: the answer.
        origin: where it came from, for messages.
        responses: what statuses mean at this source, looked up first.
        repeatable: whether the request may be sent again once bytes have left.
        now: the time, UTC.
    """
    status, means, until = answer.status, _http_meaning(answer), None
    declared = declared_class(answer, responses)
    if declared is not None:
        means, until = declared.means, declared.wait_until
    where = f"{origin} answered {status}"

    def is_(reason: str, error: ScanPipelineError) -> RefusedAnswer:
        return RefusedAnswer(reason=reason, error=error)

    match means:
        case "retry" if not repeatable:
            told = f"{where}, and the continuation it was asked with works only once"
            return is_("server_error", ContinuationConsumedError(told))
        case "wait" | "retry":
            reason = "wait" if means == "wait" else "server_error"
            wait = declared_wait(answer.headers, until, now)
            if wait is None or wait <= MAX_DECLARED_WAIT:
                return is_(reason, TransientSourceError(reason, where, wait=wait))
            asked = f"{where} and asks for a wait of {wait:.0f} s; expected at most"
            told = f"{asked} {MAX_DECLARED_WAIT:.0f} s. Begin a new generation after that time"
            return is_(reason, SourceUnavailableError(told))
        case "refresh":
            told = f"{where}: our credentials have worn out; expected newer ones to be had"
            return is_("credentials_worn_out", StaleCredentialsError(told))
        case "refused":
            told = f"{where}; expected rights to read. Check the credentials the scan file names"
            return is_("access_refused", AccessRefusedError(told))
        case "expired":
            told = f"{where}: the version or continuation is gone; a new generation must begin"
            return is_("expired", SnapshotExpiredError(told))
        case "consumed":
            return is_("consumed", ContinuationConsumedError(f"{where}: the continuation is spent"))
        case "window":
            told = f"{where}: it shows no more results of this query; expected its end"
            return is_("window", SourceWindowError(told))
        case "redirect":
            target = shown_link(answer.headers.get("location", ""))
            told = f"{where} and points to {target}; redirects are not followed. Name the right"
            return is_(
                "redirect",
                DestinationRefusedError("destination_refused", f"{told} address in the scan file"),
            )
        case "success":
            told = f"{where}; expected 200, a page whole"
            return is_("not_a_page", ProtocolError("not_a_page", told))
        case _:
            said = _code_in(answer)
            told = f"{where}{f' ({said})' if said else ''} to a request that should be right"
            return is_("rejected", ProtocolError("request_rejected", told))


def _code_in(answer: Answer) -> str | None:
    """Return the machine code of an error body, where it has one of the usual shape.

    A short word and nothing else: an error body may repeat what was sent, secrets included.
    """
    try:
        around = parse_body(answer.body)
    except ProtocolError:
        return None
    for path in (("error", "code"), ("error", "type"), ("code",), ("error",)):
        code = value_at(around, path)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    return None


def declared_class(answer: Answer, responses: tuple[ResponseClass, ...]) -> ResponseClass | None:
    """Return the first declared class that an answer falls into, None where there is none."""
    return next((each for each in responses if _matches(each, answer)), None)


def _http_meaning(answer: Answer) -> str:
    status = answer.status
    if 200 <= status < 300:
        return "success"
    if status == 401 and _INVALID_TOKEN.search(answer.headers.get("www-authenticate", "")):
        return "refresh"
    if 300 <= status < 400:
        return "redirect"
    known = {
        401: "refused",
        403: "refused",
        407: "refused",
        408: "retry",
        410: "expired",
        425: "retry",
        429: "wait",
    }
    return known.get(status, "retry" if status in (500, 502, 503, 504) else "rejected")


def _matches(each: ResponseClass, answer: Answer) -> bool:
    if each.status != answer.status:
        return False
    if any(answer.headers.get(name) != value for name, value in each.header.items()):
        return False
    if any(name not in answer.headers for name in each.header_present):
        return False
    if each.body is None:
        return True
    try:
        return value_at(parse_body(answer.body), each.body.at) == each.body.equals
    except ProtocolError:
        return False


def declared_wait(headers: Mapping[str, str], until: str | None, now: datetime) -> float | None:
    """Return the wait a source asks for, in seconds, None where it names none."""
    if until is not None and (epoch := headers.get(until)):
        try:
            return max(0.0, float(epoch) - now.timestamp())
        except ValueError:
            return None
    after = headers.get("retry-after")
    if after is None:
        return None
    if after.isascii() and after.strip().isdigit():
        return float(after)
    try:
        when = parsedate_to_datetime(after)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())
