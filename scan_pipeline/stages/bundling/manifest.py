"""What a bundle holds: its parts by name, and the signed list of them."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field, ValidationError

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.value import adapter, record

MANIFEST_TYPE: Final = "application/vnd.scan-pipeline.bundle+json"

MANIFEST: Final = "manifest.dsse.json"
"""The one file that no manifest can name: it is the manifest."""

GUIDE: Final = "GUIDE.md"
REPORT: Final = "REPORT.md"
RECEIPT: Final = "receipt.dsse.json"
PLAIN_RECEIPT: Final = "receipt.json"
KEYS: Final = "keys.json"
LEDGER: Final = "ledger.jsonl"
SECOND_LEDGER: Final = "ledger_of_second_walk.jsonl"
PARTITIONS: Final = "partition_summaries.json"
FINDINGS: Final = "findings.json"
CONTRACT: Final = "contract.json"
RECORDS: Final = "records/"
LEAVES: Final = "records/leaves.parquet"

Hex32: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Part: TypeAlias = Literal["ledger", "partition_summaries", "contract", "records", "record_bytes"]
"""What may be left out of a bundle."""


@record
class BundledFile:
    """One file of a bundle; `size` in bytes."""

    path: str
    size: int
    sha256: Hex32


@record
class LeftOut:
    """A part that a bundle does not hold, and why."""

    part: Part
    why: str


@record
class BundleManifest:
    """What a bundle is, signed.

    Attributes:
        scan: the scan.
        scan_generation: its generation.
        receipt_id: the receipt it is about.
        superseded_by: the receipt that judged the same pages again, None where this one stood
            when the bundle was made.
        made_at: when that was, UTC.
        left_out: parts that it does not hold.
        files: every file of it but this one, by path.
    """

    scan: str
    scan_generation: str
    receipt_id: str
    superseded_by: str | None
    made_at: AwareDatetime
    left_out: tuple[LeftOut, ...]
    files: tuple[BundledFile, ...]
    version: Literal[1] = 1

    def lacks(self, part: Part) -> str | None:
        """Return why a part is left out, None where it is not."""
        return next((each.why for each in self.left_out if each.part == part), None)


def parse_manifest(payload: bytes) -> BundleManifest:
    """Read a verified manifest.

    Raises:
        TamperedError: it is none.
    """
    try:
        return adapter(BundleManifest).validate_json(payload)
    except ValidationError as error:
        raise TamperedError(
            "manifest", f"the manifest is signed and is none: {error.error_count()} faults"
        ) from error
