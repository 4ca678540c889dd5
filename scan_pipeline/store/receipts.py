"""Receipts as they lie in the lake: one file a generation, write-once, and a table beside them.

The table's commit decides: two receipts of one generation cannot both be committed. The file is
for readers, who then need no engine; one that is missing is written again from the table.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from scan_pipeline.core.errors import GateClosedError, TamperedError, WriterConflictError
from scan_pipeline.core.receipt import Receipt, parse_statement
from scan_pipeline.core.value import record
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.trust import Trust, Verified

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX: Final = ".dsse.json"


@record
class StoredReceipt:
    """A receipt that was read and whose signature holds.

    Attributes:
        receipt: the account itself.
        receipt_id: `sha256:<hex>` of the signed payload.
        key_id: the trusted key that signed it.
    """

    receipt: Receipt
    receipt_id: str
    key_id: str


class ReceiptStore:
    """The receipts of one scan.

    Args:
        lake: where they lie.
        scan: name of the scan.
    """

    def __init__(self, lake: Lake, scan: str) -> None:
        self._lake, self._scan = lake, scan

    def has(self, generation: str) -> bool:
        """Say whether a generation has its receipt."""
        return self._lake.exists(self._lake.receipt_path(self._scan, generation)) or (
            self._committed(generation) is not None
        )

    def generations(self) -> list[str]:
        """Return the generations that have a receipt, oldest first."""
        folder = self._lake.receipt_path(self._scan, "20000101T000000Z").rsplit("/", 1)[0]
        names = self._lake.list_names(folder)
        sealed = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
        return sorted(sealed, key=generation_order)

    def read(self, generation: str, *, trust: Trust) -> StoredReceipt:
        """Read one receipt and check its signature.

        Raises:
            GateClosedError: the generation has none.
            TamperedError: the file is not what was signed, or is of another generation.
        """
        if not self._lake.exists(self._lake.receipt_path(self._scan, generation)):
            raise GateClosedError(
                scan=self._scan, generation=generation, reason="no receipt; expected one"
            )
        envelope = self.envelope(generation)
        verified: Verified = trust.verify(envelope)
        receipt = parse_statement(verified.payload)
        if (receipt.scan, receipt.scan_generation) != (self._scan, generation):
            raise TamperedError(
                "receipt",
                f"the receipt filed under {self._scan}/{generation} is of "
                f"{receipt.scan}/{receipt.scan_generation}; expected its own",
            )
        return StoredReceipt(
            receipt=receipt, receipt_id=verified.receipt_id, key_id=verified.key_id
        )

    def envelope(self, generation: str) -> bytes:
        """Return the signed envelope's bytes as they lie in the lake."""
        return self._lake.read_bytes(self._lake.receipt_path(self._scan, generation))

    def repair(self, generation: str) -> None:
        """Write the file of a committed receipt that a break left without one."""
        path = self._lake.receipt_path(self._scan, generation)
        if self._lake.exists(path):
            return
        envelope = self._committed(generation)
        if envelope is not None:
            self._lake.write_once(path, envelope)

    def write(self, receipt: Receipt, *, envelope: bytes, receipt_id: str, at: datetime) -> None:
        """Commit a receipt, once.

        Raises:
            WriterConflictError: the generation has a receipt already.
        """
        import pyarrow as pa  # noqa: PLC0415  # reading a receipt must not pay for it

        generation = receipt.scan_generation
        if self.has(generation):
            raise WriterConflictError(
                f"{self._scan} {generation} has a receipt already; expected none. It stands: read "
                "it, or begin a new generation"
            )
        row = {
            "scan_generation": generation,
            "receipt_id": receipt_id,
            "coverage_status": receipt.coverage_status,
            "conclusion_scope": receipt.conclusion_scope,
            "accepted": receipt.accepted,
            "completed_at": at,
            "envelope": envelope.decode(),
        }
        rows = pa.Table.from_pylist([row], schema=_schema())
        self._table().append(
            rows, generation=generation, app_id=f"{self._scan}/{generation}/receipt", version=1
        )
        self._lake.write_once(self._lake.receipt_path(self._scan, generation), envelope)

    def committed(self, generation: str) -> list[bytes]:
        """Return the envelopes the table holds for a generation; more than one opens nothing."""
        if not self._lake.exists(f"{self._uri()}/_delta_log"):
            return []  # looked at without the engine: readers of one receipt must not pay for it
        rows = self._table().read(generation, columns=("envelope",))
        return [each.encode() for each in rows.column(0).to_pylist()]

    def _committed(self, generation: str) -> bytes | None:
        envelopes = self.committed(generation)
        if len(envelopes) > 1:
            raise TamperedError(
                "receipt",
                f"{self._scan} {generation} has {len(envelopes)} receipts; expected one. None of "
                "them opens anything",
            )
        return envelopes[0] if envelopes else None

    def _uri(self) -> str:
        return self._lake.table_uri("receipts", self._scan, "receipts")

    def _table(self):  # noqa: ANN202  # its type is imported when writing and not before
        from scan_pipeline.store.tables import open_table  # noqa: PLC0415

        return open_table(self._lake, "receipts", self._scan, "receipts", _schema())


def generation_order(generation: str) -> tuple[str, int]:
    """Sort generations by time, then by attempt."""
    first, _, number = generation.partition(".")
    return first, int(number or 1)


def _schema() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema(
        [
            pa.field("scan_generation", pa.string(), nullable=False),
            pa.field("receipt_id", pa.string(), nullable=False),
            pa.field("coverage_status", pa.string(), nullable=False),
            pa.field("conclusion_scope", pa.string(), nullable=False),
            pa.field("accepted", pa.bool_(), nullable=False),
            pa.field("completed_at", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("envelope", pa.string(), nullable=False),
        ]
    )
