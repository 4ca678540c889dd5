"""What a report is made from: the signed receipt, and what the lake still holds beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.value import record
from scan_pipeline.stages.auditing.report import AuditReport
from scan_pipeline.store.events import Event
from scan_pipeline.store.receipts import StoredReceipt


@record
class Unread:
    """What could not be read, and why."""

    why: str


@record
class Ledger:
    """The events of a generation's walks without their bodies, and the contract it began with.

    Attributes:
        walks: events of each walk in order; the second only where there was one.
        contract: the scan as the generation's own open event tells it.
    """

    walks: tuple[Sequence[Event], ...]
    contract: Mapping[str, Any]


@record
class Night:
    """A generation of the same scan, before or after.

    Attributes:
        generation: its name.
        receipt: its receipt, or why there is none to believe.
    """

    generation: str
    receipt: Receipt | Unread


@record
class Material:
    """Everything one report is made from.

    Attributes:
        stored: the receipt, its signature checked.
        fingerprint: of the key that signed it.
        ledger: the events, or why there are none.
        partitions: rows of the stored partition summaries in order, or why there are none.
        nights: generations around this one, oldest first, this one among them.
        superseded_by: the generation that judged the same pages again, None where none did.
        audit: what an audit came to, None where none was run.
        made_at: when, UTC, as receipts write it.
        taken_out: what was dropped or erased of its rows since, in words.
    """

    stored: StoredReceipt
    fingerprint: str
    ledger: Ledger | Unread
    partitions: Sequence[Mapping[str, Any]] | Unread
    nights: Sequence[Night]
    superseded_by: str | None
    audit: AuditReport | None
    made_at: str
    taken_out: tuple[str, ...] = ()

    @property
    def receipt(self) -> Receipt:
        """The receipt itself."""
        return self.stored.receipt
