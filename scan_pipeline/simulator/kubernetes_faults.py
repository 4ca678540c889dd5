"""What a simulated cluster does that it should not, one record a kind; each names its requests."""

from typing import Literal, TypeAlias

from scan_pipeline.core.value import record


@record
class ListFault:
    """What the faults share: which list requests are struck.

    Attributes:
        request: ordinal of the first, from 1; requests that are sent again count too.
        through: ordinal of the last; None for that one alone.
    """

    request: int
    through: int | None = None

    def strikes(self, request: int) -> bool:
        """Say whether a list request is struck."""
        return self.request <= request <= (self.through or self.request)


@record
class Compacted(ListFault):
    """Every version but the newest is compacted before the answer: 410 with a weaker token."""


@record
class VersionDrifted(ListFault):
    """The chunk is of the newest version, and says so."""


@record
class PinIgnored(ListFault):
    """The chunk is of the newest version, and names the one that was asked for."""


@record
class MemberMissing(ListFault):
    """The list lacks its metadata, or the version in it."""

    member: Literal["metadata", "resourceVersion"]


@record
class RemainingWrong(ListFault):
    """`remainingItemCount` is off by so many, or made up where it should be left out."""

    by: int


@record
class LimitIgnored(ListFault):
    """The server does not support `limit`: everything comes at once."""


@record
class LimitExceeded(ListFault):
    """More objects than `limit` come, and yet a token: the contract forbids it."""


@record
class ChunkShort(ListFault):
    """The chunk holds so many objects, none perhaps, and a token."""

    objects: int


@record
class EndedEarly(ListFault):
    """The token is left out although objects follow: the contract forbids it."""


@record
class TokenRepeated(ListFault):
    """The token leads back to the chunk it came with."""


@record
class KindWrong(ListFault):
    """The list says that it is of another kind or API version."""

    kind: str = "CustomerList"
    api_version: str = "registry.example.com/v1"


@record
class StatusSent(ListFault):
    """A `Status` comes in place of the list.

    Attributes:
        status: HTTP status; 200 for an error in disguise.
        reason: its machine-readable reason.
        retry_after_s: seconds of a `Retry-After` header, None for none.
    """

    status: int
    reason: str
    retry_after_s: int | None = None


@record
class UserReplaced(ListFault):
    """From this answer on, whoever asks is taken for another user."""

    user: str


Fault: TypeAlias = (
    Compacted
    | VersionDrifted
    | PinIgnored
    | MemberMissing
    | RemainingWrong
    | LimitIgnored
    | LimitExceeded
    | ChunkShort
    | EndedEarly
    | TokenRepeated
    | KindWrong
    | StatusSent
    | UserReplaced
)
