"""What one request asks for and what one answer brings.

Adapters make these values, also ones that are not ours: what none of them may hold is refused here,
before it becomes evidence, as a broken protocol.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import Asked

BEYOND: Final = 2**63
"""Counts from here on are none: no table holds as many rows, and no receipt could say it."""


@record
class Next:
    """The source says that something follows, and how to ask for it."""

    token: str

    def __post_init__(self) -> None:
        if not _is_text(self.token):
            raise ProtocolError("continuation_invalid", "found a token that is no text")


@record
class End:
    """The source said, in a declared way, that nothing follows.

    Attributes:
        signal: how it said so.
        checkpoint: what to ask for to get the changes from here on; None where it named nothing.
    """

    signal: str
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        _check_text(self.checkpoint, "checkpoint")
        if not _is_text(self.signal) or not self.signal:
            raise ProtocolError(
                "continuation_invalid", "found an end without a signal; expected its name"
            )


Continuation: TypeAlias = Next | End
"""There is no third case: a missing field is an error, not an end."""


@record
class Position:
    """Where a walk stands: the continuation token and what holds the collection still.

    Attributes:
        token: continuation token as the source gave it; None asks for the first page.
        pin: source version to name in the request, None until one is known.
        high_water_mark: upper bound to name in the request.
        since: checkpoint at which a round of changes begins; None where everything is asked for.
    """

    token: str | None = None
    pin: str | None = None
    high_water_mark: str | None = None
    since: str | None = None


@record
class Reported:
    """What the source said of the collection beside the records of one page."""

    total: int | None = None
    remaining: int | None = None
    page: int | None = None
    pin: str | None = None
    pin_is_number: bool = False
    """Whether the source named the version by a number: 1 and "1" are two names, both shown `1`."""
    unrepeated: tuple[str, ...] = ()
    """Parameters of ours that the continuation, an address, does not repeat."""
    from_cache: bool = False
    """Whether the answer says that it came from a cache and not from the source."""
    credential_changed: bool = False
    """Whether another secret was sent than before, and nothing says that it is the same one's."""

    def __post_init__(self) -> None:
        for name in ("total", "remaining", "page"):
            _check_count(getattr(self, name), name)
        _check_text(self.pin, "version")

    def facts(self, *, returned: int, sent_pin: str | None, fingerprint: bytes) -> dict[str, Any]:
        """Return the row's facts; their canonical JSON is what the chain covers."""
        told: dict[str, Any] = {"unrepeated": list(self.unrepeated)} if self.unrepeated else {}
        if self.pin_is_number:
            told["pin_is_number"] = True
        told |= {"from_cache": True} if self.from_cache else {}
        told |= {"credential_changed": True} if self.credential_changed else {}
        return {
            "kind": "page",
            "fingerprint": fingerprint.hex(),
            "returned": returned,
            "total": self.total,
            "remaining": self.remaining,
            "page": self.page,
            "pin": self.pin,
            "sent_pin": sent_pin,
            **told,
        }


@record
class Page:
    """One answer that was a page.

    Attributes:
        position: what was asked for.
        fingerprint: SHA-256 of the frozen request, cursor and pin left out.
        continuation: what follows, or the declared end.
        body: bytes as sent, content coding undone.
        records: number of records.
        leaf_hashes: SHA-256 leaf of each record, in page order.
        reported: what the source said beside the records.
        attempts: sends it took, the first included.
        requested_at: when the answered request was sent, UTC.
        received_at: when its last byte came, UTC.
    """

    position: Position
    fingerprint: bytes
    continuation: Continuation
    body: bytes
    records: int
    leaf_hashes: Sequence[bytes]
    reported: Reported
    attempts: int
    requested_at: datetime
    received_at: datetime


@record
class Refusal:
    """One answer that was not a page, or no answer at all.

    Attributes:
        position: what was asked for.
        status: HTTP status, None where no answer came.
        reason: one word, e.g. `wait`, `server_error`, `connection_lost`, `error_envelope`.
        body_digest: SHA-256 of what came.
        at: when it came, UTC.
        asked: what for.
    """

    position: Position
    status: int | None
    reason: str
    body_digest: bytes
    at: datetime
    asked: Asked = "page"

    def facts(self) -> dict[str, Any]:
        """Return the row's facts; their canonical JSON is what the chain covers."""
        told = {} if self.asked == "page" else {"asked": self.asked}
        return {"kind": "refused", "status": self.status, "reason": self.reason, **told}


@record
class Opening:
    """What the source says of itself before the first page, and again after the last."""

    principal: str | None = None
    tenant: str | None = None
    high_water_mark: str | None = None
    change_token: str | None = None
    partition_counts: dict[str, int] | None = None
    change_token_is_number: bool = False

    def is_at_token_of(self, other: "Opening") -> bool:
        """Say whether two change tokens are equal; a number equals no text of the same digits."""
        return (self.change_token, self.change_token_is_number) == (
            other.change_token,
            other.change_token_is_number,
        )

    def __post_init__(self) -> None:
        for name in ("principal", "tenant", "high_water_mark", "change_token"):
            _check_text(getattr(self, name), name)
        for number in (self.partition_counts or {}).values():
            _check_count(number, "partition_counts")


def _check_count(number: object, name: str) -> None:
    if number is None:
        return
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < BEYOND:
        raise ProtocolError("reported_invalid", f"the count {name} is not a number of records")


def _check_text(text: object, name: str) -> None:
    if text is not None and not _is_text(text):
        raise ProtocolError("reported_invalid", f"the {name} that is reported is no text")


def _is_text(value: object) -> bool:
    """Say whether a value is text that has bytes: half a surrogate pair has none."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
