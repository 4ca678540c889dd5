"""What the engine and the judgement need to know of any source, whatever its protocol."""

from abc import ABC
from collections.abc import Iterator
from typing import ClassVar, Literal

from scan_pipeline.core.checkpoint import CheckpointFacts
from scan_pipeline.core.contract import Contract
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.redacted_paths import RedactFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import (
    AssumptionBasis,
    Basis,
    ContinuationKind,
    LeafEncoding,
)


@record
class CountFacts:
    """A count the source reports beside its pages.

    Attributes:
        at: where it stands.
        means: what is counted: the whole, what is left, or this page.
        exactness: only an exact count decides anything.
        basis: why it is believed to be so.
    """

    at: FieldPath
    means: Literal["total", "remaining", "page"] = "total"
    exactness: Literal["exact", "estimate"]
    basis: Basis = "user_declared"


@record
class SnapshotFacts:
    """A pin: the source version that the first answer reports and every later request names.

    Attributes:
        at: where an answer reports the version.
        send_as: parameter that names it.
        travels_in: what names it in a later request. `continuation`: the token carries it, and the
            parameter must not stand beside one; it is sent where the first page is read again.
            What a token carries cannot be seen, so that every page must report the version.
        basis: why it is believed that the source honours it.
        rotates: whether an answer may give the same version another name, as documented; every
            request then has to name it as the answer before did.
    """

    at: FieldPath
    send_as: str
    travels_in: Literal["request", "continuation"] = "request"
    basis: Basis = "user_declared"
    rotates: bool = False

    def __post_init__(self) -> None:
        if self.rotates and self.travels_in == "continuation":
            raise ContractError(
                "a version whose name rotates cannot travel in a continuation; expected "
                "travels_in: request, where every request can be seen to use the newest name"
            )


@record
class BoundFacts:
    """An upper bound read before the first page and sent with every request.

    Attributes:
        at: where the answer shows the bound.
        send_as: parameter that carries it.
        field: the record field it bounds, where records show it.
        basis: why it is believed that rows appear in its order and never change.
    """

    at: FieldPath
    send_as: str
    field: str | None = None
    basis: Basis = "user_declared"


@record
class HighWaterMarkFacts(BoundFacts):
    """An upper bound that is read from `url`.

    Attributes:
        url: where it is read.
    """

    url: str


@record
class ChangeTokenFacts:
    """The source's own token of its state, read before the first page and after the last.

    Only a token that is documented to move on every insert, update and delete, and never to return
    to a value it had, says that nothing happened in between.

    Attributes:
        basis: why it is believed to move on every insert, update and delete and never to
            return.
    """

    basis: Basis = "user_declared"


@record
class ProviderRef:
    """Whose documented facts a source was filled in with: file name, and digest of the facts.

    Attributes:
        name: of the file.
        revision: digest of its facts.
    """

    name: str
    revision: str


@record
class SourceFacts(ABC):  # a base for one record a protocol, never made itself
    """What the engine and the judgement need to know of any source, whatever its protocol.

    Attributes:
        protocol: how the source advances.
        provider: whose documented facts were filled in under the scan's own.
        count: a count that the source reports beside its pages.
        snapshot: the pin that holds the collection still.
        high_water_mark: an upper bound that is read before the walk and sent with every
            request.
        continuation: whether a continuation may be used again, once, or only on its
            connection.
        continuation_basis: why a continuation is believed to be of that kind; None where
            nobody said.
        end_signal_basis: why the end signal is believed to be a denominator, where a
            contract makes it one.
        result_window: most records that one query ever shows, whatever it matches; its end
            there is no end.
        redact: what of each record is dropped or masked before anything is stored.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth", "network")
    """Fields that say how the work is done, not which population is read."""

    QUERY: ClassVar[tuple[str, ...]] = ("url", "params")
    """Fields that a receipt shows as what was asked."""

    leaf_encoding: ClassVar[LeafEncoding] = "raw/v1"
    positions_are_ours: ClassVar[bool] = False
    """Whether we compute the next position (offset, last key), so that an equal page means it was
    ignored."""

    protocol: str
    provider: ProviderRef | None = None
    count: CountFacts | None = None
    snapshot: SnapshotFacts | None = None
    high_water_mark: BoundFacts | None = None
    continuation: ContinuationKind = "repeatable"
    continuation_basis: Basis | None = None
    end_signal_basis: Basis | None = None
    result_window: PositiveInt | None = None
    redact: RedactFacts | None = None

    @property
    def stored_encoding(self) -> LeafEncoding:
        """What a leaf is the hash of, as records are stored."""
        return self.leaf_encoding if self.redact is None else "canonical-json/v1"

    @property
    def tool(self) -> str:
        """Return the name of what is called, as the receipt shows it."""
        raise NotImplementedError

    @property
    def change_token_basis(self) -> Basis | None:
        """Why the change token is believed to cover all writes; None where none is declared."""
        return None

    @property
    def checkpoint(self) -> CheckpointFacts | None:
        """What is known of the checkpoints it names; None where it tracks no changes."""
        return None

    @property
    def kept_query_basis(self) -> Basis | None:
        """Why a continuation is believed to keep what it does not repeat; None where none said."""
        return None

    @property
    def believed(self) -> tuple[tuple[str, AssumptionBasis], ...]:
        """Return what else has to be believed of such a source, and why it is."""
        return ()

    def counter_in(self, token: str) -> str | None:
        """Return the parameter by which a continuation counts rows or pages, None for none.

        Args:
            token: continuation token as the source gave it.
        """
        del token
        return None

    def contradictions(self, contract: "Contract") -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield where a contract asks for what such a source cannot give, and what to do."""
        del contract
        return iter(())

    @property
    def position_fields(self) -> tuple[str, ...]:
        """Record fields that make our next position; none where it is an offset or a token."""
        return ()

    @property
    def exact_total(self) -> bool:
        """Whether the source declares an exact count of the whole."""
        return (
            self.count is not None
            and self.count.exactness == "exact"
            and self.count.means in ("total", "remaining")
        )
