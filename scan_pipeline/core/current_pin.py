"""The files of one version of a current table, and the rounds they rest on, as they are signed."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal

from scan_pipeline.core.canonical import canonical_json, digest_of
from scan_pipeline.core.receipt import PinnedTableEvidence
from scan_pipeline.core.value import adapter, record

PREDICATE_TYPE: Final = "urn:scan-pipeline:current-pin:v1"


@record
class CurrentPin:
    """What a version of a current table holds; said before it is committed.

    Attributes:
        pin_version: always 1.
        scan: name of the scan.
        scan_generation: of the last round that was laid.
        said_at: the moment, RFC 3339 in UTC.
        rounds: receipts that the rows rest on, so many.
        rests_on: of their ids, see `rests_on_digest`; a list would grow with every night.
        replaces: `pin_id` of the one that held until then; None for the first.
        table: the files.
    """

    pin_version: Literal[1]
    scan: str
    scan_generation: str
    said_at: str
    rounds: int
    rests_on: str
    replaces: str | None
    table: PinnedTableEvidence


def rests_on_digest(receipt_ids: Sequence[str]) -> str:
    """Return SHA-256, hex, of the canonical JSON of receipt ids, the baseline's first."""
    return sha256(canonical_json(list(receipt_ids))).hexdigest()


def pin_id(pin: CurrentPin) -> str:
    """Return what another pin calls this one: the digest of its predicate, hex."""
    predicate: dict[str, Any] = adapter(CurrentPin).dump_python(pin, mode="json")
    return digest_of(predicate).hex()
