"""What a simulated cluster answers: chunks, tokens, `Status` objects, and who asks."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from scan_pipeline.core.value import record
from scan_pipeline.simulator import kubernetes_faults as faulty
from scan_pipeline.simulator.answers import Answer, compact
from scan_pipeline.simulator.kubernetes_objects import FIRST_VERSION, CustomerObject

F = TypeVar("F")

NEWEST: Final = -1
"""The version in a weaker token: whatever is newest when it is used."""

_TOKEN_FORM: Final = "meta.k8s.io/v1"  # noqa: S105 - no secret: how the token is written


class StatusError(Exception):
    """The server does not do what was asked.

    Attributes:
        code: HTTP status.
        reason: its machine-readable reason.
        token: continuation that the answer offers, None for none.
        wait: seconds of `Retry-After`, None for none.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        token: str | None = None,
        wait: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.token, self.wait = code, reason, token, wait


@record
class Chunk:
    """What a list request comes to before anything is done to it."""

    objects: tuple[CustomerObject, ...]
    token: str | None
    remaining: int | None


def list_answer(chunk: Chunk, shown: int, struck: list[faulty.Fault], *, partial: bool) -> Answer:
    """Write a list, with what strikes it.

    Args:
        chunk: what it holds.
        shown: index of the version it names.
        struck: the faults of this request.
        partial: whether objects come as their metadata alone.
    """
    remaining = chunk.remaining
    if (wrong := first_of_kind(struck, faulty.RemainingWrong)) is not None:
        remaining = (remaining or 0) + wrong.by
    metadata: dict[str, Any] = {"resourceVersion": str(FIRST_VERSION + shown)}
    if chunk.token is not None and first_of_kind(struck, faulty.EndedEarly) is None:
        metadata = {"continue": chunk.token, **metadata}
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    kind = first_of_kind(struck, faulty.KindWrong) or faulty.KindWrong(request=1)
    around: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind}
    if partial:
        around = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList"}
    missing = {each.member for each in struck if isinstance(each, faulty.MemberMissing)}
    if "metadata" not in missing:
        around["metadata"] = {k: v for k, v in metadata.items() if k not in missing}
    items = b",".join(each.partial if partial else each.raw for each in chunk.objects)
    return Answer(status=200, body=compact(around)[:-1] + b',"items":[' + items + b"]}\n")


def first_of_kind(struck: Iterable[object], kind: type[F]) -> F | None:
    """Return the first fault of a kind."""
    return next((each for each in struck if isinstance(each, kind)), None)


def continue_token(version: int, start: str) -> str:
    """Write a token as etcd3 storage does; clients must not look into it."""
    content = compact({"v": _TOKEN_FORM, "rv": version, "start": start})
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def opened_token(token: str) -> tuple[int, str]:
    """Read a token back.

    Raises:
        StatusError: 400; it is none.
    """
    try:
        content = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = content["rv"], content["start"]
        if content["v"] != _TOKEN_FORM or not version or not start:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise StatusError(400, "BadRequest", "continue key is not valid") from None
    return version, start


def review(user: str) -> Answer:
    """Answer who asks."""
    told = {"username": user, "groups": ["system:authenticated"]}
    content = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "metadata": {"creationTimestamp": None},
        "status": {"userInfo": told},
    }
    return Answer(status=201, body=compact(content))


def status_answer(error: StatusError) -> Answer:
    """Answer with a `Status`."""
    metadata = {} if error.token is None else {"continue": error.token}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": "Failure",
        "message": str(error),
        "reason": error.reason,
        "code": error.code,
    }
    headers = {} if error.wait is None else {"retry-after": str(error.wait)}
    return Answer(status=error.code, body=compact(body), headers=headers)
