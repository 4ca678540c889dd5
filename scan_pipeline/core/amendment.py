"""What was taken out of a sealed generation, when and why: signed, beside an untouched receipt.

A receipt says what was sealed and is never written again. What is dropped by policy or erased on
request afterwards is told by an amendment: an in-toto Statement of a predicate of its own. It names
the files that stand in the place of those the receipt pins, so that an audit can still tell what
was taken out by a holder of the key from what was altered.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from scan_pipeline.core.receipt import PinnedTableEvidence
from scan_pipeline.core.value import record

PREDICATE_TYPE: Final = "urn:scan-pipeline:amendment:v1"

AmendmentKind = Literal["bodies_dropped", "records_dropped", "records_redacted"]
"""Bodies and tokens taken out by policy; records, findings and summaries likewise; or single
records erased on request."""


@record
class RedactedRecord:
    """What stays of an erased record: where it stood, and its digests.

    With them the figures of the receipt still come out. A digest of a key that can be guessed can
    be guessed too: it names nobody, and hides nobody from who has a list of candidates.

    Attributes:
        shard: walk that brought it.
        page: ordinal from 1.
        position: place on the page, from 0.
        key_hash: hex.
        leaf_hash: hex.
        partition: value of `partition_by`, None where it has none or the key is in it.
        conforming: whether it fitted the schema.
        removed: of a round, why the record says that one was removed; None for a record that is
            one.
    """

    shard: int
    page: int
    position: int
    key_hash: str
    leaf_hash: str
    partition: bool | int | str | None
    conforming: bool
    removed: str | None = None


@record
class ErasedPage:
    """A page whose body is gone because it held an erased record, or named it."""

    shard: int
    page: int


@record
class ReplacedReceipt:
    """A receipt that named the key itself and could not stay; its redacted copy stands for it."""

    generation: str
    old: str
    new: str


@record
class Amendment:
    """What was taken out of one generation's rows.

    Attributes:
        amendment_version: always 1.
        scan: name of the scan.
        scan_generation: the generation that holds the rows.
        kind: what was done.
        made_at: the moment, RFC 3339 in UTC.
        because: why: the policy in words, or the request.
        by: who asked; None for a policy.
        tables: what stands in the place of what a receipt pins, by table; None for nothing.
        redacted: records that were erased.
        pages: pages whose bodies were erased with them.
        receipts: receipts that named the key and were replaced.
    """

    amendment_version: Literal[1]
    scan: str
    scan_generation: str
    kind: AmendmentKind
    made_at: str
    because: str
    by: str | None = None
    tables: Mapping[str, PinnedTableEvidence | None]
    redacted: tuple[RedactedRecord, ...] = ()
    pages: tuple[ErasedPage, ...] = ()
    receipts: tuple[ReplacedReceipt, ...] = ()

    @property
    def day(self) -> str:
        """The day it was made, in UTC."""
        return self.made_at[:10]

    def word(self) -> str:
        """Return it as people read it."""
        match self.kind:
            case "bodies_dropped":
                return f"bodies dropped on {self.day} ({self.because})"
            case "records_dropped":
                return f"records dropped on {self.day} ({self.because})"
            case "records_redacted":
                return redacted_word([self])


def amended_words(amendments: Iterable[Amendment]) -> tuple[str, ...]:
    """Return what was done, in words, oldest first; what was redacted in one sum."""
    told = list(amendments)
    words = [each.word() for each in told if each.kind != "records_redacted"]
    redacted = [each for each in told if each.kind == "records_redacted"]
    return (*dict.fromkeys(words), *([redacted_word(redacted)] if redacted else []))


def redacted_word(amendments: Iterable[Amendment]) -> str:
    """Return how many records were redacted and when: `1 record redacted on 2026-11-30`."""
    told = [each for each in amendments if each.kind == "records_redacted"]
    keys = {record.key_hash for each in told for record in each.redacted}
    days = sorted({each.day for each in told if each.redacted} or {each.day for each in told})
    if not keys:
        return f"mentions of a record redacted on {', '.join(days)}"
    return f"{len(keys):,} record{'s' * (len(keys) > 1)} redacted on {', '.join(days)}"
