"""What can go wrong with the answer: its bytes, and the connection they travel on."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from scan_pipeline.core.value import record
from scan_pipeline.simulator.page_fault import PageFault

Seconds: TypeAlias = Annotated[float, Field(ge=0)]


# --------------------------------------------------------------------------------------- body


@record
class BodyTruncated(PageFault):
    """The body stops half way, or after so many bytes, and the length says so: a cut document."""

    kind: Literal["body_truncated"] = "body_truncated"
    keep_bytes: int | None = None


@record
class ErrorEnvelope(PageFault):
    """200, and an error where the page should be."""

    kind: Literal["error_envelope"] = "error_envelope"


@record
class LoginPage(PageFault):
    """200, and a login form in HTML."""

    kind: Literal["login_page"] = "login_page"


@record
class MemberDoubled(PageFault):
    """A member of the envelope comes twice; parsers keep the last, which is empty."""

    kind: Literal["member_doubled"] = "member_doubled"
    member: Literal["items", "next_cursor"] = "items"


@record
class InvalidUtf8(PageFault):
    """One byte of the body is not UTF-8."""

    kind: Literal["invalid_utf8"] = "invalid_utf8"


@record
class ContentTypeWrong(PageFault):
    """The body is right and its content type is not."""

    kind: Literal["content_type_wrong"] = "content_type_wrong"
    content_type: str = "text/plain; charset=utf-8"


# --------------------------------------------------------------------------------------- wire


@record
class Delayed(PageFault):
    """The first byte comes so many seconds after the work was done."""

    kind: Literal["delayed"] = "delayed"
    seconds: Seconds


@record
class ConnectionCut(PageFault):
    """The connection breaks half way through the body, or after so many bytes of it."""

    kind: Literal["connection_cut"] = "connection_cut"
    after_bytes: int | None = None


@record
class ResponseLost(PageFault):
    """The work is done, a single-use cursor is consumed, and no byte of the answer arrives."""

    kind: Literal["response_lost"] = "response_lost"


@record
class Failing(PageFault):
    """The request is refused before any work; with `last_attempt` it recovers.

    Attributes:
        status: HTTP status code.
        code: word in the error envelope; None for the status's usual one.
        retry_after_s: seconds of the `Retry-After` header; None for no such header.
        retry_after_form: as seconds or as an HTTP date by the registry's clock.
    """

    kind: Literal["failing"] = "failing"
    status: Annotated[int, Field(ge=400, le=599)] = 503
    code: str | None = None
    retry_after_s: Annotated[int, Field(ge=0)] | None = None
    retry_after_form: Literal["seconds", "http_date"] = "seconds"
